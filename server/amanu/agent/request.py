"""One reply of the model: asked for, shown as it comes, kept."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from amanu.agent.failover import stream_with_failover
from amanu.agent.recovery import REMEDIES, ReplyFault, reminder, reply_fault
from amanu.agent.reply import ReplyItems
from amanu.agent.turn import Turn
from amanu.core.conversation import Assistant
from amanu.core.model import Delta, ModelError, ReplyCompleted, Request, TextDelta, ThoughtDelta, TokenUsage
from amanu.core.model_families import family
from amanu.models.retry import AttemptWithdrawn, RetryScheduled
from amanu.text import wording
from amanu_protocol.events import RetryChanged, StepEnded
from amanu_protocol.items import Retry, Spend


class _Cut(Exception):
    """The turn's `ReplyWatch` has cut the reply off."""


async def ask_model(turn: Turn, step: int) -> ReplyCompleted:
    """One reply, shown as it comes, retried where that can help; in the conversation when it returns. Raises
    `ModelError`, and then what was shown of it is in the conversation."""
    turn.conversation.check()
    request = Request(
        model=turn.info,
        system=turn.system,
        tools=turn.specs,
        conversation=turn.conversation,
        session_id=turn.session_id,
        effort=turn.budget.effort,
        max_output=_most(turn),
    )
    reply = ReplyItems(turn.turn_id, step, turn.tools, turn.emit)
    try:
        end = await _show(turn, step, reply, stream_with_failover(turn, request))
    except _Cut:
        message = reply.cut("The reply was broken off.")
        _keep(turn, step, message)
        return ReplyCompleted(message or Assistant(parts=()), TokenUsage(), "cut")
    except BaseException as error:  # cancelled, failed, or a bug of ours: what was shown is closed
        failed = isinstance(error, ModelError)
        _keep(turn, step, reply.cut(error.message if failed else "The reply was broken off."))
        raise
    turn.context.count_request(end.usage.input + end.usage.cache_read + end.usage.cache_write)
    took = turn.ledger.count_request(turn.info, end.usage)
    if reply_fault(end) == "spentThinking":
        reply.withdraw("The reply was all thought.")
    message = reply.finish(end)
    says = bool(message.calls or message.text.strip())
    _keep(turn, step, message if says or end.stop == "paused" else None, took)
    turn.emit_usage()
    return end


def _most(turn: Turn) -> int | None:
    """Tokens of the reply: as the turn has it, less where prompt and reply would not fit the window together."""
    allowance = min(turn.info.max_output, turn.budget.max_output or family(turn.info.model_id).max_output)
    fits = turn.context.fit_reply(allowance)
    return turn.budget.max_output if fits == allowance else fits


async def _show(
    turn: Turn, step: int, reply: ReplyItems, stream: AsyncGenerator[Delta | RetryScheduled | AttemptWithdrawn]
) -> ReplyCompleted:
    waiting = False
    nudged: set[ReplyFault] = set()
    """The conversation keeps what was said: once is enough."""
    watch = turn.reply_watch
    if watch is not None:
        watch.begin_reply()
    try:
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if waiting:
                    waiting = False
                    turn.emit(RetryChanged(retry=None))
                match delta:
                    case ReplyCompleted():
                        return delta
                    case AttemptWithdrawn(reason=reason):
                        reply.withdraw(reason)
                        if watch is not None:
                            watch.begin_reply()
                    case RetryScheduled():
                        waiting = True
                        retry_at = int((time.time() + delta.delay_s) * 1000)
                        turn.emit(RetryChanged(retry=Retry(attempt=delta.attempt, reason=delta.reason, at=retry_at)))
                        if (
                            delta.breakage
                            and REMEDIES[delta.breakage].treatment == "nudge"
                            and delta.breakage not in nudged
                        ):
                            nudged.add(delta.breakage)
                            turn.add_note(reminder(delta.breakage))
                    case _:
                        reply.add_delta(delta)
                        if watch is not None and isinstance(delta, TextDelta | ThoughtDelta) and watch.on_text(delta):
                            raise _Cut
    finally:  # cancelled or failed while it waited
        if waiting:
            turn.emit(RetryChanged(retry=None))
    raise AssertionError("a model's stream ended without Done or an error")


def _keep(turn: Turn, step: int, reply: Assistant | None, took: Spend | None = None) -> None:
    """The reply is part of the conversation, on record before any of its calls runs."""
    if reply is not None and reply.parts:
        turn.conversation.append(reply)
    else:
        reply = None
    turn.emit(StepEnded(turn_id=turn.turn_id, step=step, usage=took and wording.summarize_spend(took)), entry=reply)
