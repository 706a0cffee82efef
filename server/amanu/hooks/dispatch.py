"""Runs the hooks that match a moment of a session, and merges their answers into one outcome."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from amanu.hooks.call_input import call_inputs
from amanu.hooks.config import GEMINI_EVENTS
from amanu.hooks.matching import matches
from amanu.hooks.merge import Answer, merge
from amanu.hooks.model import HookDecision, HookMoment, HookOutcome, HookRun, HookView
from amanu.hooks.output import read_answer
from amanu.hooks.runner import HookPlace, HookRunner

OnRun = Callable[[HookRun, HookDecision], None]
"""Called with each run and the decision read from it."""

Input = Mapping[str, JsonValue]
"""The object that a hook reads on its standard input."""

_GEMINI_NAMES = {event: name for name, event in GEMINI_EVENTS.items()} | {"PostToolUseFailure": "AfterTool"}


async def run_hooks(
    views: Sequence[HookView], moment: HookMoment, place: HookPlace, runner: HookRunner, on_run: OnRun
) -> HookOutcome:
    """Run the hooks that are on and match the moment, and merge their answers. They run concurrently, the same command
    with the same input only once; one after the other if any of them wants that, or if they may change the request to
    the model. Raises nothing unless cancelled, and then leaves none running."""
    due = [
        (view, told)
        for view in views
        if view.state == "on" and matches(view.hook, moment)
        for told in inputs(moment, view, place)
    ]

    async def answer(view: HookView, told: Input) -> Answer:
        run = await runner.run(view, place, json.dumps(told).encode("utf-8", "surrogatepass"))
        decision = read_answer(run)
        on_run(run, decision)
        return run, decision

    if moment.event == "BeforeModel" or any(view.hook.sequential for view, _ in due):
        return merge(await _in_sequence(due, answer))
    tasks: dict[tuple[object, ...], asyncio.Task[Answer]] = {}
    try:
        for view, told in due:
            key = (view.hook.command, view.hook.arguments, view.hook.source.folder, json.dumps(told, sort_keys=True))
            if key not in tasks:
                tasks[key] = asyncio.create_task(answer(view, told))
        return merge(await asyncio.gather(*tasks.values()))
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def _in_sequence(
    due: Sequence[tuple[HookView, Input]], answer: Callable[[HookView, Input], Awaitable[Answer]]
) -> list[Answer]:
    """Run them one after the other; each is told the call's input and the request to the model as those before it left
    them, and the prompt with the context they added. A refusal, or a hook that ends the turn, is the last."""
    answers: list[Answer] = []
    changed: dict[str, Mapping[str, JsonValue]] = {}
    fed: dict[str, JsonValue] = {}
    for view, told in due:
        dialect = view.hook.source.dialect
        told = {**told, **fed}
        if dialect in changed:
            told = {**told, "tool_input": dict(changed[dialect])}
        run, decision = await answer(view, told)
        if decision.updated_input is not None:
            before = told.get("tool_input")
            merged = {**before, **decision.updated_input} if isinstance(before, dict) else decision.updated_input
            changed[dialect] = decision.updated_input if dialect == "claude" else merged
            decision = replace(decision, updated_input=changed[dialect])
        if decision.context and view.hook.event == "UserPromptSubmit":
            fed["prompt"] = f"{told['prompt']}\n\n{decision.context}"
        request = told.get("llm_request")
        if decision.request is not None and isinstance(request, dict):
            fed["llm_request"] = request = {**request, **decision.request}
            decision = replace(decision, request=request)
        answers.append((replace(run, hook=replace(run.hook, sequential=True)), decision))
        if decision.action == "deny" or decision.ends:
            break
    return answers


def inputs(moment: HookMoment, view: HookView, place: HookPlace) -> list[Input]:
    """The moment in the words of a hook: one object, or one for each file that a call changes."""
    source = view.hook.source
    gemini = source.dialect == "gemini"
    common: dict[str, JsonValue] = {
        "session_id": place.session_id,
        "transcript_path": place.transcript,
        "cwd": str(source.folder),
        "hook_event_name": _GEMINI_NAMES.get(moment.event, moment.event) if gemini else moment.event,
    }
    if gemini:
        common |= {"timestamp": place.now}
    else:
        common |= {"permission_mode": place.permission_mode}
    fields = {**common, **moment.about, **(moment.gemini if gemini else {})}
    if moment.call is None:
        return [fields]
    calls = call_inputs(moment.call, source.dialect, place.workspace.roots[0])
    return [
        {**fields, "tool_name": call.tool_name, "tool_input": dict(call.tool_input), "tool_use_id": moment.call.call_id}
        for call in calls
    ]
