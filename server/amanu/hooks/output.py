"""Reads a hook's exit code and output, in Claude Code's words or Gemini CLI's.

exit 0       standard output is an answer if it is a JSON object, otherwise text: with Claude's hooks, context for the
             model on `UserPromptSubmit`, `SessionStart` and `SubagentStart`; with Gemini's, a message to the user
exit 2       a refusal, with the reason on standard error; with Gemini's hooks, every code from 2 on
any other    an error, which counts as `Hook.on_failure` says; with Gemini's hooks, JSON counts all the same, and is
             read from standard error if there is nothing else (`hookRunner.ts` of Gemini CLI)
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from pydantic import JsonValue

from amanu.hooks.model import GATES, Action, Event, HookDecision, HookRun, WantedCall
from amanu.text.display import one_line, visible

MAX_CONTEXT = 10_000
"""The most characters that one hook can tell the model."""
MAX_MESSAGE = 2_000
"""The most characters that one hook can tell the user."""

_TEXT_IS_CONTEXT: frozenset[Event] = frozenset({"UserPromptSubmit", "SessionStart", "SubagentStart"})
_ACTIONS: dict[str, Action] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "defer": "ask",
    "deny": "deny",
    "block": "deny",
}


_AFTER_CALL: tuple[Event, ...] = ("PostToolUse", "PostToolUseFailure")
_COMMON = frozenset(
    ("continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput")
)
"""The fields of an answer to any event."""
_CONTEXT = frozenset({"additionalContext"})
_RESULT = frozenset({"additionalContext", "updatedToolOutput", "updatedMCPToolOutput", "tailToolCallRequest"})
_DONE: dict[Event, frozenset[str]] = {
    "SessionStart": _CONTEXT,
    "SubagentStart": _CONTEXT,
    "UserPromptSubmit": _CONTEXT,
    "PreToolUse": frozenset(
        ("permissionDecision", "permissionDecisionReason", "updatedInput", "tool_input", "additionalContext")
    ),
    "PermissionRequest": frozenset({"decision"}),
    "PostToolUse": _RESULT,
    "PostToolUseFailure": _RESULT,
    "BeforeModel": frozenset({"llm_request", "llm_response"}),
    "AfterModel": frozenset({"llm_response"}),
    "BeforeToolSelection": frozenset({"toolConfig"}),
}
"""Event → the fields of `hookSpecificOutput` that Amanu acts on."""
_MISPLACED = frozenset({"permissionDecision", "permissionDecisionReason"})
_NOT_DONE = {
    "clearContext": "clearContext is not supported: only you can shorten a conversation (/compact, or a new session).",
    "async": "async is not supported: Amanu waited for the hook.",
}
_LONGEST_NAME = 60  # characters


def read_answer(run: HookRun) -> HookDecision:
    """The answer of a hook. Never raises: an answer that cannot be read is a failure of the hook."""
    hook, code = run.hook, run.exit_code
    if run.failure or code is None:
        return _failed(run, run.failure or "It did not end by itself.")
    is_gemini = hook.source.dialect == "gemini"
    answer, is_json = _object(run.stdout)
    if is_gemini and not run.stdout.strip():
        answer = _answer(run.stderr)
    if code >= 2 if is_gemini else code == 2:
        stated, said = _reason(answer or {}), run.stderr.strip()
        reason = (stated or said) if is_gemini else (said or stated)
        reason = reason or ("" if answer else run.stdout.strip()) or "It gave no reason."
        return HookDecision("deny", _cut(reason, MAX_CONTEXT), updated_output=_withheld(run))
    if code != 0 and not (is_gemini and answer):
        return _failed(run, f"It ended with code {code}: {_first_lines(run.stderr or run.stdout) or 'no message'}")
    if is_json and answer is None:
        return _failed(run, "It printed JSON that cannot be read.")
    if answer is None:
        if hook.event in GATES and not is_gemini and _answer(run.stdout.strip().rpartition("\n")[2]):
            return _failed(run, "It printed something before its JSON, so its answer cannot be read.")
        return _plain(run)
    return _structured(run, answer)


def _failed(run: HookRun, why: str) -> HookDecision:
    """The decision for a hook that did not answer; what it would have said is not known."""
    message = f"The hook {run.hook.label} failed. {why}"
    action: dict[str, Action] = {"ask": "ask", "block": "deny", "continue": "none"}
    return HookDecision(action[run.hook.on_failure], _cut(message, MAX_MESSAGE), message=_cut(message, MAX_MESSAGE))


def _plain(run: HookRun) -> HookDecision:
    text = run.stdout.strip()
    if not text:
        return HookDecision()
    if run.hook.event in _TEXT_IS_CONTEXT and run.hook.source.dialect == "claude":
        return HookDecision(context=_cut(text, MAX_CONTEXT))
    return HookDecision(message=_cut(text, MAX_MESSAGE)) if run.hook.source.dialect == "gemini" else HookDecision()


def _structured(run: HookRun, answer: dict[str, Any]) -> HookDecision:
    event = run.hook.event
    details = _table(answer.get("hookSpecificOutput"))
    action, reason = _ACTIONS.get(str(answer.get("decision")), "none"), _reason(answer)
    if event == "PreToolUse" and details.get("permissionDecision") is not None:
        action = _ACTIONS.get(str(details["permissionDecision"]), "ask")  # an unknown word lets nothing pass
    elif event == "PreToolUse" and _misplaced(answer) != "none":
        action = _misplaced(answer)
    if event == "PermissionRequest" and (decision := _table(details.get("decision"))):
        action = _ACTIONS.get(str(decision.get("behavior")), "ask")
        reason = _text(decision.get("message")) or reason
        if decision.get("updatedInput") is not None or decision.get("updatedPermissions") is not None:
            action = "ask" if action == "allow" else action  # it approves something other than what is asked about
            reason = reason or "The hook wants to change the call you are asked about."
    updated = details.get("updatedInput", details.get("tool_input"))
    output = details.get("updatedToolOutput", details.get("updatedMCPToolOutput"))
    request = details.get("llm_request") if event == "BeforeModel" else None
    if event in ("BeforeModel", "AfterModel"):
        output = _reply_text(details.get("llm_response"))
    if action == "deny" and (withheld := _withheld(run)) is not None:
        output = withheld
    ends = answer.get("continue") is False or _table(details.get("decision")).get("interrupt") is True
    return HookDecision(
        action,
        _cut(reason, MAX_CONTEXT),
        context=_cut(_text(details.get("additionalContext")), MAX_CONTEXT),
        message=_cut(_text(answer.get("systemMessage")), MAX_MESSAGE),
        updated_input=cast("dict[str, JsonValue]", updated) if isinstance(updated, dict) else None,
        selected_tools=_selected_tools(details) if event == "BeforeToolSelection" else None,
        next_call=_wanted_call(details.get("tailToolCallRequest")) if event in _AFTER_CALL else None,
        request=cast("dict[str, JsonValue]", request) if isinstance(request, dict) else None,
        updated_output=None if output is None else _cut(_text(output) or json.dumps(output), MAX_CONTEXT),
        ends=ends,
        end_reason=_cut(_text(answer.get("stopReason")) or reason, MAX_MESSAGE) if ends else "",
        ignored=tuple(_ignored(event, answer, details)),
    )


def _withheld(run: HookRun) -> str | None:
    """The text in place of a result that a hook refused: Gemini CLI's hide it, Claude Code's only object to it."""
    hides = run.hook.source.dialect == "gemini" and run.hook.event in _AFTER_CALL
    return "(A hook withholds this result.)" if hides else None


def _wanted_call(wanted: Any) -> WantedCall | None:
    name, arguments = _text(_table(wanted).get("name")), _table(wanted).get("args", {})
    return WantedCall(name, _table(arguments)) if name and isinstance(arguments, dict) else None


def _ignored(event: Event, answer: dict[str, Any], details: dict[str, Any]) -> Iterator[str]:
    """Sentences about the parts of an answer that Amanu does not act on."""
    if "hook_event_name" in answer:  # it printed what it was told
        return
    is_misplaced = event == "PreToolUse" and _misplaced(answer) != "none"
    done = _COMMON | _MISPLACED if is_misplaced else _COMMON
    given = {name for name, value in answer.items() if value and name not in done}
    given |= {name for name, value in details.items() if value and name not in _DONE.get(event, frozenset())}
    given -= {"hookEventName"}
    yield from (_NOT_DONE[name] for name in sorted(given & _NOT_DONE.keys()))
    if unknown := sorted(given - _NOT_DONE.keys()):
        yield f"{event} does nothing with {', '.join(repr(one_line(name)[:_LONGEST_NAME]) for name in unknown)}."
    if event == "BeforeToolSelection" and _text(_table(details.get("toolConfig")).get("mode")).upper() == "ANY":
        yield "The mode ANY only limits the tools: the model may still answer without a call."
    if details.get("tailToolCallRequest") and _wanted_call(details["tailToolCallRequest"]) is None:
        yield "tailToolCallRequest must be an object with `name` and `args`."


def _selected_tools(details: dict[str, Any]) -> frozenset[str] | None:
    """The tools that `toolConfig` leaves (Gemini CLI's hooks reference): none with mode `NONE`, else those named."""
    config = _table(details.get("toolConfig"))
    if _text(config.get("mode")).upper() == "NONE":
        return frozenset()
    named = config.get("allowedFunctionNames")
    return frozenset(map(str, cast("list[Any]", named))) if isinstance(named, list) and named else None


def _reply_text(reply: Any) -> str | None:
    """The text of a reply in Gemini's form: `{text}` or `{candidates: [{content: {parts}}]}`."""
    response = _table(reply)
    if not response:
        return None
    if isinstance(response.get("text"), str):
        return response["text"]
    parts: list[str] = []
    candidates = response.get("candidates")
    for candidate in cast("list[Any]", candidates)[:1] if isinstance(candidates, list) else []:
        content = _table(_table(candidate).get("content")).get("parts")
        for part in cast("list[Any]", content) if isinstance(content, list) else []:
            text = part if isinstance(part, str) else _table(part).get("text")
            parts.append(_text(text))
    return "".join(parts) if parts else None


def _object(text: str) -> tuple[dict[str, Any] | None, bool]:
    """(the JSON object that the text is, or None; whether it was meant to be one)."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None, False
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None, stripped.endswith("}")
    return (cast("dict[str, Any]", value), True) if isinstance(value, dict) else (None, True)


def _answer(text: str) -> dict[str, Any] | None:
    """The object that the text is, if it has a field of an answer: it may be a log, or what the hook was told."""
    answer = _object(text)[0] or {}
    is_answer = not answer.keys().isdisjoint(_COMMON | _MISPLACED) and "hook_event_name" not in answer
    return answer if is_answer else None


def _misplaced(answer: dict[str, Any]) -> Action:
    """The decision that stands where it does not belong, outside `hookSpecificOutput`: a refusal or question counts
    all the same, a permission does not."""
    action = _ACTIONS.get(str(answer.get("permissionDecision")), "none")
    return "none" if action == "allow" else action


def _reason(answer: dict[str, Any]) -> str:
    """The reason that an answer gives, wherever it stands."""
    details = _table(answer.get("hookSpecificOutput"))
    elsewhere = _text(answer.get("reason")) or _text(answer.get("permissionDecisionReason"))
    return _text(details.get("permissionDecisionReason")) or elsewhere


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _cut(text: str, most: int) -> str:
    plain = visible(text)
    return plain if len(plain) <= most else f"{plain[:most]} [… cut, {len(plain):,} characters in all]"


def _first_lines(text: str) -> str:
    return " ".join(text.strip().splitlines()[-3:])[:MAX_MESSAGE]
