"""Asks a session's hooks about the requests, calls and end of a turn."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pydantic import JsonValue

from amanu.core.conversation import Call, Result
from amanu.core.ending import Ending
from amanu.core.listeners import (
    Block,
    ChangedArguments,
    ChangedRequest,
    Continue,
    MustAsk,
    Permitted,
    ReplyText,
    StepRecord,
    TurnListener,
    TurnView,
)
from amanu.core.model import ReplyCompleted
from amanu.core.notes import SystemNote
from amanu.core.sub_agents import COMPLETE_TASK
from amanu.core.tool import Preview
from amanu.hooks.call_input import our_arguments, tool_name
from amanu.hooks.matching import is_selected, our_tool
from amanu.hooks.model import CallFacts, HookMoment, HookOutcome
from amanu.hooks.model_request import llm_request, request_change
from amanu.hooks.session_hooks import CODE, SessionHooks
from amanu.text.fences import block

_ENDS = frozenset({COMPLETE_TASK, "finish_task"})
"""The tools with which the model ends its work."""
MAX_CONTINUED = 3
"""The number of times that `Stop` hooks may make one turn go on."""


@dataclass
class _Asked:
    """The hooks' answer about a call."""

    standing: MustAsk | Permitted | None
    context: str
    """Text for the model, sent with the call's result."""
    changed: bool = False
    """Whether they changed its arguments; the call comes back with the new ones."""


class HookListener(TurnListener):
    """Lives for one turn, or while a prompt is composed (`turn_id` is None then). `task`: the prompt."""

    def __init__(self, hooks: SessionHooks, turn_id: str | None, task: str) -> None:
        self._hooks = hooks
        self._turn_id = turn_id
        self._task = task
        self._calls: dict[str, _Asked] = {}
        self._previews: dict[str, Preview] = {}
        self._selections: Sequence[frozenset[str]] = ()
        """The same as in `HookOutcome`, for this reply."""
        self.ending: Ending | None = None
        """The end of the turn that a hook wants; None if none does."""
        self._continued: list[str] = []
        """The reasons for which `Stop` hooks have made the turn go on."""
        self._tools: Sequence[str] = ()
        """The names of the tools that the model is told of, once it has been asked."""
        self._next_calls: dict[str, Call] = {}
        """Id of a call that has ended → the call to take its place."""
        self._first_tools: dict[str, str] = {}
        """Id of such a call → the tool that the model called."""
        self._unlimited: set[str] = set()
        """Ids of those calls that the user's own hooks want: a limit that these hooks set does not apply to them."""
        self._reported_changes = False
        """Whether the user knows that hooks change the requests of this turn."""
        self._let_stop = False
        """Whether a `Stop` hook wants the turn to be over."""

    async def before_model(self, turn: TurnView, step: int) -> ReplyText | Ending | ChangedRequest | None:
        self.ending, self._hooks.ending = self.ending or self._hooks.ending, None
        if self.ending is not None:
            return self.ending
        await self._select_tools(turn)
        if self.ending is not None:
            return self.ending
        selected = ChangedRequest(self._callable(turn))
        if not await self._hooks.listening("BeforeModel"):
            return selected
        request: dict[str, JsonValue] = {"llm_request": llm_request(turn)}
        outcome = await self._hooks.run(HookMoment("BeforeModel", request), self._turn_id)
        if outcome.updated_output is not None:
            self._hooks.report("A hook answered instead of the model.", self._turn_id)
            return ReplyText(outcome.updated_output)
        if outcome.action == "deny" or outcome.ends:
            reason = outcome.reason or outcome.end_reason or "It gave no reason."
            return self._end(f"A hook stopped the request to the model: {reason}")
        return self._changed(selected, outcome, turn)

    def _changed(self, request: ChangedRequest, outcome: HookOutcome, turn: TurnView) -> ChangedRequest:
        """The request with the messages that hooks want in it."""
        if outcome.request is None:
            return request
        change = request_change(turn, dict(outcome.request), self._hooks.mask)
        for sentence in change.ignored:
            self._hooks.report_ignored(", ".join(run.hook.label for run in outcome.runs), sentence, self._turn_id)
        if change.conversation is not None and not self._reported_changes:
            self._reported_changes = True
            self._hooks.report("A hook changed what the model is sent in this turn.", self._turn_id)
        return replace(request, conversation=change.conversation)

    def _callable(self, turn: TurnView) -> frozenset[str] | None:
        """The tools that the next reply may call. Those that end the work always can be: without them it would not."""
        self._tools = [spec.name for spec in turn.specs]
        return frozenset(filter(self._is_selected, self._tools)) if self._selections else None

    def _is_selected(self, tool: str) -> bool:
        return tool in _ENDS or all(is_selected(tool, selected) for selected in self._selections)

    async def _select_tools(self, turn: TurnView) -> None:
        """Ask which tools the next reply may call."""
        self._selections = ()
        if await self._hooks.listening("BeforeToolSelection"):
            about: dict[str, JsonValue] = {"llm_request": llm_request(turn)}
            outcome = await self._hooks.run(HookMoment("BeforeToolSelection", about), self._turn_id)
            self._end_if_told(outcome)
            self._selections = outcome.selections

    async def after_model(self, turn: TurnView, reply: ReplyCompleted) -> ReplyText | None:
        if not await self._hooks.listening("AfterModel"):
            return None
        about: dict[str, JsonValue] = {"llm_request": llm_request(turn), "llm_response": _llm_response(reply)}
        outcome = await self._hooks.run(HookMoment("AfterModel", about), self._turn_id)
        self._end_if_told(outcome)
        if outcome.action == "deny":
            withheld = f"A hook withheld this reply: {outcome.reason}"
            self._end(withheld)
            return ReplyText(withheld)
        if outcome.updated_output is None:
            return None
        self._hooks.report("A hook replaced the model's reply.", self._turn_id)
        return ReplyText(outcome.updated_output)

    async def before_compaction(self, turn: TurnView, *, by_user: bool, focus: str) -> str | None:
        trigger = "manual" if by_user else "auto"
        about: dict[str, JsonValue] = {"trigger": trigger, "custom_instructions": focus}
        outcome = await self._hooks.run(HookMoment("PreCompact", about, trigger), self._turn_id)
        if outcome.action == "deny" or outcome.ends:
            return f"A hook refused it: {outcome.reason or outcome.end_reason}"
        return None

    async def before_call(self, call: Call, preview: Preview) -> Block | ChangedArguments | MustAsk | Permitted | None:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        if self.ending is not None:
            return Block("Not run: a hook ended the turn.")
        if call.tool == COMPLETE_TASK:
            objection = await self._objection(json.dumps(arguments, ensure_ascii=False))
            return None if objection is None else Block(_not_done(objection))
        if call.call_id not in self._unlimited and not self._is_selected(call.tool):
            selected = ", ".join(sorted({*filter(self._is_selected, self._tools)} - _ENDS)) or "no tools"
            return Block(f"Not run: one of the user's hooks limits this reply to: {selected}.")
        asked = self._calls.get(call.call_id)
        self._previews[call.call_id] = preview
        if asked is not None and asked.changed:
            asked.changed = False  # these are the arguments that the hooks wanted
            return asked.standing
        moment = HookMoment("PreToolUse", call=_facts(call, preview), gemini=self._first_tool(call))
        outcome = await self._hooks.run(moment, self._turn_id)
        if (blocked := self._blocked(outcome)) is not None:
            return blocked
        asked = _Asked(_standing(outcome), self._hooks.context(outcome, self._turn_id))
        self._calls[call.call_id] = asked
        if outcome.updated_input is None or outcome.updated_by is None:
            return asked.standing
        dialect = outcome.updated_by.source.dialect
        changed = our_arguments(call.tool, arguments, outcome.updated_input, dialect)
        if changed == arguments:
            return asked.standing
        asked.changed = True
        label = outcome.updated_by.label
        self._hooks.report(f"The hook {label} changed the arguments of this call: {preview.title}", self._turn_id)
        return ChangedArguments(changed, f"the hook {label} changed its arguments.")

    async def before_question(self, call: Call, preview: Preview) -> Block | Permitted | None:
        outcome = await self._hooks.run(HookMoment("PermissionRequest", call=_facts(call, preview)), self._turn_id)
        if (blocked := self._blocked(outcome, has_run=self._hooks.executed(call.call_id))) is not None:
            return blocked
        standing = _standing(outcome)
        return standing if isinstance(standing, Permitted) else None

    async def after_call(self, call: Call, result: Result) -> Result:
        if self._turn_id is not None and not self._hooks.executed(call.call_id):
            self._previews.pop(call.call_id, None)
        asked = self._calls.pop(call.call_id, None)
        preview = self._previews.pop(call.call_id, None)
        if asked is not None and asked.context:
            result = result.amended(asked.context)
        if preview is None:
            return result
        moment = _after_moment(call, result, preview)
        moment = replace(moment, gemini={**moment.gemini, **self._first_tool(call)})
        outcome = await self._hooks.run(moment, self._turn_id)
        if outcome.updated_output is not None:
            self._hooks.report("A hook replaced the result of a call for the model.", self._turn_id)
            result = result.model_copy(update={"text": outcome.updated_output, "fields": {}, "pictures": ()})
        if outcome.action == "deny" and outcome.reason:
            result = result.amended(block("hook_feedback", outcome.reason))
            self._hooks.report(f"The hook {outcome.decided_by} objected to a result: {outcome.reason}", self._turn_id)
        if context := self._hooks.context(outcome, self._turn_id):
            result = result.amended(context)
        self._end_if_told(outcome)
        if outcome.next_call is not None and outcome.next_by is not None:
            return self._note_next_call(call, result, outcome)
        return result

    def _note_next_call(self, call: Call, result: Result, outcome: HookOutcome) -> Result:
        wanted, hook = outcome.next_call, outcome.next_by
        assert wanted is not None and hook is not None
        if self._turn_id is None:
            self._hooks.report_ignored(hook.label, "No call can follow the calls of a prompt.", None)
            return result
        tool = our_tool(wanted.tool, self._tools)
        arguments = our_arguments(tool, {}, wanted.arguments, hook.source.dialect)
        following = Call(call_id=f"call_{uuid4().hex[:16]}", tool=tool, arguments=arguments)
        self._next_calls[call.call_id] = following
        self._first_tools[following.call_id] = self._first_tools.get(call.call_id, call.tool)
        if hook.source.owner == "user":
            self._unlimited.add(following.call_id)
        self._hooks.report(f"The hook {hook.label} replaces this result with that of a call of {tool}.", self._turn_id)
        return result

    def _first_tool(self, call: Call) -> dict[str, JsonValue]:
        """Gemini's field for the tool that the model called, if a hook put this call in its place."""
        first = self._first_tools.get(call.call_id)
        return {} if first is None else {"original_request_name": tool_name(first, "gemini")}

    async def next_call(self, call: Call) -> Call | None:
        return self._next_calls.pop(call.call_id, None)

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending | None:
        return self.ending

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        if self.ending is not None:
            return self.ending
        objection = await self._objection(reply.message.text)
        if objection is None:
            return Ending("completed") if self._let_stop else None
        user_text = f"The hook {objection.decided_by} made the agent go on: {objection.reason}"
        return Continue([SystemNote(_not_done(objection), user_text, CODE)])

    async def _objection(self, answer: str) -> HookOutcome | None:
        """The objection of `Stop` hooks (for a sub-agent: `SubagentStop`) to stopping with that answer; None if
        there is none that counts."""
        active = bool(self._continued)
        moment = HookMoment(
            "Stop",
            {"stop_hook_active": active, "last_assistant_message": answer},
            gemini={"prompt": self._task, "prompt_response": answer, "stop_hook_active": active},
        )
        outcome = await self._hooks.run(moment, self._turn_id)
        if outcome.ends:  # the agent is done: nothing is cut short
            self._hooks.report(f"A hook ended the turn: {_end_reason(outcome)}", self._turn_id)
            self._let_stop = True
        if self._let_stop or outcome.action != "deny":
            return None
        reason = outcome.reason
        if len(self._continued) >= MAX_CONTINUED or reason in self._continued:
            why = (
                "it gives the same reason again"
                if reason in self._continued
                else f"it has already done so {MAX_CONTINUED} times"
            )
            self._hooks.report(
                f"The hook {outcome.decided_by} wants the agent to go on, but {why}: {reason}", self._turn_id
            )
            return None
        self._continued.append(reason)
        return outcome

    def _blocked(self, outcome: HookOutcome, *, has_run: bool = False) -> Block | None:
        self._end_if_told(outcome)
        if outcome.ends:
            ended = "A hook ended the turn." if has_run else "Not run: a hook ended the turn."
            return Block(f"{ended} {outcome.end_reason}".rstrip())
        if outcome.action == "deny":
            return Block(f"Denied by the hook {outcome.decided_by}: {outcome.reason}")
        return None

    def _end_if_told(self, outcome: HookOutcome) -> None:
        if outcome.ends:
            self._end(f"A hook ended the turn: {_end_reason(outcome)}")

    def _end(self, message: str) -> Ending:
        """End the turn, and tell the user why, once."""
        if self.ending is None:
            self._hooks.report(message, self._turn_id, "warning")
            self.ending = Ending("hook", message, can_continue=True)
        return self.ending


class HookEnding(TurnListener):
    """Comes before the listeners that make an agent go on: a turn that a hook ended is over."""

    def __init__(self, hooks: HookListener) -> None:
        self._hooks = hooks

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Ending | None:
        return self._hooks.ending


def _end_reason(outcome: HookOutcome) -> str:
    return outcome.end_reason or "It gave no reason."


def _not_done(objection: HookOutcome) -> str:
    return f"One of the user's hooks says that the work is not done:\n{block('hook_feedback', objection.reason)}"


def _standing(outcome: HookOutcome) -> MustAsk | Permitted | None:
    match outcome.action:
        case "ask":
            reason = f": {outcome.reason}" if outcome.reason else ""
            return MustAsk(f"the hook {outcome.decided_by} wants you to be asked{reason}")
        case "allow":
            return Permitted(f"your hook {outcome.decided_by}")
        case _:
            return None


def _facts(call: Call, preview: Preview) -> CallFacts:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    subjects = (preview.subject, *preview.extra_subjects)
    return CallFacts(call.tool, arguments, call.call_id, sorted(preview.writes), [subject.text for subject in subjects])


def _after_moment(call: Call, result: Result, preview: Preview) -> HookMoment:
    facts = _facts(call, preview)
    answer: dict[str, JsonValue] = {"llmContent": result.text, "returnDisplay": result.text}
    if result.is_error:
        failed: dict[str, JsonValue] = {"tool_response": {**answer, "error": result.text}}
        about: dict[str, JsonValue] = {"error": result.text, "is_interrupt": False}
        return HookMoment("PostToolUseFailure", about, call=facts, gemini=failed)
    paths: dict[str, JsonValue] = {"filePath": facts.writes[0]} if facts.writes else {}
    response: dict[str, JsonValue] = {**result.fields, **paths, "content": result.text, "success": True}
    return HookMoment("PostToolUse", {"tool_response": response}, call=facts, gemini={"tool_response": answer})


def _llm_response(reply: ReplyCompleted) -> JsonValue:
    text = reply.message.text
    usage: JsonValue = {"promptTokenCount": reply.usage.prompt, "candidatesTokenCount": reply.usage.output}
    content: JsonValue = {"role": "model", "parts": [text]}
    return {"text": text, "candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
