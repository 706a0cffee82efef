"""Calls of the session's tools that no model asked for: for what a prompt mentions, and the command lines of a slash
command. No turn has begun, so nobody can be asked: only what policy and listeners allow without asking is run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from amanu.agent.calls import KEPT_CHANGING, bind_to_call, with_standing
from amanu.agent.turn_listeners import after_call, before_call
from amanu.context.attachments import Content
from amanu.core.conversation import Call, Result
from amanu.core.listeners import MAX_CHANGES, Block, ChangedArguments, MustAsk, TurnListener
from amanu.core.tool import AnyTool, CallContext, Outcome, ParsedCall, Preview, Subject, ToolError
from amanu.permissions.offers import permitting
from amanu.session.core import SessionCore
from amanu.tools.files.read_file import ReadFile


class NeedsApproval(ToolError):
    """Only the user can allow the call."""

    def __init__(self, rules: list[str]) -> None:
        """`rules`: those that would allow it, as text; empty where none can."""
        super().__init__("it needs your approval; ask the model to look at it.")
        self.rules = rules


class CallRefused(ToolError):
    """A listener refused the call."""


@dataclass(frozen=True)
class UnaskedCall:
    """A call that has run."""

    call: Call
    """The call that ran, with the arguments as listeners left them."""
    title: str
    rule: str
    """The rule that allowed it."""
    outcome: Outcome
    result: Result
    """Its outcome for the model, as listeners left it; its `notes` are theirs alone."""


class UnaskedCalls:
    """Runs tools of one session for one prompt."""

    def __init__(self, core: SessionCore, tools: Mapping[str, AnyTool], listeners: Sequence[TurnListener]) -> None:
        self._approvals = core.approvals
        self._policy = core.approvals.policy
        self._tools = tools
        self._listeners = listeners

    async def run(self, name: str, **arguments: Any) -> UnaskedCall:
        """Run the tool with those arguments. Raises `ToolError`; `NeedsApproval` when policy does not allow it, and
        `CallRefused`."""
        return await self._run(_call(name, arguments))

    async def read(
        self, tool: str, arguments: Mapping[str, JsonValue], preview: Preview, reading: Callable[[], Awaitable[Content]]
    ) -> Content:
        """Do, by `reading`, what a call of that tool would do: the user's own words allow it, and listeners hear of it
        as of a call. Raises what `run` and `reading` raise."""
        call = _call(tool, arguments)
        match await before_call(self._listeners, call, bind_to_call(preview, call)):
            case Block(reason=reason):
                raise CallRefused(reason)
            case ChangedArguments(arguments=changed):
                run = await self._run(call.model_copy(update={"arguments": dict(changed)}))
                return Content(run.result.text, run.result.pictures, run.title)
            case MustAsk():
                raise NeedsApproval([])
            case _:
                pass
        try:
            content = await reading()
        except ToolError as error:
            raise await self._failure(call, error) from None
        result = Result(call_id=call.call_id, tool=tool, text=content.text, pictures=content.pictures)
        result = await self._after_call(call, result)
        return replace(content, text=result.text, pictures=result.pictures)

    async def _run(self, call: Call) -> UnaskedCall:
        tool = self._tools.get(call.tool)
        if tool is None:
            raise ToolError("No editor is attached." if call.tool != ReadFile.name else "it cannot be read here.")
        context = CallContext(
            call.call_id,
            "",
            0,
            allowed=self._approvals.allowed,
            denied=self._approvals.denied,
            guarded=self._approvals.guarded,
        )
        call, parsed, preview = await self._ask_listeners(call, tool, context)
        context.preview = preview
        subjects = [preview.subject, *preview.extra_subjects]
        if len(self._approvals.allowed(subjects)) < len(subjects):
            raise NeedsApproval(self._rules(subjects))
        rule = self._approvals.verdict(subjects).rule
        try:
            outcome = await tool.run(parsed.params, context)
        except ToolError as error:
            raise await self._failure(call, error) from None
        result = Result(
            call_id=call.call_id,
            tool=call.tool,
            text=outcome.for_model,
            is_error=outcome.is_error,
            fields={name: value for name, value in outcome.fields.items() if name != "notes"},
            pictures=outcome.pictures,
        )
        return UnaskedCall(call, preview.title, rule, outcome, await self._after_call(call, result))

    async def _ask_listeners(
        self, call: Call, tool: AnyTool, context: CallContext
    ) -> tuple[Call, ParsedCall[Any], Preview]:
        """The call as listeners leave it, and its preview. Changed arguments make a new call, about which the listeners
        are asked again."""
        for _ in range(MAX_CHANGES + 1):
            assert isinstance(call.arguments, dict)
            parsed = tool.parse(call.arguments)
            call = call.model_copy(update={"arguments": parsed.arguments})
            preview = bind_to_call(await tool.preview(parsed.params, context), call)
            answer = await before_call(self._listeners, call, preview)
            if not isinstance(answer, Block | ChangedArguments):
                return call, parsed, with_standing(preview, answer)
            await tool.reject(parsed.params, context, answer.reason)  # undoes what the preview prepared
            if isinstance(answer, Block):
                raise CallRefused(answer.reason)
            call = call.model_copy(update={"arguments": dict(answer.arguments)})
        raise CallRefused(KEPT_CHANGING)

    async def _failure(self, call: Call, error: ToolError) -> ToolError:
        """The failure of a call, as listeners leave it."""
        result = Result(call_id=call.call_id, tool=call.tool, text=str(error), is_error=True)
        heard = ToolError((await self._after_call(call, result)).text)
        heard.for_user = error.for_user
        return heard

    async def _after_call(self, call: Call, result: Result) -> Result:
        for listener in self._listeners:
            result = await after_call(listener, call, result)
        return result

    def _rules(self, subjects: list[Subject]) -> list[str]:
        return permitting(self._approvals.rules(), subjects, self._policy.context())


def _call(tool: str, arguments: Mapping[str, JsonValue]) -> Call:
    return Call(call_id=f"call_{uuid4().hex[:16]}", tool=tool, arguments=dict(arguments))
