"""The loop: ask the model → run its calls → feed the results back, until it is done.

    request → calls → listeners

Everything that watches a turn, limits it or adds to it is a listener (`core/listeners.py`); what is here is only what
no turn can do without: room in the window, a request, its calls, and what becomes of a reply that is no proper one.
"""

import itertools
from collections.abc import Sequence

from amanu.agent import turn_listeners as listeners
from amanu.agent.calls import CallEnvironment, Calls
from amanu.agent.failover import route_first_request
from amanu.agent.recovery import CUT_CALL, NO_ROOM, NOT_WHOLE, RemedyCounts, ReplyFault, reply_fault
from amanu.agent.request import ask_model
from amanu.agent.turn import Turn
from amanu.core.conversation import Assistant, Result, Results
from amanu.core.ending import Ending
from amanu.core.listeners import StepRecord
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    ModelError,
    Overloaded,
    RateLimited,
    ReplyCompleted,
    Unreachable,
)
from amanu.core.notes import SystemNote
from amanu_protocol.errors import ErrorKind

MAX_PAUSES = 20
"""Times in a row a service may say that it pauses and goes on when asked."""
MAX_OVERFLOWS = 3
"""Requests in a row that the service finds too long, each after more room was made."""
NOTHING_LEFT = "Nothing is left that could make room; begin a new session, or say less at once."


async def run_turn(turn: Turn) -> Ending:
    """Run steps until the model is done. Cancelling the task stops it anywhere and leaves a valid conversation.
    Raises nothing but CancelledError for what models, tools and users do; a ModelError becomes an ending."""
    try:
        ending = await _run(turn)
        if turn.context.compaction_requested and await turn.context.make_room(turn.step_context(0, in_turn=False)):
            turn.emit_usage()
        return ending
    finally:
        await turn.end_turn()


async def run_compaction(turn: Turn, focus: str) -> Ending:
    """A turn that does nothing but make room, by hand. Raises nothing but CancelledError."""
    turn.use_model(turn.candidate)
    if await turn.context.compact(turn.step_context(1, in_turn=False), focus):
        turn.emit_usage()
    return Ending("completed")


async def _run(turn: Turn) -> Ending:
    turn.use_model(turn.candidate)
    patience = RemedyCounts()
    ending: Ending | None = None
    for step in itertools.count(1):
        reply = await _request(turn, step, patience)
        if isinstance(reply, Ending):
            return reply
        if reply is None:
            continue
        fault = reply_fault(reply, turn.tools)
        if fault in ("refused", "cutCall", "spentThinking"):
            ending = await _mend(turn, step, reply, fault, patience)
        elif reply.message.calls:
            patience.on_step()
            ending = await _run_calls(turn, step, reply.message)
        elif reply.stop != "paused":
            ending = await listeners.on_stop(turn, reply)
        elif not patience.allow_pause(MAX_PAUSES):
            ending = Ending("failed", f"The service paused {MAX_PAUSES + 1} times in a row.", can_continue=True)
        if ending is not None:
            return ending
    raise AssertionError("steps are counted without an end")


async def _request(turn: Turn, step: int, patience: RemedyCounts) -> ReplyCompleted | Ending | None:
    """The reply; None when the request was too long, and there is more room now."""
    if (ending := await listeners.before_request(turn, step)) is not None:
        return ending
    if step == 1:
        await route_first_request(turn)
    if await turn.context.make_room(turn.step_context(step)):
        turn.emit_usage()
        if (ending := await listeners.before_request(turn, step)) is not None:
            return ending
    try:
        reply = await ask_model(turn, step)
    except ContextTooLong as error:
        if not patience.allow_overflow(MAX_OVERFLOWS) or not await turn.context.recover_overflow(
            turn.step_context(step)
        ):
            return Ending("failed", f"{error} {NOTHING_LEFT}", can_continue=True, kind="contextTooLong")
        turn.emit_usage()
        return None
    except ModelError as error:
        return Ending("failed", str(error), can_continue=True, kind=_kind(error))
    patience.on_reply(paused=reply.stop == "paused")
    if reply.window_full:
        turn.context.on_window_filled()
    return reply


async def _run_calls(turn: Turn, step: int, reply: Assistant) -> Ending | None:
    """One result per call, in order, whatever happens."""
    calls = _calls(turn, step, reply)
    try:
        await calls.run()
    finally:
        turn.conversation.append(Results(results=calls.results))
    return await listeners.after_step(turn, StepRecord(step, reply, calls.results, calls.touched))


def _refuse_calls(turn: Turn, step: int, reply: Assistant, refusal: str) -> Sequence[Result]:
    """That error is the result of every call."""
    if not reply.calls:
        return ()
    calls = _calls(turn, step, reply)
    calls.refuse(refusal)
    turn.conversation.append(Results(results=calls.results))
    return calls.results


def _calls(turn: Turn, step: int, reply: Assistant) -> Calls:
    fitting = turn.context.fit_result
    environment = CallEnvironment(turn.turn_id, turn.tools, turn.approvals, turn.emit, fitting, turn.listeners)
    return Calls(reply.calls, step, environment)


async def _mend(
    turn: Turn, step: int, reply: ReplyCompleted, fault: ReplyFault, patience: RemedyCounts
) -> Ending | None:
    """What becomes of a reply that cannot stand (`recovery.py`). None: ask again."""
    if fault == "refused":
        _refuse_calls(turn, step, reply.message, NOT_WHOLE)
        return Ending("refused", reply.detail or "The model declined to answer.")
    if fault == "cutCall":
        _refuse_calls(turn, step, reply.message, CUT_CALL)
        return None if patience.allow(fault) else NO_ROOM
    budget = turn.budget.roomier(turn.info, reply.usage)
    if budget is None or not patience.allow(fault):
        return NO_ROOM
    turn.budget = budget
    text = f"The model spent its whole reply on thinking; asking again with {budget.description}."
    turn.add_note(SystemNote("", text, "moreRoom"))
    return None


def _kind(error: ModelError) -> ErrorKind:
    match error:
        case AuthFailed():
            return "authRequired"
        case Unreachable():
            return "modelUnavailable"
        case Overloaded() | RateLimited():
            return "overloaded"
        case _:
            return "providerError"
