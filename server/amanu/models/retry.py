"""Asking a model until it answers: back-off, Retry-After, the idle watchdog, and what counts as no answer.

Works on any `Model`; the vendors' SDKs retry nothing. See `stream_with_retry`.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import cast

from amanu.core.conversation import Results, Thinking
from amanu.core.model import (
    RETRYABLE,
    Breakage,
    CallDelta,
    CallStarted,
    ContextTooLong,
    Delta,
    HeldBack,
    Model,
    ModelError,
    RateLimited,
    ReplyCompleted,
    Request,
    StreamBroken,
    TextDelta,
    TokenUsage,
    UsageCounted,
)
from amanu.models.idle_timer import IdleTimer
from amanu.models.quotas import in_words
from amanu_protocol.items import ModelInfo

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to retry. Times are in seconds."""

    attempts: int = 8
    """In total, for all reasons."""
    busy_retries: int = 7
    """When the service is overloaded, out of reach or wants us to slow down."""
    broken_retries: int = 3
    """After replies that broke off, went silent or were malformed."""
    empty_retries: int = 2
    """After replies without text and calls."""
    first_delay: float = 1.0
    longest_delay: float = 30.0
    """Delays double from the first to the longest; each is shortened by up to a third at random."""
    longest_wait: float = 60.0
    """The longest Retry-After to wait for."""
    idle_text: float = 60.0
    """Silence after text or a piece of a call that counts as a broken stream."""
    idle_thinking: float = 180.0
    """The same before the first delta and after a thought."""
    idle_whole: float = 600.0
    """The same before a reply that comes in one piece; Anthropic's SDK waits as long."""
    broken_before_whole: int = 2
    """Streams of one reply that broke off before it is asked for in one piece: some proxies cut every stream."""

    def delay(self, retry: int) -> float:
        """Before the n-th retry, 1-based."""
        full = min(self.longest_delay, self.first_delay * 2 ** (retry - 1))
        return full * random.uniform(2 / 3, 1)


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The next attempt starts in `delay_s` seconds. `attempt` is its number, 2 for the first retry."""

    attempt: int
    delay_s: float
    reason: str
    breakage: Breakage | None = None
    """What was wrong with the reply, if there was one. The receiver may add a hint to the conversation, which the
    next attempt then sends."""


@dataclass(frozen=True, slots=True)
class AttemptWithdrawn:
    """The deltas since the last attempt began never happened; take back what was shown of them."""

    reason: str


PATIENT = RetryPolicy()


def _uncounted(used: TokenUsage) -> None:
    pass


async def stream_with_retry(
    model: Model,
    request: Request,
    policy: RetryPolicy = PATIENT,
    count: Callable[[TokenUsage], object] = _uncounted,
) -> AsyncGenerator[Delta | RetryScheduled | AttemptWithdrawn]:
    """Yield the deltas of one reply, up to one `ReplyCompleted`, trying again where that can help.

    A failed attempt is followed by `AttemptWithdrawn`, if deltas of it were yielded, then `RetryScheduled`; both come
    before the wait, so that it can be shown. Raises the last `ModelError` when it gives up: at once if no retry can
    help, and then without `AttemptWithdrawn`: the deltas so far stay. Cancelling ends a wait as well as a stream.

    `count` is told what each attempt took that did not come to its `ReplyCompleted`, as far as the service has said it:
    such an attempt costs as much as any other. It is told before anything else comes of the failure.
    """
    busy = broken = empty = cut = 0
    lost = False
    """The stream announced calls, but had none."""
    for attempt in range(1, policy.attempts + 1):
        has_output = False
        try:
            async with aclosing(_attempt(model, request, policy, count)) as deltas:
                async for delta in deltas:
                    has_output = True
                    yield delta
            return
        except ModelError as error:
            failure = error
            log.warning("%s, attempt %d: %s %s", request.model.model_id, attempt, error.message, error.details)
        busy += not isinstance(failure, StreamBroken)
        broken += type(failure) in (StreamBroken, SilentStream)
        empty += isinstance(failure, EmptyReply)
        cut += type(failure) is StreamBroken and failure.breakage in ("broken", "noFinish")
        if isinstance(failure, RateLimited) and _never_passes(request, failure):
            raise ContextTooLong(
                f"{failure.message} This request is larger than that.",
                failure.vendor,
                failure.status,
                details=failure.details,
                limit=failure.limit,
            )
        if not isinstance(failure, RETRYABLE):
            raise _of_retired(failure, request.model)
        spent = busy > policy.busy_retries or broken > policy.broken_retries or empty > policy.empty_retries
        if spent or attempt == policy.attempts:
            raise _gave_up(failure, attempt)
        delay = policy.delay(attempt)
        if failure.retry_after is not None:
            if failure.retry_after > policy.longest_wait:
                raise _too_long(failure, failure.retry_after)
            delay = max(delay, failure.retry_after)
        if has_output:
            yield AttemptWithdrawn(failure.message)
        breakage = failure.breakage if isinstance(failure, StreamBroken) else None
        lost = lost or breakage == "missingCalls"
        # Once: what the last attempt streams stays with the user, even if it breaks off as well.
        request = replace(request, whole=lost or cut == policy.broken_before_whole)
        yield RetryScheduled(attempt + 1, delay, failure.message, breakage)
        await asyncio.sleep(delay)


class EmptyReply(StreamBroken):
    """The model ended without a word and without a call."""


class SilentStream(StreamBroken):
    """No delta came for too long. Asking for the reply in one piece would not help."""


def _never_passes(request: Request, failure: RateLimited) -> bool:
    """Whether the request alone takes more than the limit a minute."""
    counted = request.tokens if failure.counts_cached else request.tokens - request.cached
    return failure.limit is not None and counted > failure.limit


def _of_retired(failure: ModelError, model: ModelInfo) -> ModelError:
    """The error, with the successor named if the service no longer knows a retired model."""
    if failure.status not in (404, 410) or model.successor is None:
        return failure
    when = f"shuts it down on {model.retires}" if model.retires is not None else "has deprecated it"
    return replace(failure, message=f"{failure.message} Its vendor {when}; choose {model.successor} instead.")


def _with_calls(request: Request, end: ReplyCompleted) -> ReplyCompleted:
    """The reply; it has simply ended if it announced calls and had none even in one piece (Kilo-Org/kilocode#7773,
    anomalyco/opencode#49008). Raises `StreamBroken` if the stream may have lost them."""
    if end.stop != "calls" or end.message.calls:
        return end
    if not request.whole:
        words = "The model announced tool calls and sent none; Amanu asks for the reply in one piece."
        raise StreamBroken(words, breakage="missingCalls")
    return replace(end, stop="end")


def _emptiness(request: Request, end: ReplyCompleted) -> EmptyReply | None:
    """The error for a complete but empty reply. After tool results, an empty reply is how models say that they are
    done: the loop asks once more. Thinking alone is never an answer."""
    if end.stop != "end" or end.message.calls or end.message.text.strip():
        return None
    if any(isinstance(part, Thinking) for part in end.message.parts):
        return EmptyReply("The model sent its thinking but no answer.", breakage="thinkingOnly")
    last = request.conversation.last
    if isinstance(last, Results) and last.results:
        return None
    return EmptyReply("The model ended its reply without an answer.", breakage="empty")


async def _attempt(
    model: Model, request: Request, policy: RetryPolicy, count: Callable[[TokenUsage], object]
) -> AsyncGenerator[Delta]:
    """One attempt; silence and an empty reply are errors. `count` is told what it took if it fails or is cut off."""
    limit = policy.idle_whole if request.whole else policy.idle_thinking
    used: TokenUsage | None = None
    try:
        async with aclosing(cast("AsyncGenerator[Delta]", model.stream(request))) as stream:
            with closing(IdleTimer()) as timer:
                while True:
                    delta = await _next(stream, timer, limit)
                    match delta:
                        case UsageCounted():
                            used = delta.usage
                            continue
                        case ReplyCompleted():
                            used = delta.usage
                            delta = _with_calls(request, delta)
                            if (empty := _emptiness(request, delta)) is not None:
                                raise empty
                            used = None
                            yield delta
                            return
                        case TextDelta() | CallDelta() | CallStarted() | HeldBack():
                            limit = policy.idle_text
                        case _:
                            limit = policy.idle_thinking
                    yield delta
    finally:
        if used is not None:
            count(used)


async def _next(stream: AsyncIterator[Delta], timer: IdleTimer, limit: float) -> Delta:
    try:
        return await timer.wait(anext(stream), limit)
    except TimeoutError:
        raise SilentStream(f"The model was silent for {limit:g} seconds.") from None
    except StopAsyncIteration:
        raise StreamBroken("The reply ended before it was complete.") from None


def _gave_up(failure: ModelError, attempts: int) -> ModelError:
    if attempts == 1:
        return failure
    return _with_message(failure, f"{failure.message} Gave up after {attempts} attempts.")


def _too_long(failure: ModelError, wait: float) -> ModelError:
    message = f"{failure.message} The service asks Amanu to wait {in_words(wait)}; try again after that."
    return _with_message(failure, message)


def _with_message(failure: ModelError, message: str) -> ModelError:
    return replace(failure, message=message)
