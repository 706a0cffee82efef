"""The tool calls of one step: find → validate → preview → approve → run → result.

Readers run in parallel, writers in order. A read waits for an earlier call of its step only if that writes the same
path or is an approved command; a pending approval delays nothing else. Every call gets exactly one result.
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

from amanu.agent.turn_listeners import after_call, before_call
from amanu.core.conversation import NOT_RUN, Call, Result
from amanu.core.emit import Emit
from amanu.core.listeners import MAX_CHANGES, Block, TurnListener
from amanu.core.tool import AnyTool, CallContext, Outcome, Params, ParsedCall, Preview, ToolError
from amanu.permissions.approvals import Approvals
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemChanged, ItemCompleted
from amanu_protocol.items import Decision, ToolCall, ToolCallState

log = logging.getLogger(__name__)

_ASKED_AGAIN = 3
"""Times a call that became something else is decided on anew."""


MOST = 128
"""Calls of one reply that are run; nobody means more, but for a model that lost its way."""
TOO_MANY = f"Not run: of one reply the first {MOST} calls are run. If you still need this one, call again."


class _Blocked(Exception):
    """A listener did not let the call pass."""


_KEPT_CHANGING = f"Not run: its arguments were changed more than {MAX_CHANGES} times."


@dataclass
class CallRun:
    """One call on its way through its states."""

    call: Call
    tool: AnyTool | None
    item: ToolCall
    parsed: ParsedCall[Any] | None = None
    fault: str = ""
    """Why its arguments cannot be understood."""
    changes: list[str] = field(default_factory=list[str])
    """What listeners changed of its arguments."""
    preview: Preview | None = None
    allowed: bool = False
    result: Result | None = None
    previewed: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def effect(self) -> str:
        return "read" if self.tool is None else self.tool.effect


@dataclass(frozen=True)
class CallEnvironment:
    """What the calls of a turn work with."""

    turn_id: str
    tools: Mapping[str, AnyTool]
    approvals: Approvals
    emit: Emit
    fitting: Callable[[str], Awaitable[str]]
    """A result as the model gets it, when it is too big for its window."""
    listeners: Sequence[TurnListener] = ()


class Calls:
    """The calls of one step. `run` them; afterwards, even when cancelled, `results` has one for each, in order."""

    def __init__(
        self,
        calls: Sequence[Call],
        step: int,
        environment: CallEnvironment,
    ) -> None:
        self._turn_id = environment.turn_id
        self._step = step
        self._tools = environment.tools
        self._approvals = environment.approvals
        self._emit = environment.emit
        self._fitting = environment.fitting
        self._listeners = environment.listeners
        self._slots = [self._slot(call) for call in calls]

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(slot.result or _failed(slot.call, NOT_RUN) for slot in self._slots)

    @property
    def touched(self) -> frozenset[str]:
        """Absolute paths of what was allowed, and so was read or written."""
        previews = [slot.preview for slot in self._slots if slot.preview is not None and slot.allowed]
        return frozenset[str]().union(*(preview.reads | preview.writes for preview in previews))

    async def run(self) -> None:
        """Bring every call to its end. On cancellation each unfinished call is answered as cancelled first."""
        for slot in self._slots[MOST:]:
            slot.previewed.set()
            slot.finished.set()
            self._finish(slot, "cancelled", _failed(slot.call, TOO_MANY), error=TOO_MANY)
        tasks = [
            asyncio.create_task(self._bring_to_end(slot, self._slots[:index]))
            for index, slot in enumerate(self._slots[:MOST])
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                if not task.cancelling():  # once: `gather` has done it, and the first that ended has ended it
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for slot in self._slots:  # cancelled before its first step: its task never ran
                self._finish(slot, "cancelled", _failed(slot.call, NOT_RUN), error="Cancelled before it started.")

    def refuse(self, reason: str) -> None:
        """Answer every call with that error, running none."""
        for slot in self._slots:
            self._finish(slot, "cancelled", _failed(slot.call, reason), error=reason)

    async def _bring_to_end(self, slot: CallRun, earlier: Sequence[CallRun]) -> None:
        try:
            tool, params = self._validate(slot)
            context = CallContext(
                call_id=slot.call.call_id,
                turn_id=self._turn_id,
                step=self._step,
                output=lambda text: self._emit.delta(slot.call.call_id, self._emit.plain(text)),
                allowed=self._approvals.allowed,
                denied=self._approvals.denied,
            )
            await self._may_preview(slot, earlier)
            preview = _about_call(await tool.preview(params, context), slot.call)
            params, preview = await self._ask_listeners(slot, tool, params, context, preview)
            decision = await self._decided(slot, tool, params, context, preview, earlier)
            if decision.outcome in ("rejected", "denied", "cancelled"):
                await self._rejected(slot, tool, params, context, decision)
                return
            self._change(slot, "executing")
            if slot.effect != "read":
                await self._emit.durable()  # the decision is on disk before the effect
            started = time.monotonic()
            try:
                outcome = await tool.run(params, context)
            finally:
                if slot.effect == "run":
                    self._approvals.add_run_time(decision, time.monotonic() - started)
            text = await self._fitting(self._emit.plain(outcome.for_model) or "(no output)")
            await self._succeeded(slot, outcome, text)
        except _Blocked as block:
            reason = self._emit.plain(str(block))
            self._finish(slot, "rejected", _failed(slot.call, reason), error=reason)
        except (ToolError, AmanuError) as error:
            text = self._emit.plain(str(error))
            await self._end(slot, "failed", _failed(slot.call, text), error=text)
        except asyncio.CancelledError:
            ran = slot.item.state == "executing"
            text = "Cancelled by the user while it ran; its effect may be partial." if ran else NOT_RUN
            self._finish(slot, "cancelled", _failed(slot.call, text), error="Cancelled.")
            raise
        except Exception:
            log.exception("tool %s failed unexpectedly", slot.call.tool)
            text = f"{slot.call.tool} failed because of an internal error of Amanu. Try another way."
            self._finish(slot, "failed", _failed(slot.call, text), error=text)
        finally:
            slot.previewed.set()
            slot.finished.set()

    async def _ask_listeners(
        self, slot: CallRun, tool: AnyTool, params: Params, context: CallContext, preview: Preview
    ) -> tuple[Params, Preview]:
        """Ask the listeners; what one of them changed is a new call, about which all are asked again. Raises
        `_Blocked`, and `ToolError` for changed arguments that are wrong."""
        for _ in range(MAX_CHANGES + 1):
            answer = await before_call(self._listeners, slot.call, preview)
            if answer is None:
                return params, preview
            await tool.reject(params, context, answer.reason)  # what the preview has prepared
            if isinstance(answer, Block):
                raise _Blocked(answer.reason)
            slot.parsed = tool.parse(answer.arguments)
            slot.changes.append(f"Changed before it ran: {answer.reason}")
            slot.call = slot.call.model_copy(update={"arguments": slot.parsed.arguments})
            params = slot.parsed.params
            slot.item = slot.item.model_copy(update={"arguments": slot.parsed.arguments})
            preview = _about_call(await tool.preview(params, context), slot.call)
        await tool.reject(params, context, _KEPT_CHANGING)
        raise _Blocked(_KEPT_CHANGING)

    async def _decided(
        self,
        slot: CallRun,
        tool: AnyTool,
        params: Params,
        context: CallContext,
        preview: Preview,
        earlier: Sequence[CallRun],
    ) -> Decision:
        """Have the call decided, and wait until it may run. What is something else by then is decided again: an
        approval is for what was shown. Raises `ToolError` when it does not keep still."""
        for _ in range(_ASKED_AGAIN + 1):
            self._previewed(slot, preview)
            decision = await self._approvals.decide(
                slot.call.call_id, preview, lambda: self._change(slot, "awaitingApproval")
            )
            slot.item = slot.item.model_copy(update={"decision": decision})
            context.by_user = decision.by == "user"
            if decision.outcome in ("rejected", "denied", "cancelled"):
                return decision
            slot.allowed = True
            await self._may_run(slot, earlier)
            context.accept_all = decision.outcome == "allowed"
            context.preview = _granted(preview, decision, secrets=self._approvals.reveals_secrets(preview, decision))
            current = await tool.again(params, context)
            current = preview if current is None else _about_call(current, slot.call)
            # While it waited, mode, trust and rules may have changed, too. What was reviewed is done already.
            if current.digest == preview.digest and (
                decision.outcome != "allowed" or self._holds(slot, current, decision)
            ):
                context.still = _still(tool, params, context, slot.call, preview.digest)
                return decision
            slot.allowed = False
            slot.item = slot.item.model_copy(update={"decision": None})  # of what it was
            preview = current
        raise ToolError("What this call would do changed each time it was decided on, so it was not done.")

    def _holds(self, slot: CallRun, current: Preview, decision: Decision) -> bool:
        """Whether that yes still stands for the call as it is now."""
        if current.proposal_id is not None and not self._approvals.same_bases(slot.call.call_id, current.proposal_id):
            return False
        return self._approvals.still_allowed(current, decision)

    def _validate(self, slot: CallRun) -> tuple[AnyTool, Params]:
        call, tool = slot.call, slot.tool
        if tool is None:
            near = difflib.get_close_matches(call.tool, self._tools, n=3)
            names = near or sorted(self._tools)
            raise ToolError(f"There is no tool {call.tool!r}. There is: {', '.join(names)}.")
        if isinstance(call.arguments, str):
            raise ToolError(
                f"The arguments of {call.tool} are not a JSON object. Send the call again with arguments that fit "
                f"its schema: {json.dumps(tool.spec().parameters)}"
            )
        if slot.parsed is None:
            raise ToolError(slot.fault)
        return tool, slot.parsed.params

    async def _may_preview(self, slot: CallRun, earlier: Sequence[CallRun]) -> None:
        """Edits are computed in call order, each as if its predecessors were accepted. A command runs after them, so it
        is asked about after them."""
        if slot.effect == "read":
            return
        for other in earlier:
            if other.effect == "write":
                await other.previewed.wait()
            elif slot.effect == "write" and other.effect == "run" and other.allowed:
                await other.finished.wait()

    async def _may_run(self, slot: CallRun, earlier: Sequence[CallRun]) -> None:
        """Return when every earlier call that this one depends on has ended."""
        self._change(slot, "scheduled")
        for other in earlier:
            if other.effect == "read":
                continue
            if slot.effect == "run":
                await other.finished.wait()
            elif other.effect == "run":
                if slot.effect == "write" or other.allowed:
                    await other.finished.wait()
            else:
                await other.previewed.wait()
                if _same_path(slot, other) and not _same_proposal(slot, other):
                    await other.finished.wait()
        if slot.effect == "write":
            await self._all_proposed(slot)

    async def _all_proposed(self, slot: CallRun) -> None:
        """Edits of one step are one proposal whichever comes first: none is applied before those behind it, up to the
        next command, have joined."""
        for later in self._slots[self._slots.index(slot) + 1 :]:
            if later.effect == "run":  # it waits for this one
                return
            if later.effect == "write":
                await later.previewed.wait()

    def _previewed(self, slot: CallRun, preview: Preview) -> None:
        slot.preview = preview
        title = one_line(preview.title)
        slot.item = slot.item.model_copy(update={"title": title, "proposal_id": preview.proposal_id})
        slot.previewed.set()

    async def _rejected(
        self, slot: CallRun, tool: AnyTool, params: Params, context: CallContext, decision: Decision
    ) -> None:
        message = await tool.reject(params, context, decision.reason or "")
        text = message or _rejection(decision)
        await self._end(slot, "rejected", _failed(slot.call, text), error=decision.reason)

    async def _succeeded(self, slot: CallRun, outcome: Outcome, text: str) -> None:
        call = slot.call
        notes = [note for note in (slot.parsed and slot.parsed.note, *slot.changes) if note]
        text = "\n\n".join(filter(None, [text, *(f"[{note}]" for note in notes)]))
        result = Result(call_id=call.call_id, tool=call.tool, text=text, is_error=outcome.is_error)
        slot.item = slot.item.model_copy(
            update={"output": self._emit.plain(outcome.for_user), "blob": outcome.blob, "sandbox": outcome.sandbox}
        )
        await self._end(slot, "rejected" if outcome.refused else "succeeded", result)

    async def _end(
        self,
        slot: CallRun,
        state: Literal["succeeded", "failed", "rejected"],
        result: Result,
        error: str | None = None,
    ) -> None:
        """The listeners see the result. The call has ended: a cancel that comes meanwhile changes nothing of it."""
        try:
            for listener in self._listeners:
                result = await after_call(listener, slot.call, result)
        finally:
            failed = state == "succeeded" and result.is_error
            self._finish(slot, "failed" if failed else state, result, error)

    def _finish(
        self,
        slot: CallRun,
        state: Literal["succeeded", "failed", "cancelled", "rejected"],
        result: Result,
        error: str | None = None,
    ) -> None:
        """Once: how a call ended stays."""
        if slot.result is not None:
            return
        slot.result = result
        slot.item = slot.item.model_copy(update={"state": state, "error": error})
        self._emit(ItemCompleted(item=slot.item), entry=result)

    def _change(self, slot: CallRun, state: ToolCallState) -> None:
        slot.item = slot.item.model_copy(update={"state": state})
        self._emit(ItemChanged(item=slot.item))

    def _slot(self, call: Call) -> CallRun:
        tool, parsed, fault = self._tools.get(call.tool), None, ""
        if tool is not None and isinstance(call.arguments, dict):
            try:
                parsed = tool.parse(call.arguments)
                call = call.model_copy(update={"arguments": parsed.arguments})
            except ToolError as error:
                fault = str(error)
        return CallRun(call, tool, call_item(self._turn_id, call, tool), parsed, fault)


def call_item(turn_id: str, call: Call, tool: AnyTool | None) -> ToolCall:
    """The item of a call as the model wrote it, or of one that it only begins to write: then without arguments."""
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


def _about_call(preview: Preview, call: Call) -> Preview:
    """With the call's arguments on what rules are matched against, and a digest of everything that is decided on."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    subject, *also = (replace(part, arguments=arguments) for part in (preview.subject, *preview.also))
    # Of the same arguments in any order, and of what the tool found them to mean.
    canonical = json.dumps([call.tool, arguments, preview.digest], sort_keys=True, ensure_ascii=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return replace(preview, subject=subject, also=tuple(also), digest=digest)


def _still(
    tool: AnyTool, params: Params, context: CallContext, call: Call, digest: str
) -> Callable[[], Awaitable[bool]]:
    async def still() -> bool:
        current = await tool.again(params, context)
        return current is None or _about_call(current, call).digest == digest

    return still


def _granted(preview: Preview, decision: Decision, *, secrets: bool) -> Preview:
    """With what the yes allows a command to do."""
    if preview.need is None:
        return preview
    network, unsandboxed = "network" in decision.grants, "unsandboxed" in decision.grants
    need = replace(preview.need, network=network, unsandboxed=unsandboxed, secrets=secrets)
    return replace(preview, need=need)


def _same_path(slot: CallRun, other: CallRun) -> bool:
    if slot.preview is None or other.preview is None:
        return False
    return not other.preview.writes.isdisjoint(slot.preview.reads | slot.preview.writes)


def _same_proposal(slot: CallRun, other: CallRun) -> bool:
    mine = slot.preview and slot.preview.proposal_id
    return mine is not None and other.preview is not None and other.preview.proposal_id == mine


def _rejection(decision: Decision) -> str:
    if decision.by == "rule":
        return decision.reason or "Denied by a rule."
    if decision.reason:
        return f"The user rejected this and said: {decision.reason}"
    return "The user rejected this. Do not try the same again; ask or find another way."


def _failed(call: Call, text: str) -> Result:
    return Result(call_id=call.call_id, tool=call.tool, text=text, is_error=True)
