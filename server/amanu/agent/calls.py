"""The tool calls of one step: find the tool → validate → preview → approve → run → result.

Reads run in parallel, writes in order. A read waits for an earlier call of its step only if that call writes the same
path or is an approved command. A command, a server's tool or a sub-agent divides the edits of a step: it works on those
before it, and those behind it are not looked at until it has ended. Every call gets exactly one result.
"""

import asyncio
import difflib
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import JsonValue

from amanu.agent.turn_listeners import after_call, before_call, before_question, next_call
from amanu.core.conversation import (
    DID_NOT_RUN,
    INTERRUPTED,
    MAY_HAVE_RUN,
    NOT_RUN,
    Call,
    Conversation,
    Result,
    Results,
    SystemText,
)
from amanu.core.emit import Emit
from amanu.core.ending import DAEMON_STOPPED
from amanu.core.foreign_calls import as_ours, our_name
from amanu.core.listeners import MAX_CHANGES, MAX_NEXT, Block, MustAsk, Permitted, TurnListener
from amanu.core.loose_json import JSONFault, read_object
from amanu.core.place import Place
from amanu.core.tool import (
    AgentLabel,
    AnyTool,
    Blocked,
    CallCancelled,
    CallContext,
    NothingToDo,
    Outcome,
    Params,
    ParsedCall,
    Preview,
    SearchAnswer,
    ToolError,
)
from amanu.permissions.approvals import Approvals
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemChanged, ItemCompleted, ItemStarted
from amanu_protocol.items import Citations, Decision, ToolCall, ToolCallState

log = logging.getLogger(__name__)

_BY_USER = "The user ran this directly; it is not the result of one of your tool calls."
_MAX_REDECISIONS = 3
"""How often a call whose effect changed while it waited is decided on again."""

MAX_CALLS = 128
"""Calls of one reply that are run: only a model that has lost its way makes more."""
TOO_MANY = f"Not run: only the first {MAX_CALLS} calls of a reply are run. If you still need this one, call it again."
KEPT_CHANGING = f"Not run: its arguments were changed more than {MAX_CHANGES} times."


_MAX_EXPLAINED = 200_000
"""Characters of arguments that are searched for what is wrong with them."""


Fields = Mapping[str, JsonValue]


async def _as_they_are(fields: Fields) -> Fields:
    return fields


class _Blocked(Exception):
    """A listener blocked the call."""


@dataclass
class CallRun:
    """One call as it passes through its states, and what is known of it so far."""

    call: Call
    """The call of `tool`, with its arguments."""
    tool: AnyTool | None
    item: ToolCall
    called: str
    """The name the model called: `tool`, or one that stands for it (`Tool.target`)."""
    parsed: ParsedCall[Any] | None = None
    fault: str = ""
    """Why its arguments are invalid; "" when they are valid."""
    changes: list[str] = field(default_factory=list[str])
    """What listeners and the user changed in its arguments, a sentence each, for the model."""
    standing: MustAsk | Permitted | None = None
    """What listeners want of the decision on it."""
    preview: Preview | None = None
    allowed: bool = False
    """Policy or the user approved what `preview` shows."""
    live_output: str = ""
    """The output that the user has seen so far."""
    result: Result | None = None
    previewed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the user is asked about it, or need not be."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    next: "Calls | None" = None
    """The call that takes its place, and whose result is its own."""

    @property
    def effect(self) -> str:
        return "read" if self.tool is None else self.tool.effect

    @property
    def divides_edits(self) -> bool:
        """It may read or change any file, so the edits before it and those after it are not reviewed together."""
        return self.tool is not None and (self.tool.effect == "run" or self.tool.delegates)


@dataclass(frozen=True)
class CallEnvironment:
    """What the calls of a turn work with."""

    turn_id: str
    tools: Mapping[str, AnyTool]
    approvals: Approvals
    emit: Emit
    fit_result: Callable[[str], Awaitable[str]]
    """Shortens a result that is too big for the model's window."""
    listeners: Sequence[TurnListener] = ()
    fit_fields: Callable[[Fields], Awaitable[Fields]] = _as_they_are
    """The same for a result in fields."""
    ask_model: Callable[[str, str], Awaitable[str]] | None = None
    search_web: Callable[[str], Awaitable[SearchAnswer | None]] | None = None
    label: AgentLabel | None = None
    """The sub-agent whose calls they are; None: the session's own agent."""
    told_names: set[str] = field(default_factory=set[str])
    """Names of other agents' tools that the model has used, and been told ours of."""
    by_user: bool = False
    """They are the user's: no reply of the model holds them, so it hears their results as messages (`Calls.tell`)."""
    following: int = 0
    """The number of calls before it, if it takes the place of another (`TurnListener.next_call`): its result is part of
    that one's."""


class Calls:
    """The calls of one step. After `run`, even when it was cancelled, `results` has one result per call, in order."""

    def __init__(self, calls: Sequence[Call], step: int, environment: CallEnvironment) -> None:
        self._turn_id = environment.turn_id
        self._step = step
        self._tools = environment.tools
        self._approvals = environment.approvals
        self._emit = environment.emit
        self._fit_result = environment.fit_result
        self._fit_fields = environment.fit_fields
        self._listeners = environment.listeners
        self._environment = environment
        self._label = environment.label
        self._by_user = environment.by_user
        self._notes: list[SystemText] = []
        self._next_calls = asyncio.Lock()
        """Calls that follow others are made one at a time."""
        self._runs = [self._make_run(call) for call in calls]

    def tell(self, conversation: Conversation) -> None:
        """Add a message for each call that the model did not make, as the journal has it: in the order in which they
        ended."""
        for note in self._notes:
            conversation.add_notes(note)

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(run.result or _result_as_called(run, _error_result(run.call, NOT_RUN)) for run in self._runs)

    @property
    def touched(self) -> frozenset[str]:
        """Absolute paths that allowed calls read or wrote."""
        previews = [run.preview for run in self._runs if run.preview is not None and run.allowed]
        following = [run.next.touched for run in self._runs if run.next is not None]
        return frozenset[str]().union(*(preview.reads | preview.writes for preview in previews), *following)

    async def run(self) -> None:
        """Run every call until it has its result. When cancelled, the unfinished calls are answered as cancelled
        first."""
        for run in self._runs[MAX_CALLS:]:
            run.previewed.set()
            run.asked.set()
            run.finished.set()
            self._finish(run, "cancelled", _error_result(run.call, TOO_MANY), error=TOO_MANY)
        tasks = [
            asyncio.create_task(self._run_call(run, self._runs[:index]))
            for index, run in enumerate(self._runs[:MAX_CALLS])
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                if not task.cancelling():  # once: `gather` has done it, and the first that ended has ended it
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for run in self._runs:  # cancelled before its first step: its task never ran
                self._finish(run, "cancelled", _error_result(run.call, NOT_RUN), error="Cancelled before it started.")

    def refuse(self, reason: str) -> None:
        """Answer every call with the error `reason`; run none."""
        for run in self._runs:
            self._finish(run, "cancelled", _error_result(run.call, reason), error=reason)

    def _finish_cancelled(self, run: CallRun, error: asyncio.CancelledError) -> None:
        ran = run.item.state == "executing"
        if ran and run.live_output:
            run.item = run.item.model_copy(update={"output": run.live_output})
        if DAEMON_STOPPED in error.args:  # as after a kill (`session/restore.py`)
            result = _error_result(run.call, INTERRUPTED if ran else NOT_RUN)
            self._finish(run, "failed" if ran else "cancelled", result, error=MAY_HAVE_RUN if ran else DID_NOT_RUN)
            return
        text = "Cancelled by the user while it ran; its effect may be partial." if ran else NOT_RUN
        text = str(error) if isinstance(error, CallCancelled) else text
        self._finish(run, "cancelled", _error_result(run.call, text), error="Cancelled.")

    async def _run_call(self, run: CallRun, earlier: Sequence[CallRun]) -> None:
        try:
            tool, params = self._validate(run)
            context = CallContext(
                call_id=run.call.call_id,
                turn_id=self._turn_id if self._label is None else self._label.turn_id,
                step=self._step,
                agent=self._label,
                output=lambda text: self._show_live(run, text),
                movable=lambda: self._show_movable(run),
                allowed=self._approvals.allowed,
                denied=self._approvals.denied,
                guarded=self._approvals.guarded,
                ask_model=self._environment.ask_model,
                search_web=self._environment.search_web,
            )
            await self._wait_to_preview(run, earlier)
            preview = _bind_to_call(await tool.preview(params, context), run)
            params, preview = await self._ask_listeners(run, tool, params, context, preview)
            outcome: Outcome | None = None
            while True:
                params, decision = await self._decide_edited(run, tool, params, context, preview, earlier)
                if decision.outcome in ("rejected", "denied", "cancelled"):
                    break
                outcome = await self._execute(run, tool, params, context, decision)
                if outcome.changes is None and not self._may_ask_for(outcome.blocked, decision, context):
                    break
                context.ran = outcome
                run.item = run.item.model_copy(update={**self._shown(outcome), "decision": None})
                if outcome.changes is not None:
                    await self._wait_to_preview_changes(run, earlier)
                preview = _bind_to_call(await tool.preview(params, context), run)
            is_allowed = decision.outcome not in ("rejected", "denied", "cancelled")
            if outcome is None or (not is_allowed and context.ran is None):
                await self._end_rejected(run, tool, params, context, decision)
                return
            if not is_allowed:
                said = await tool.reject(params, context, decision.reason or "")
                outcome = _with_refusal(outcome, said or _rejection_text(decision))
            text = await self._fit_result(self._emit.redact(outcome.for_model) or "(no output)")
            fields = await self._fit_fields(_redacted(outcome.fields, self._emit.redact))
            await self._end_run(run, outcome, text, fields, error=None if is_allowed else decision.reason)
        except _Blocked as block:
            reason = self._emit.redact(str(block))
            self._finish(run, "rejected", _error_result(run.call, reason), error=reason)
        except NothingToDo as nothing:
            text = self._emit.redact(str(nothing))
            run.item = run.item.model_copy(update={"summary": one_line(self._emit.redact(nothing.for_user))})
            await self._end(run, "unchanged", _error_result(run.call, text))
        except (ToolError, AmanuError) as error:
            text = self._emit.redact(str(error))
            said = self._emit.redact(error.for_user) if isinstance(error, ToolError) else text
            await self._end(run, "failed", _with_changes(run, _error_result(run.call, text)), error=said)
        except asyncio.CancelledError as error:
            self._finish_cancelled(run, error)
            raise
        except Exception:
            log.exception("tool %s failed unexpectedly", run.call.tool)
            text = f"{run.call.tool} failed because of an internal error in Amanu. Try another way."
            self._finish(run, "failed", _error_result(run.call, text), error=text)
        finally:
            run.previewed.set()
            run.asked.set()
            run.finished.set()

    async def _decide_edited(
        self,
        run: CallRun,
        tool: AnyTool,
        params: Params,
        context: CallContext,
        preview: Preview,
        earlier: Sequence[CallRun],
    ) -> tuple[Params, Decision]:
        """Have the call decided, as often as the user changes its command. Returns the arguments to go on with, too."""
        decision = await self._decide(run, tool, params, context, preview, earlier)
        while decision.outcome == "edited":
            context.ran = None  # it was another command
            params, preview = await self._edit_command(run, tool, context, decision.command or "")
            decision = await self._decide(run, tool, params, context, preview, earlier)
        return params, decision

    async def _execute(
        self, run: CallRun, tool: AnyTool, params: Params, context: CallContext, decision: Decision
    ) -> Outcome:
        run.live_output = ""
        self._set_state(run, "executing")
        preview = run.preview
        if run.effect != "read" or preview is None or preview.subject.reach != "workspace" or preview.subject.server:
            await self._emit.durable()  # the decision is on disk before the effect
        started = time.monotonic()
        try:
            return await tool.run(params, context)
        finally:
            if run.effect == "run":
                self._approvals.add_run_time(decision, time.monotonic() - started)

    def _show_live(self, run: CallRun, text: str) -> None:
        text = self._emit.redact(text)
        run.live_output += text
        self._emit.delta(run.call.call_id, text)

    def _show_movable(self, run: CallRun) -> None:
        if run.result is None:
            run.item = run.item.model_copy(update={"movable": True, "output": run.live_output})
            self._emit(ItemChanged(item=run.item))

    def _may_ask_for(self, blocked: Blocked | None, decision: Decision, context: CallContext) -> bool:
        """Whether something was blocked that the user was not asked for before: who left it out once is not asked
        again."""
        if blocked is None:
            return False
        asked = frozenset[str]() if context.blocked is None else context.blocked.needs
        if decision.by == "user":
            asked |= {*context.likely_grants}
        return not blocked.needs <= asked

    async def _ask_listeners(
        self, run: CallRun, tool: AnyTool, params: Params, context: CallContext, preview: Preview
    ) -> tuple[Params, Preview]:
        """Ask the listeners. Changed arguments make a new call, about which all listeners are asked again. Returns the
        arguments and the preview to go on with. Raises `_Blocked`, and `ToolError` for changed arguments that are
        invalid."""
        for _ in range(MAX_CHANGES + 1):
            answer = await before_call(self._listeners, run.call, preview)
            if answer is None or isinstance(answer, MustAsk | Permitted):
                run.standing = answer
                return params, with_standing(preview, run.standing)
            await tool.reject(params, context, answer.reason)  # undoes what the preview prepared
            if isinstance(answer, Block):
                raise _Blocked(answer.reason)
            run.changes.append(f"Changed before it ran: {answer.reason}")
            params, preview = await self._change(run, tool, context, answer.arguments)
        await tool.reject(params, context, KEPT_CHANGING)
        raise _Blocked(KEPT_CHANGING)

    async def _edit_command(
        self, run: CallRun, tool: AnyTool, context: CallContext, command: str
    ) -> tuple[Params, Preview]:
        """Go on with the user's own command line: a new call, about which the listeners are asked again. Raises as
        `_ask_listeners` does."""
        run.changes.append(f"The user changed the command before it ran, to: {self._emit.redact(command)}")
        arguments = run.call.arguments if isinstance(run.call.arguments, dict) else {}
        context.edited = True
        params, preview = await self._change(run, tool, context, tool.with_command(arguments, command))
        return await self._ask_listeners(run, tool, params, context, preview)

    async def _change(
        self, run: CallRun, tool: AnyTool, context: CallContext, arguments: Fields
    ) -> tuple[Params, Preview]:
        """Give the call other arguments. Returns these and its preview. Raises `ToolError` when they are invalid."""
        run.parsed = tool.parse(arguments)
        run.call = run.call.model_copy(update={"arguments": run.parsed.arguments})
        run.item = run.item.model_copy(update={"arguments": run.parsed.arguments})
        return run.parsed.params, _bind_to_call(await tool.preview(run.parsed.params, context), run)

    async def _decide(
        self,
        run: CallRun,
        tool: AnyTool,
        params: Params,
        context: CallContext,
        preview: Preview,
        earlier: Sequence[CallRun],
    ) -> Decision:
        """Have the call decided, and wait until it may run. If what it would do has changed by then, it is decided
        again: an approval covers only what was shown. Raises `ToolError` when it keeps changing."""
        for _ in range(_MAX_REDECISIONS + 1):
            self._show_preview(run, preview)
            await self._wait_to_ask(run, earlier)
            refusal, preview = await self._before_question(run, tool, params, context, preview)
            decision = refusal or await self._approvals.decide(
                run.call.call_id,
                preview,
                lambda: self._await_approval(run),
                None if preview.plan is None else _previewing_again(tool, params, context, run, preview),
                self._label,
            )
            run.asked.set()
            preview = self._approvals.take_revised(run.call.call_id) or preview
            if decision.outcome == "edited":
                return decision
            run.item = run.item.model_copy(update={"decision": decision})
            context.by_user, context.decision = decision.by == "user", decision
            if decision.outcome in ("rejected", "denied", "cancelled"):
                return decision
            run.allowed = True
            finds_edits = decision.place is not None and decision.place.finds == "session"
            await self._wait_to_run(run, earlier, finds_edits=finds_edits)
            context.accept_all = decision.outcome == "allowed"
            context.preview = _decided(preview, decision)
            current = await tool.preview_again(params, context)
            current = preview if current is None else _bind_to_call(current, run)
            # Mode, trust and rules may have changed while it waited, too. Edits reviewed hunk by hunk are applied
            # already.
            if current.digest == preview.digest and (
                decision.outcome != "allowed" or self._decision_stands(run, current, decision)
            ):
                context.still_valid = _make_recheck(tool, params, context, run, preview.digest)
                return decision
            run.allowed = False
            run.item = run.item.model_copy(update={"decision": None})  # it was about the earlier preview
            preview = current
        raise ToolError("This call kept changing while it waited for approval, so it was not run.")

    async def _before_question(
        self, run: CallRun, tool: AnyTool, params: Params, context: CallContext, preview: Preview
    ) -> tuple[Decision | None, Preview]:
        """Ask the listeners about a call that the user would be asked about. Returns their no if the call has run
        already, and the preview to go on with. Raises `_Blocked` for a no to a call that has not run."""
        if not self._listeners or not self._approvals.would_ask(preview):
            return None, preview
        answer = await before_question(self._listeners, run.call, preview)
        if isinstance(answer, Block):
            if context.ran is not None:
                return Decision(outcome="denied", by="rule", rule="a hook", reason=answer.reason), preview
            await tool.reject(params, context, answer.reason)
            raise _Blocked(answer.reason)
        if answer is not None and not isinstance(run.standing, MustAsk):
            run.standing = answer
        return None, with_standing(preview, run.standing)

    def _decision_stands(self, run: CallRun, current: Preview, decision: Decision) -> bool:
        """Whether that approval still covers the call as it is now."""
        if current.proposal_id is not None and not self._approvals.same_bases(run.call.call_id, current.proposal_id):
            return False
        return self._approvals.still_allowed(current, decision)

    def _validate(self, run: CallRun) -> tuple[AnyTool, Params]:
        call, tool = run.call, run.tool
        if run.fault:
            raise ToolError(run.fault)
        if tool is None:
            near = difflib.get_close_matches(call.tool, self._tools, n=3)
            lead = f"The nearest of {len(self._tools)} tools" if 0 < len(near) < len(self._tools) else "Available"
            raise ToolError(f"Unknown tool {call.tool!r}. {lead}: {', '.join(near or sorted(self._tools))}.")
        if isinstance(call.arguments, str):
            raise ToolError(
                f"The arguments of {call.tool} are not a JSON object. {_fault_in(call.arguments)}Call it again with "
                f"arguments that match its schema: {json.dumps(tool.spec().parameters)}"
            )
        assert run.parsed is not None
        return tool, run.parsed.params

    async def _wait_to_preview(self, run: CallRun, earlier: Sequence[CallRun]) -> None:
        """Return when the call may be previewed. Edits are computed in call order, each as if its predecessors were
        accepted, after the last call that divides them; a command runs after the edits before it, so it is also asked
        about after them."""
        if run.tool is not None and run.tool.waits:
            for predecessor in earlier:
                await predecessor.finished.wait()
        if run.effect == "read":
            return
        divided = max((at for at, predecessor in enumerate(earlier, 1) if predecessor.divides_edits), default=0)
        for at, predecessor in enumerate(earlier):
            has_effect = predecessor.effect == "write" or predecessor.divides_edits
            if run.effect == "write" and at < divided and has_effect:
                await predecessor.finished.wait()
            elif predecessor.effect == "write":
                await predecessor.previewed.wait()

    async def _wait_to_preview_changes(self, run: CallRun, earlier: Sequence[CallRun]) -> None:
        """Wait until the edits that a command saw are decided, so that what it changed is a proposal of its own."""
        undecided = [each for each in earlier if each.effect == "write" and not each.finished.is_set()]
        if undecided:
            self._emit(ItemChanged(item=run.item))  # how it went
        for predecessor in undecided:
            await predecessor.finished.wait()

    async def _wait_to_run(self, run: CallRun, earlier: Sequence[CallRun], *, finds_edits: bool) -> None:
        """Return when every earlier call that this one depends on has ended; reads depend on the fewest.
        `finds_edits`: where it runs, the edits before it are made already."""
        self._set_state(run, "scheduled")
        for predecessor in earlier:
            if predecessor.effect == "read":
                continue
            if finds_edits and predecessor.effect == "write":
                await predecessor.previewed.wait()
            elif run.divides_edits:
                await predecessor.finished.wait()
            elif predecessor.effect == "run":
                if run.effect == "write" or predecessor.allowed:
                    await predecessor.finished.wait()
            else:
                await predecessor.previewed.wait()
                if _touches_same_path(run, predecessor) and not _same_proposal(run, predecessor):
                    await predecessor.finished.wait()

    async def _wait_to_ask(self, run: CallRun, earlier: Sequence[CallRun]) -> None:
        """Return when the user may be asked about the call: after the question about each earlier edit and, because the
        edits of one step form one proposal, once those behind this one, up to the next call that waits for its end,
        have joined it. A call that only reads waits for neither."""
        if run.effect == "read":
            return
        if run.effect == "write":
            await self._wait_for_later_edits(run)
        for predecessor in earlier:
            if predecessor.effect == "write":
                await predecessor.asked.wait()

    def _await_approval(self, run: CallRun) -> None:
        self._set_state(run, "awaitingApproval")
        run.asked.set()

    async def _wait_for_later_edits(self, run: CallRun) -> None:
        for later in self._runs[self._runs.index(run) + 1 :]:
            if later.divides_edits or (later.tool is not None and later.tool.waits):
                return
            if later.effect == "write":
                await later.previewed.wait()

    def _show_preview(self, run: CallRun, preview: Preview) -> None:
        run.preview = preview
        title = one_line(preview.title)
        run.item = run.item.model_copy(update={"title": title, "proposal_id": preview.proposal_id})
        run.previewed.set()

    async def _end_rejected(
        self, run: CallRun, tool: AnyTool, params: Params, context: CallContext, decision: Decision
    ) -> None:
        message = await tool.reject(params, context, decision.reason or "")
        text = message or _rejection_text(decision)
        await self._end(run, "rejected", _with_changes(run, _error_result(run.call, text)), error=decision.reason)

    async def _end_run(
        self, run: CallRun, outcome: Outcome, text: str, fields: Fields, error: str | None = None
    ) -> None:
        call = run.call
        result = Result(
            call_id=call.call_id,
            tool=call.tool,
            text=text,
            is_error=outcome.is_error,
            fields=dict(fields),
            pictures=outcome.pictures,
        )
        if run.parsed is not None and run.parsed.note:
            result = result.amended(f"[{run.parsed.note}]")
        result = _with_changes(run, result)
        run.item = run.item.model_copy(update=self._shown(outcome))
        if outcome.title:
            run.item = run.item.model_copy(update={"title": one_line(outcome.title)})
        state = "rejected" if outcome.refused else "failed" if error is not None else "succeeded"
        await self._end(run, state, result, error)
        if outcome.sources:
            item_id = f"{self._turn_id}.{call.call_id}.sources"
            sources = list(outcome.sources)
            self._emit(ItemCompleted(item=Citations(item_id=item_id, turn_id=self._turn_id, sources=sources)))

    def _shown(self, outcome: Outcome) -> dict[str, Any]:
        """What the user sees of it, as fields of the call's item."""
        return {
            "movable": False,
            "output": self._emit.redact(outcome.for_user),
            "summary": one_line(self._emit.redact(outcome.line)),
            "warns": outcome.warns,
            "blob": outcome.blob,
            "sandbox": outcome.sandbox,
            "not_undone": [one_line(self._emit.redact(name)) for name in outcome.not_undone],
        }

    async def _end(
        self,
        run: CallRun,
        state: Literal["succeeded", "failed", "rejected", "unchanged"],
        result: Result,
        error: str | None = None,
    ) -> None:
        """Show the result to the listeners, then finish the call, with the result of another if one of them wants that.
        It has ended: a cancel that arrives meanwhile does not change how."""
        failed = result.is_error
        try:
            for listener in self._listeners:
                result = await after_call(listener, run.call, result)
            failed = result.is_error
            if (call := await next_call(self._listeners, run.call)) is not None:
                result = await self._with_next(run, call, result)
        finally:
            if run.next is not None:
                [made] = run.next.results
                result = made.model_copy(update={"call_id": result.call_id, "tool": result.tool})
            if state == "unchanged":
                self._finish(run, "succeeded", result)
            else:
                self._finish(run, "failed" if failed and state == "succeeded" else state, result, error)

    async def _with_next(self, run: CallRun, call: Call, result: Result) -> Result:
        """Make the call that takes the place of that run, after the other calls of the step. Returns the run's own
        result, which only counts if there was no other."""
        if self._environment.following >= MAX_NEXT:
            return result.amended(f"[{call.tool} was not run: {MAX_NEXT} calls have followed one another here.]")
        run.previewed.set()
        run.asked.set()
        run.finished.set()
        for other in self._runs:
            await other.finished.wait()
        async with self._next_calls:
            self._emit(ItemStarted(item=call_item(self._turn_id, call, self._tools.get(call.tool))))
            run.next = Calls([call], self._step, replace(self._environment, following=self._environment.following + 1))
            await run.next.run()
        return result

    def _finish(
        self,
        run: CallRun,
        state: Literal["succeeded", "failed", "cancelled", "rejected"],
        result: Result,
        error: str | None = None,
    ) -> None:
        """Put the call's end on record, once: later calls of this do nothing."""
        if run.result is not None:
            return
        run.result = result = _result_as_called(run, result)
        run.item = run.item.model_copy(update={"state": state, "error": error, "movable": False})
        entry = result if self._environment.following == 0 else None
        if entry is not None and self._by_user:
            self._notes.append(_told(result, run.tool))
            entry = Results(results=(), notes=(self._notes[-1],))
        self._emit(ItemCompleted(item=run.item), entry=entry)

    def _set_state(self, run: CallRun, state: ToolCallState) -> None:
        run.item = run.item.model_copy(update={"state": state})
        self._emit(ItemChanged(item=run.item))

    def _tool(self, name: str) -> AnyTool | None:
        stand_ins = (found for tool in self._tools.values() if (found := tool.stands_for(name)) is not None)
        return self._tools.get(name) or next(stand_ins, None)

    def _make_run(self, call: Call) -> CallRun:
        called, parsed, fault = call.tool, None, ""
        tool = self._tool(our_name(called, self._tools))
        if isinstance(call.arguments, dict):
            try:
                ours = as_ours(called, call.arguments, self._tools)
                tool = self._tool(ours.tool)
                if tool is not None:
                    tool, arguments = tool.target(ours.arguments)
                    call = call.model_copy(update={"tool": tool.name, "arguments": dict(arguments)})
                    parsed = tool.parse(arguments)
                    call = call.model_copy(update={"arguments": parsed.arguments})
                    note = " ".join(filter(None, [self._name_note(called, ours.tool), parsed.note]))
                    parsed = replace(parsed, note=note)
            except ToolError as error:
                fault = str(error)
            except ValueError as error:
                fault = f"Wrong arguments for {called}: {error}."
        return CallRun(call, tool, call_item(self._turn_id, call, tool), called, parsed, fault)

    def _name_note(self, called: str, name: str) -> str:
        """The sentence that tells the model, once in a turn, that a tool has another name here; "" afterwards."""
        told = self._environment.told_names
        if called == name or called in told:
            return ""
        told.add(called)
        return f"{called} is {name} here, with its arguments."


def call_item(turn_id: str, call: Call, tool: AnyTool | None) -> ToolCall:
    """The item that shows a call as the model wrote it; without arguments while the model is still writing it."""
    arguments: dict[str, JsonValue] = call.arguments if isinstance(call.arguments, dict) else {"text": call.arguments}
    return ToolCall(
        item_id=call.call_id,
        turn_id=turn_id,
        tool=call.tool,
        title=call.tool if tool is None else one_line(tool.title_of(arguments)),
        effect="read" if tool is None else tool.effect,
        arguments=arguments,
        state="validating",
        output="",
    )


def _bind_to_call(preview: Preview, run: CallRun) -> Preview:
    return with_standing(bind_to_call(preview, run.call), run.standing)


def bind_to_call(preview: Preview, call: Call) -> Preview:
    """The preview with the call's arguments on its subjects, for rules that match them, and with a digest of everything
    that is decided on."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    subject, *extra = (replace(part, arguments=arguments) for part in (preview.subject, *preview.extra_subjects))
    # The same for arguments in any order; it includes what the tool understood them to mean.
    canonical = json.dumps([call.tool, arguments, preview.digest], sort_keys=True, ensure_ascii=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return replace(preview, subject=subject, extra_subjects=tuple(extra), digest=digest)


def with_standing(preview: Preview, standing: MustAsk | Permitted | None) -> Preview:
    """The preview with what listeners want of the decision on its subjects."""
    match standing:
        case MustAsk(reason=reason):
            return replace(preview, subject=replace(preview.subject, must_ask=preview.subject.must_ask or reason))
        case Permitted(reason=reason):
            subject, *extra = (
                replace(part, permitted_by=reason) for part in (preview.subject, *preview.extra_subjects)
            )
            return replace(preview, subject=subject, extra_subjects=tuple(extra))
        case None:
            return preview


def _previewing_again(
    tool: AnyTool, params: Params, context: CallContext, run: CallRun, preview: Preview
) -> Callable[[], Awaitable[Preview]]:
    async def preview_again() -> Preview:
        current = await tool.preview_again(params, context)
        return preview if current is None else _bind_to_call(current, run)

    return preview_again


def _make_recheck(
    tool: AnyTool, params: Params, context: CallContext, run: CallRun, digest: str
) -> Callable[[], Awaitable[bool]]:
    async def still_valid() -> bool:
        current = await tool.preview_again(params, context)
        return current is None or _bind_to_call(current, run).digest == digest

    return still_valid


def _decided(preview: Preview, decision: Decision) -> Preview:
    """The preview of a command line at the place that was decided on."""
    command = preview.command
    if command is None or decision.place is None:
        return preview
    if decision.by != "user":  # nobody was shown the files that it runs, so they may change
        requirements = replace(command.requirements, pinned={}, watched=())
        preview = replace(preview, command=replace(command, requirements=requirements))
    return preview.at(Place.read(decision.place))


def _with_refusal(outcome: Outcome, refusal: str) -> Outcome:
    """The outcome of a command that was tried, and may not be run with what it needs. One that had its effect in the
    workspace has failed: that is not to be called rejected."""
    fields = dict(outcome.fields)
    if fields:
        fields["notes"] = "\n".join(filter(None, [str(fields.get("notes", "")), refusal]))
    return replace(
        outcome,
        for_model=f"{outcome.for_model}\n{refusal}",
        for_user=f"{outcome.for_user}\n{refusal}",
        fields=fields,
        refused=not outcome.not_undone,
        is_error=True,
    )


def _redacted(fields: Fields, redact: Callable[[str], str]) -> Fields:
    def clean(value: JsonValue) -> JsonValue:
        match value:
            case str():
                return redact(value)
            case list():
                return [clean(item) for item in value]
            case dict():
                return {name: clean(item) for name, item in value.items()}
            case _:
                return value

    return {name: clean(value) for name, value in fields.items()}


def _touches_same_path(run: CallRun, predecessor: CallRun) -> bool:
    if run.preview is None or predecessor.preview is None:
        return False
    return not predecessor.preview.writes.isdisjoint(run.preview.reads | run.preview.writes)


def _same_proposal(run: CallRun, predecessor: CallRun) -> bool:
    if run.preview is None or predecessor.preview is None:
        return False
    return run.preview.proposal_id is not None and run.preview.proposal_id == predecessor.preview.proposal_id


def _told(result: Result, tool: AnyTool | None) -> SystemText:
    """The message that tells the model of a call that it did not make."""
    lead = _BY_USER if tool is None else tool.lead or _BY_USER
    return SystemText(text=f"{lead}\n{block('result', result.text)}")


def _rejection_text(decision: Decision) -> str:
    if decision.by == "rule":
        return decision.reason or "Denied by a rule."
    if decision.reason:
        return f"The user rejected this and said: {decision.reason}"
    return "The user rejected this. Do not try the same again: ask, or find another way."


def _with_changes(run: CallRun, result: Result) -> Result:
    """The result, with what was changed in the call."""
    for change in run.changes:
        result = result.amended(f"[{change}]")
    return result


def _result_as_called(run: CallRun, result: Result) -> Result:
    """The result under the name the model called: services match results with calls."""
    return result if result.tool == run.called else result.model_copy(update={"tool": run.called})


def _error_result(call: Call, text: str) -> Result:
    return Result(call_id=call.call_id, tool=call.tool, text=text, is_error=True)


def _fault_in(arguments: str) -> str:
    """The place where arguments stop being JSON, and what is expected there, as a sentence; "" for none."""
    if len(arguments) > _MAX_EXPLAINED:
        return ""
    try:
        read_object(arguments)
    except JSONFault as fault:
        return f"At {fault}. "
    return ""
