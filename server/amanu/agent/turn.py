"""The loop: ask the model → run its calls → feed the results back, until it is done or a limit is met."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from amanu.agent import ask, checks, spending
from amanu.agent.approval import Approvals
from amanu.agent.calls import AnyTool, Calls
from amanu.agent.emit import Emit
from amanu.agent.reply import Reply
from amanu.conversation import Assistant, Conversation, Results, User
from amanu.models.base import (
    AuthFailed,
    ContextTooLong,
    Delta,
    Done,
    Effort,
    Model,
    ModelError,
    Overloaded,
    RateLimited,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Unreachable,
)
from amanu.models.retry import Retrying, Withdrawn, stream_with_retry
from amanu_protocol.errors import ErrorKind
from amanu_protocol.events import EndReason, ItemCompleted, RetryChanged, StepEnded, UsageChanged
from amanu_protocol.items import ModelInfo, Notice, Retry, Usage

CUT_CALL = (
    "Not run: the reply was cut at the output limit while it was written. "
    "Do the work in smaller pieces, one smaller call at a time."
)
REFUSED_CALL = "Not run: the service broke the reply off."
GO_ON = "Your reply was cut at the output limit. Go on exactly where it stopped, without repeating anything."
MAX_CONTINUATIONS = 3
"""Replies cut at the output limit that are continued in a row."""


@dataclass(frozen=True)
class Ending:
    """Why the loop stopped."""

    reason: EndReason
    message: str = ""
    can_continue: bool = False
    kind: ErrorKind | None = None
    """Of a failure, for programs: is it the key, the address, the service?"""


LOOP = Ending("loop", "Stopped: the model was going round in circles.", can_continue=True)


class Repeating(Exception):
    """The reply has begun to repeat itself and was cut off."""


@dataclass
class Turn:
    """All that one turn works with. The conversation already ends with what the person said."""

    turn_id: str
    session_id: str
    model: Model
    info: ModelInfo
    system: str
    tools: Mapping[str, AnyTool]
    specs: Sequence[ToolSpec]
    conversation: Conversation
    approvals: Approvals
    emit: Emit
    take_notes: Callable[[], Sequence[User]]
    """What the person said or decided meanwhile, for the model; each note is handed over once."""
    usage: Usage
    utility: tuple[Model, ModelInfo] | None = None
    """For questions aside; None: the turn's own model."""
    effort: Effort = "medium"
    max_steps: int = 100
    max_seconds: float = 3600
    max_cost_usd: float | None = None
    cost_before: float = 0.0
    waited_before: float = 0.0
    """Seconds the session had waited for the person before this turn."""
    started: float = field(default_factory=time.monotonic)

    async def aside(self, system: str, question: str, *, max_output: int) -> str:
        """Ask the utility model something that is no part of the conversation; what it takes is counted. Raises
        `ModelError`."""
        model, info = self.utility or (self.model, self.info)
        answer, used = await ask.ask(model, info, system, question, session_id=self.session_id, max_output=max_output)
        self.usage = spending.aside(self.usage, info, used)
        self.emit(UsageChanged(usage=self.usage))
        return answer


async def run_turn(turn: Turn) -> Ending:
    """Run steps until the model is done. Cancelling the task stops it anywhere and leaves a valid conversation.
    Raises nothing but CancelledError for what models, tools and people do; a ModelError becomes an ending."""
    continuations = 0
    strikes = 0
    step = 0
    while True:
        ending = _limit(turn, step)
        if ending is not None:
            return ending
        step += 1
        try:
            done = await _ask_model(turn, step)
        except ModelError as error:
            return Ending("failed", str(error), can_continue=True, kind=_kind(error))
        except Repeating:
            strikes += 1
            if strikes > 1:
                return LOOP
            _tell(turn, step, checks.REPEATED_TEXT, "The model repeats itself; it was told so.")
            continue
        if done.stop == "refused":
            if done.message.calls:
                await _run_calls(turn, step, done.message, refusal=REFUSED_CALL)
            return Ending("refused", done.detail or "The model declined to answer.")
        reply = done.message
        if reply.calls:
            await _run_calls(turn, step, reply)
            if checks.repeats_steps(turn.conversation):
                strikes += 1
                if strikes > 1:
                    return LOOP
                _tell(turn, step, checks.REPEATED_STEP, "The model repeats the same call; it was told so.")
        elif _hear(turn):
            continue
        elif done.stop == "outputLimit":
            continuations += 1
            if continuations > MAX_CONTINUATIONS or not reply.text.strip():
                return Ending("failed", "The reply did not fit the model's output limit.", can_continue=True)
            _tell(turn, step, GO_ON, "The reply reached the model's output limit; going on from there.")
        elif done.stop != "paused":
            return Ending("completed")


def _kind(error: ModelError) -> ErrorKind:
    match error:
        case AuthFailed():
            return "authRequired"
        case Unreachable():
            return "modelUnavailable"
        case Overloaded() | RateLimited():
            return "overloaded"
        case ContextTooLong():
            return "contextTooLong"
        case _:
            return "providerError"


def _tell(turn: Turn, step: int, text: str, shown: str) -> None:
    """Say something to the model in the daemon's name; the person sees a notice of it."""
    turn.conversation.note(text)
    notice = Notice(
        item_id=f"{turn.turn_id}.{step}.told", turn_id=turn.turn_id, level="info", code="modelTold", text=shown
    )
    turn.emit(ItemCompleted(item=notice), entry=Results(results=(), notes=(text,)))


def _limit(turn: Turn, steps: int) -> Ending | None:
    spent = (turn.usage.cost_usd or 0.0) - turn.cost_before
    seconds = time.monotonic() - turn.started - (turn.approvals.waited - turn.waited_before)
    if steps >= turn.max_steps:
        return Ending("stepLimit", f"Stopped after {steps} steps.", can_continue=True)
    if seconds >= turn.max_seconds:
        return Ending("timeLimit", f"Stopped after {seconds:.0f} seconds.", can_continue=True)
    if turn.max_cost_usd is not None and spent >= turn.max_cost_usd:
        return Ending("costLimit", f"Stopped after spending ${spent:.2f}.", can_continue=True)
    return None


async def _ask_model(turn: Turn, step: int) -> Done:
    """One reply, shown as it comes, retried where that can help; in the conversation when it returns."""
    turn.conversation.check()
    request = Request(
        model=turn.info,
        system=turn.system,
        tools=turn.specs,
        conversation=turn.conversation,
        session_id=turn.session_id,
        effort=turn.effort,
    )
    reply = Reply(turn.turn_id, step, turn.tools, turn.emit)
    try:
        done = await _show(turn, reply, stream_with_retry(turn.model, request))
    except BaseException:  # cancelled, failed, repeating, or a bug of ours: what was shown is closed
        _keep(turn, step, reply.cut())
        raise
    turn.usage = spending.add(turn.usage, turn.info, done.usage)
    turn.emit(UsageChanged(usage=turn.usage))
    _keep(turn, step, reply.finish(done))
    return done


async def _show(turn: Turn, reply: Reply, stream: AsyncGenerator[Delta | Retrying | Withdrawn]) -> Done:
    waiting = False
    watch = checks.Repetition()
    async with aclosing(stream) as deltas:
        async for delta in deltas:
            if waiting:
                waiting = False
                turn.emit(RetryChanged(retry=None))
            match delta:
                case Done():
                    return delta
                case Withdrawn(reason=reason):
                    reply.withdraw(reason)
                    watch = checks.Repetition()
                case Retrying():
                    waiting = True
                    at = int((time.time() + delta.delay_s) * 1000)
                    turn.emit(RetryChanged(retry=Retry(attempt=delta.attempt, reason=delta.reason, at=at)))
                case _:
                    reply.take(delta)
                    if isinstance(delta, TextDelta | ThoughtDelta) and watch.feed(delta.text):
                        raise Repeating
    raise AssertionError("a model's stream ended without Done or an error")


def _keep(turn: Turn, step: int, reply: Assistant | None) -> None:
    """The reply is part of the conversation, on record before any of its calls runs."""
    if reply is not None and reply.parts:
        turn.conversation.append(reply)
    else:
        reply = None
    turn.emit(StepEnded(turn_id=turn.turn_id, step=step), entry=reply)


async def _run_calls(turn: Turn, step: int, reply: Assistant, refusal: str = "") -> None:
    """One result per call. They are not run when there is a `refusal`, or the reply was cut."""
    calls = Calls(
        reply.calls,
        turn_id=turn.turn_id,
        step=step,
        tools=turn.tools,
        approvals=turn.approvals,
        emit=turn.emit,
    )
    try:
        if refusal or reply.cut:
            calls.refuse(refusal or CUT_CALL)
        else:
            await calls.run()
    finally:  # whatever happened: one result per call, in order
        turn.conversation.append(Results(results=calls.results))
    _hear(turn)


def _hear(turn: Turn) -> bool:
    """Put what the person said or decided meanwhile at the end of the conversation. True if there was any."""
    notes = turn.take_notes()
    for said in notes:
        turn.conversation.note(*said.parts)
    return bool(notes)
