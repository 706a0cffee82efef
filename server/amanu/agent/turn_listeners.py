"""Asks a turn's listeners as `core/listeners.py` promises: in order, and so that none of them can break the loop."""

import logging
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from amanu.agent.turn import Turn
from amanu.core.conversation import Call, Result
from amanu.core.ending import Ending
from amanu.core.listeners import (
    Block,
    ChangedArguments,
    ChangedRequest,
    Continue,
    MustAsk,
    Notes,
    Permitted,
    ReplyText,
    StepRecord,
    TurnListener,
)
from amanu.core.model import ReplyCompleted
from amanu.core.tool import Preview

log = logging.getLogger(__name__)

T = TypeVar("T")

FAILED = "Not run: a check before this call failed with an internal error in Amanu."


async def before_request(turn: Turn, step: int) -> Ending | None:
    """How a listener ends the turn; None when the request may be made."""
    for listener in turn.listeners:
        ending = _apply(turn, await _guarded(listener.before_request(turn, step), listener, None))
        if ending is not None:
            return ending
    return None


async def before_model(turn: Turn, step: int) -> ReplyText | Ending | ChangedRequest:
    """The answer of a listener instead of the model's, or its end of the turn; otherwise all that they change in the
    request."""
    changed = ChangedRequest()
    for listener in turn.listeners:
        match await _guarded(listener.before_model(turn, step), listener, None):
            case ChangedRequest(callable=names, conversation=conversation):
                if names is not None and changed.callable is not None:
                    names &= changed.callable
                changed = ChangedRequest(
                    changed.callable if names is None else names,
                    changed.conversation if conversation is None else conversation,
                )
            case None:
                pass
            case answer:
                return answer
    return changed


async def after_model(turn: Turn, reply: ReplyCompleted) -> ReplyText | None:
    """The text a listener puts in the place of the reply's."""
    for listener in turn.listeners:
        answer = await _guarded(listener.after_model(turn, reply), listener, None)
        if answer is not None:
            return answer
    return None


async def after_step(turn: Turn, step: StepRecord) -> Ending | None:
    """How a listener ends the turn; None when it goes on."""
    for listener in turn.listeners:
        ending = _apply(turn, await _guarded(listener.after_step(turn, step), listener, None))
        if ending is not None:
            return ending
    return None


async def on_stop(turn: Turn, reply: ReplyCompleted) -> Ending | None:
    """How the turn ends; None when a listener goes on and the model is asked again."""
    for listener in turn.listeners:
        match await _guarded(listener.on_stop(turn, reply), listener, None):
            case Continue(notes=notes) if notes:
                return _apply(turn, notes)
            case Ending() as ending:
                return ending
            case _:
                pass
    return Ending("completed")


async def before_call(
    listeners: Sequence[TurnListener], call: Call, preview: Preview
) -> Block | ChangedArguments | MustAsk | Permitted | None:
    """The first answer that settles it, else the stricter of the others; a listener that raises blocks the call."""
    standing: MustAsk | Permitted | None = None
    for listener in listeners:
        answer = await _guarded(listener.before_call(call, preview), listener, Block(FAILED))
        match answer:
            case Block() | ChangedArguments():
                return answer
            case MustAsk():
                standing = standing if isinstance(standing, MustAsk) else answer
            case Permitted():
                standing = standing or answer
            case None:
                pass
    return standing


async def before_question(listeners: Sequence[TurnListener], call: Call, preview: Preview) -> Block | Permitted | None:
    """The first `Block`, else the first `Permitted`; a listener that raises blocks the call."""
    permitted: Permitted | None = None
    for listener in listeners:
        answer = await _guarded(listener.before_question(call, preview), listener, Block(FAILED))
        if isinstance(answer, Block):
            return answer
        permitted = permitted or answer
    return permitted


async def after_call(listener: TurnListener, call: Call, result: Result) -> Result:
    """The result as one listener leaves it. One at a time, so that a cancel keeps what earlier listeners changed."""
    changed = await _guarded(listener.after_call(call, result), listener, result)
    if result.fields and changed.fields == result.fields and changed.text != result.text:  # it knows only the text
        addition = changed.text.removeprefix(result.text)
        fields = result.amended(addition.strip()).fields if addition != changed.text else {}
        changed = changed.model_copy(update={"fields": fields})
    return changed.model_copy(update={"call_id": result.call_id, "tool": result.tool})


async def next_call(listeners: Sequence[TurnListener], call: Call) -> Call | None:
    """The call that a listener wants to take the place of this one."""
    for listener in listeners:
        if (wanted := await _guarded(listener.next_call(call), listener, None)) is not None:
            return wanted
    return None


async def _guarded(answer: Awaitable[T], listener: TurnListener, default: T) -> T:
    """The listener's answer; `default` when it raised."""
    try:
        return await answer
    except Exception:
        log.exception("%s failed; the turn goes on without it", type(listener).__name__)
        return default


def _apply(turn: Turn, answer: Notes | Ending | None) -> Ending | None:
    """Add the notes to the conversation, or hand back the ending."""
    if isinstance(answer, Ending):
        return answer
    for note in answer or ():
        turn.add_note(note)
    return None
