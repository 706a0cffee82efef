"""Asks a turn's listeners, as `core/listeners.py` promises: in order, and none of them can break the loop."""

import logging
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from amanu.agent.turn import Turn
from amanu.core.conversation import Call, Result
from amanu.core.ending import Ending
from amanu.core.listeners import Block, ChangedArguments, Continue, Notes, StepRecord, TurnListener
from amanu.core.model import ReplyCompleted
from amanu.core.tool import Preview

log = logging.getLogger(__name__)

T = TypeVar("T")

FAILED = "Not run: a check that comes before every call failed with an internal error of Amanu."


async def before_request(turn: Turn, step: int) -> Ending | None:
    for listener in turn.listeners:
        ending = _take(turn, await _safe(listener.before_request(turn, step), listener, None))
        if ending is not None:
            return ending
    return None


async def after_step(turn: Turn, step: StepRecord) -> Ending | None:
    for listener in turn.listeners:
        ending = _take(turn, await _safe(listener.after_step(turn, step), listener, None))
        if ending is not None:
            return ending
    return None


async def on_stop(turn: Turn, reply: ReplyCompleted) -> Ending | None:
    """None: the model is asked again."""
    for listener in turn.listeners:
        match await _safe(listener.on_stop(turn, reply), listener, None):
            case Continue(notes=notes) if notes:
                return _take(turn, notes)
            case Ending() as ending:
                return ending
            case _:
                pass
    return Ending("completed")


async def before_call(
    listeners: Sequence[TurnListener], call: Call, preview: Preview
) -> Block | ChangedArguments | None:
    for listener in listeners:
        answer = await _safe(listener.before_call(call, preview), listener, Block(FAILED))
        if answer is not None:
            return answer
    return None


async def after_call(listener: TurnListener, call: Call, result: Result) -> Result:
    """Of one listener: when it is cancelled, what those before it changed stands."""
    changed = await _safe(listener.after_call(call, result), listener, result)
    return changed.model_copy(update={"call_id": result.call_id, "tool": result.tool})


async def _safe(answer: Awaitable[T], listener: TurnListener, otherwise: T) -> T:
    try:
        return await answer
    except Exception:
        log.exception("%s failed; the turn goes on without it", type(listener).__name__)
        return otherwise


def _take(turn: Turn, answer: Notes | Ending | None) -> Ending | None:
    if isinstance(answer, Ending):
        return answer
    for note in answer or ():
        turn.add_note(note)
    return None
