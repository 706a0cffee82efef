"""One model request: send it, show the reply as it streams, put it on record."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from amanu.agent import turn_listeners as listeners
from amanu.agent.failover import stream_with_failover
from amanu.agent.recovery import REMEDIES, ReplyFault, reminder, reply_fault
from amanu.agent.reply import ReplyItems
from amanu.agent.turn import Turn
from amanu.agent.usage import add_spends
from amanu.core.agent import NOTHING_SPENT
from amanu.core.conversation import Assistant, Text
from amanu.core.ending import Ending
from amanu.core.listeners import ChangedRequest
from amanu.core.model import (
    Delta,
    HeldBack,
    ModelError,
    ReplyCompleted,
    Request,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    UsageCounted,
)
from amanu.core.model_families import family
from amanu.models.retry import AttemptWithdrawn, RetryScheduled
from amanu.text import wording
from amanu_protocol.events import RetryChanged, StepEnded
from amanu_protocol.items import Retry, Spend


class _Cut(Exception):
    """The turn's `ReplyWatch` cut the reply off."""


class _CostLimitReached(Exception):
    """The attempts so far came to nothing, and there is no money for another."""


def answer_instead(turn: Turn, step: int, text: str) -> ReplyCompleted:
    """Put that text on record as the reply: no model is asked."""
    reply = ReplyItems(turn.turn_id, step, turn.tools, turn.emit)
    reply.add_delta(TextDelta(text))
    end = ReplyCompleted(Assistant(parts=(Text(text=text),)), TokenUsage(), "end")
    _record(turn, step, reply.finish(end))
    return end


async def ask_model(turn: Turn, step: int, changed: ChangedRequest) -> ReplyCompleted | Ending:
    """Ask the turn's model, retrying where that can help, and show the reply as it streams. When this returns a reply,
    it is in the conversation; when it raises `ModelError` or is cancelled, the text shown so far is. An ending: the
    attempts that came to nothing reached the limit on costs. `changed`: what listeners change in the request."""
    turn.conversation.check()
    request = Request(
        model=turn.info,
        system=turn.system,
        tools=turn.specs,
        conversation=turn.conversation if changed.conversation is None else changed.conversation,
        session_id=turn.session_id,
        effort=turn.budget.effort,
        max_output=_max_output(turn),
        progress=turn.progress,
        user_may_pause=turn.user_may_pause,
        callable=changed.callable,
        tokens=turn.context.tokens,
        cached=turn.context.cached,
    )
    reply = ReplyItems(turn.turn_id, step, turn.tools, turn.emit)
    spend: Spend | None = None

    def count_failed(used: TokenUsage) -> None:
        nonlocal spend
        spend = add_spends(spend or NOTHING_SPENT, turn.count_beside(turn.info, used))

    try:
        end = await _show(turn, reply, stream_with_failover(turn, request, count_failed))
    except _Cut:
        message = reply.cut("The reply was cut off.")
        _record(turn, step, message, spend)
        return ReplyCompleted(message or Assistant(parts=()), TokenUsage(), "cut")
    except _CostLimitReached as limit:
        _record(turn, step, reply.cut(str(limit)), spend)
        return Ending("costLimit", str(limit), can_continue=True)
    except BaseException as error:  # cancelled, failed, or our own bug: close the items that were shown
        reason = error.message if isinstance(error, ModelError) else "The reply was cut off."
        _record(turn, step, reply.cut(reason), spend)
        raise
    turn.context.count_request(end.usage.prompt)
    spend = add_spends(spend or NOTHING_SPENT, turn.ledger.count_request(turn.info, end.usage))
    try:
        end = await _judged(turn, reply, end)
    except BaseException:
        _record(turn, step, reply.cut("The reply was cut off."), spend)
        raise
    if reply_fault(end) == "spentThinking":
        reply.withdraw("The reply held only thinking.")
    message = reply.finish(end)
    has_content = bool(message.calls or message.text.strip())
    _record(turn, step, message if has_content or end.stop == "paused" else None, spend, end)
    turn.emit_usage()
    return end


async def _judged(turn: Turn, reply: ReplyItems, end: ReplyCompleted) -> ReplyCompleted:
    """The reply, or the text that a listener puts in its place: then nothing of it is left."""
    replacement = await listeners.after_model(turn, end)
    if replacement is None:
        return end
    reply.withdraw("The reply was replaced.")
    reply.add_delta(TextDelta(replacement.text))
    message = Assistant(parts=(Text(text=replacement.text),))
    return replace(end, message=message, sources=(), stop="refused" if end.stop == "refused" else "end")


def _max_output(turn: Turn) -> int | None:
    """Tokens the reply may take: the turn's budget, or less where prompt and reply would not fit into the window
    together."""
    budget = min(turn.info.max_output, turn.budget.max_output or family(turn.info.model_id).max_output)
    available = turn.context.fit_reply(budget)
    return turn.budget.max_output if available == budget else available


async def _show(
    turn: Turn, reply: ReplyItems, stream: AsyncGenerator[Delta | RetryScheduled | AttemptWithdrawn]
) -> ReplyCompleted:
    """Show the stream as it arrives, and return its end. Raises `_Cut` when the turn's `ReplyWatch` cuts it off, and
    `_CostLimitReached` instead of waiting for an attempt that nothing is left for."""
    retrying = False
    nudged: set[ReplyFault] = set()
    _begin_reply(turn)
    try:
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                if retrying:
                    retrying = False
                    turn.emit(RetryChanged(retry=None))
                match delta:
                    case ReplyCompleted():
                        return delta
                    case AttemptWithdrawn(reason=reason):
                        reply.withdraw(reason)
                        _check_cost(turn)
                        _begin_reply(turn)
                    case RetryScheduled():
                        _check_cost(turn)
                        retrying = True
                        _announce_retry(turn, delta, nudged)
                    case UsageCounted() | HeldBack():
                        pass  # the attempt's own affair
                    case _:
                        reply.add_delta(delta)
                        _watch(turn, delta)
    finally:  # cancelled or failed while it waited for the retry
        if retrying:
            turn.emit(RetryChanged(retry=None))
    raise AssertionError("a model's stream ended without ReplyCompleted or an error")


def _check_cost(turn: Turn) -> None:
    if (message := turn.ledger.cost_limits.limit_reached()) is not None:
        raise _CostLimitReached(message)


def _begin_reply(turn: Turn) -> None:
    if turn.reply_watch is not None:
        turn.reply_watch.begin_reply()


def _watch(turn: Turn, delta: Delta) -> None:
    watch = turn.reply_watch
    if watch is not None and isinstance(delta, TextDelta | ThoughtDelta) and watch.on_text(delta):
        raise _Cut


def _announce_retry(turn: Turn, retry: RetryScheduled, nudged: set[ReplyFault]) -> None:
    """Tell the clients when the next attempt comes, and the model what was wrong with the last one: once per fault, for
    the note stays in the conversation. `nudged` holds the faults it was told of."""
    retry_at = int((time.time() + retry.delay_s) * 1000)
    turn.emit(RetryChanged(retry=Retry(attempt=retry.attempt, reason=retry.reason, at=retry_at)))
    fault = retry.breakage
    if fault and fault not in nudged and REMEDIES[fault].treatment == "nudge":
        nudged.add(fault)
        turn.add_note(reminder(fault))


def _record(
    turn: Turn, step: int, reply: Assistant | None, spend: Spend | None = None, end: ReplyCompleted | None = None
) -> None:
    """End the step: the reply joins the conversation, on record before any of its calls runs. A reply without parts is
    left out, as is None. `end`: of a reply that was not cut short."""
    if reply is not None and reply.parts:
        turn.conversation.append(reply)
    else:
        reply = None
    usage = spend and wording.summarize_spend(spend)
    finish_reason, request_id = ("", "") if end is None else (end.finish_reason, end.request_id)
    ended = StepEnded(turn_id=turn.turn_id, step=step, usage=usage, finish_reason=finish_reason, request_id=request_id)
    turn.emit(ended, entry=reply)
