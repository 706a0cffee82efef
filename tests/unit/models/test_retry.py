"""Back-off, Retry-After, withdrawals and silence, over a model made of plain lists."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest

from amanu.core.conversation import Assistant, Call, Conversation, Text, Thinking, User
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    Delta,
    ModelError,
    Overloaded,
    RateLimited,
    ReplyCompleted,
    Request,
    RequestRefused,
    StopReason,
    StreamBroken,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    Unreachable,
    UsageCounted,
)
from amanu.core.model_families import model_info
from amanu.models.retry import EmptyReply, RetryPolicy, RetryScheduled, stream_with_retry

QUICK = RetryPolicy(first_delay=0.001, longest_delay=0.002, idle_text=0.05, idle_thinking=0.5)
REQUEST = Request(model_info("scripted:x"), "", (), Conversation([User(text="Hello.")]), "s1")


def done(*parts: Text | Thinking | Call, stop: StopReason = "end") -> ReplyCompleted:
    return ReplyCompleted(Assistant(parts=parts), TokenUsage(), stop)


FINE = done(Text(text="Fine."))
CALL = Call(call_id="c1", tool="grep", arguments={})
Event = Delta | ModelError | float


class Fake:
    """Each attempt yields its deltas, raises its errors, sleeps its numbers."""

    def __init__(self, *attempts: list[Event]) -> None:
        self.attempts = list(attempts)
        self.asked = 0
        self.closed = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        self.asked += 1
        try:
            for event in self.attempts.pop(0):
                match event:
                    case ModelError():
                        raise event
                    case float() | int():
                        await asyncio.sleep(event)
                    case _:
                        yield event
        finally:
            self.closed += 1

    async def close(self) -> None:
        pass


async def seen(model: Fake, policy: RetryPolicy = QUICK) -> list[str]:
    """What comes, in short; an error as its last word."""
    words: list[str] = []
    try:
        async for each in stream_with_retry(model, REQUEST, policy):
            match each:
                case TextDelta() | ThoughtDelta():
                    words.append(each.text)
                case RetryScheduled():
                    words.append(f"retry {each.attempt}")
                case _:
                    words.append(type(each).__name__)
    except ModelError as error:
        words.append(type(error).__name__)
    assert model.closed == model.asked
    return words


A = TextDelta("a")
CASES: dict[str, tuple[list[list[Event]], list[str]]] = {
    "at once": ([[A, FINE]], ["a", "ReplyCompleted"]),
    "overloaded": ([[Overloaded("No.")], [FINE]], ["retry 2", "ReplyCompleted"]),
    "unreachable": ([[Unreachable("No.")], [FINE]], ["retry 2", "ReplyCompleted"]),
    "withdrawn": ([[A, StreamBroken("Cut.")], [FINE]], ["a", "AttemptWithdrawn", "retry 2", "ReplyCompleted"]),
    "late overload": ([[A, Overloaded("No.")], [FINE]], ["a", "AttemptWithdrawn", "retry 2", "ReplyCompleted"]),
    "no key": ([[AuthFailed("No.")]], ["AuthFailed"]),
    "refused": ([[RequestRefused("No.")]], ["RequestRefused"]),
    "too long": ([[ContextTooLong("No.")]], ["ContextTooLong"]),
    "refused after text": ([[A, RequestRefused("No.")]], ["a", "RequestRefused"]),
    "broken for good": (
        [[StreamBroken("Cut.")]] * 4,
        ["retry 2", "retry 3", "retry 4", "StreamBroken"],
    ),
    "the last words stay": (
        [[A, StreamBroken("Cut.")]] * 4,
        [
            "a",
            "AttemptWithdrawn",
            "retry 2",
            "a",
            "AttemptWithdrawn",
            "retry 3",
            "a",
            "AttemptWithdrawn",
            "retry 4",
            "a",
            "StreamBroken",
        ],
    ),
    "ends without Done": ([[A], [FINE]], ["a", "AttemptWithdrawn", "retry 2", "ReplyCompleted"]),
    "empty": ([[done()], [FINE]], ["retry 2", "ReplyCompleted"]),
    "blank": (
        [[TextDelta(" \n"), done(Text(text=" \n"))], [FINE]],
        [" \n", "AttemptWithdrawn", "retry 2", "ReplyCompleted"],
    ),
    "thought only": (
        [[ThoughtDelta("h"), done(Thinking(text="h"))]] * 3,
        ["h", "AttemptWithdrawn", "retry 2", "h", "AttemptWithdrawn", "retry 3", "h", "EmptyReply"],
    ),
    "a call is no empty reply": ([[done(CALL, stop="calls")]], ["ReplyCompleted"]),
    "a refusal is an answer": ([[done(stop="refused")]], ["ReplyCompleted"]),
    "no room for text is an answer": ([[done(Thinking(text="h"), stop="outputLimit")]], ["ReplyCompleted"]),
    "silent at first": ([[10.0], [FINE]], ["retry 2", "ReplyCompleted"]),
    "silent after text": ([[A, 10.0], [FINE]], ["a", "AttemptWithdrawn", "retry 2", "ReplyCompleted"]),
    "a thought may take longer": ([[ThoughtDelta("h"), 0.1, A, FINE]], ["h", "a", "ReplyCompleted"]),
    "text may not": ([[A, 0.1, FINE], [FINE]], ["a", "AttemptWithdrawn", "retry 2", "ReplyCompleted"]),
    "waits as told": ([[RateLimited("Slow.", retry_after=0.0)], [FINE]], ["retry 2", "ReplyCompleted"]),
    "too long a wait": ([[RateLimited("Slow.", retry_after=61.0)]], ["RateLimited"]),
    "rate limited for good": (
        [[RateLimited("Slow.")]] * 8,
        [*(f"retry {at}" for at in range(2, 9)), "RateLimited"],
    ),
    "mixed reasons share the attempts": (
        [[StreamBroken("Cut.")], [Overloaded("No.")], [StreamBroken("Cut.")], [done()], [FINE]],
        ["retry 2", "retry 3", "retry 4", "retry 5", "ReplyCompleted"],
    ),
}


@pytest.mark.parametrize(("attempts", "expected"), CASES.values(), ids=CASES)
async def test_what_comes_of_the_attempts(attempts: list[list[Event]], expected: list[str]) -> None:
    model = Fake(*attempts)
    assert await seen(model) == expected
    assert model.attempts == []


def counted(tokens: int) -> UsageCounted:
    return UsageCounted(TokenUsage(input=tokens))


def empty(tokens: int) -> ReplyCompleted:
    return replace(done(), usage=TokenUsage(input=tokens))


COUNTED: dict[str, tuple[list[list[Event]], list[int]]] = {
    "an answer costs what it says itself": ([[counted(3), A, FINE]], []),
    "cut": ([[counted(3), A, StreamBroken("Cut.")], [FINE]], [3]),
    "the last count is that of all": ([[counted(3), A, counted(5), StreamBroken("Cut.")], [FINE]], [5]),
    "overloaded late": ([[counted(3), A, Overloaded("No.")], [FINE]], [3]),
    "refused late": ([[counted(3), A, RequestRefused("No.")]], [3]),
    "silent": ([[counted(3), A, 10.0], [FINE]], [3]),
    "ends without Done": ([[counted(3), A], [FINE]], [3]),
    "empty": ([[counted(3), empty(4)], [empty(5)], [FINE]], [4, 5]),
    "empty for good": ([[empty(1)]] * 3, [1, 1, 1]),
    "nothing was counted": ([[A, StreamBroken("Cut.")], [Overloaded("No.")], [FINE]], []),
}


@pytest.mark.parametrize(("attempts", "expected"), COUNTED.values(), ids=COUNTED)
async def test_attempts_that_come_to_nothing_are_counted(attempts: list[list[Event]], expected: list[int]) -> None:
    used: list[int] = []
    with suppress(ModelError):
        async for each in stream_with_retry(Fake(*attempts), REQUEST, QUICK, lambda usage: used.append(usage.input)):
            if isinstance(each, RetryScheduled):
                assert used == expected[: len(used)]  # told before the wait
    assert used == expected


async def test_an_attempt_that_is_cancelled_is_counted() -> None:
    used: list[int] = []
    model = Fake([counted(3), A, FINE])
    async with aclosing(stream_with_retry(model, REQUEST, QUICK, lambda usage: used.append(usage.input))) as stream:
        assert await anext(stream) == A
    assert (used, model.closed) == ([3], 1)


async def test_the_wait_is_never_shorter_than_asked_for() -> None:
    model = Fake([Overloaded("No.", retry_after=0.08)], [FINE])
    began = time.monotonic()
    retries = [each async for each in stream_with_retry(model, REQUEST, QUICK) if isinstance(each, RetryScheduled)]
    assert [each.delay_s for each in retries] == [0.08]
    assert time.monotonic() - began >= 0.08


async def test_a_wait_too_long_is_named() -> None:
    with pytest.raises(RateLimited, match="asks Amanu to wait 60 minutes") as caught:
        async for _ in stream_with_retry(Fake([RateLimited("Slow.", "V", 429, 3600.0)]), REQUEST, QUICK):
            pass
    assert (caught.value.vendor, caught.value.status, caught.value.retry_after) == ("V", 429, 3600.0)


async def test_giving_up_says_after_how_many_attempts() -> None:
    with pytest.raises(EmptyReply, match="Gave up after 3 attempts"):
        async for _ in stream_with_retry(Fake([done()], [done()], [done()]), REQUEST, QUICK):
            pass


async def test_a_wait_ends_at_once_when_cancelled() -> None:
    model = Fake([RateLimited("Slow.", retry_after=30.0)])
    waiting = asyncio.Event()

    async def ask() -> None:
        async for each in stream_with_retry(model, REQUEST, QUICK):
            if isinstance(each, RetryScheduled):
                waiting.set()

    task = asyncio.create_task(ask())
    await waiting.wait()
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 10


async def test_a_slow_reader_is_no_silence() -> None:
    model = Fake([A, A, FINE])
    words: list[object] = []
    async for each in stream_with_retry(model, REQUEST, QUICK):
        await asyncio.sleep(0.12)
        words.append(each)
    assert words == [A, A, FINE]


async def test_an_error_of_ours_is_not_retried() -> None:
    class Buggy(Fake):
        async def stream(self, request: Request) -> AsyncGenerator[Delta]:
            self.asked += 1
            yield A
            raise KeyError("bug")

    model = Buggy()
    with pytest.raises(KeyError):
        async for _ in stream_with_retry(model, REQUEST, QUICK):
            pass
    assert model.asked == 1


PER_MINUTE: dict[str, tuple[RateLimited, int, int, str]] = {
    # what the service says, tokens of the request, those an earlier one had → how it ends
    "more than a minute allows": (RateLimited("No.", limit=30_000), 35_000, 0, "ContextTooLong"),
    "less": (RateLimited("No.", limit=30_000), 20_000, 0, "ReplyCompleted"),
    "most is in a cache": (RateLimited("No.", limit=30_000), 60_000, 55_000, "ReplyCompleted"),
    "what is in a cache counts": (
        RateLimited("No.", limit=30_000, counts_cached=True),
        60_000,
        55_000,
        "ContextTooLong",
    ),
    "none named": (RateLimited("No."), 60_000, 0, "ReplyCompleted"),
    "nothing known": (RateLimited("No.", limit=30_000), 0, 0, "ReplyCompleted"),
}


@pytest.mark.parametrize("case", PER_MINUTE)
async def test_a_request_that_a_minute_does_not_allow_is_not_repeated(case: str) -> None:
    failure, tokens, cached, ending = PER_MINUTE[case]
    model = Fake([failure], [FINE])
    asked = replace(REQUEST, tokens=tokens, cached=cached)
    if ending == "ReplyCompleted":
        assert [each async for each in stream_with_retry(model, asked, QUICK)][-1] == FINE
        return
    with pytest.raises(ContextTooLong) as caught:
        async for _ in stream_with_retry(model, asked, QUICK):
            pass
    assert (model.asked, caught.value.limit) == (1, 30_000)


def test_delays_double_up_to_the_longest() -> None:
    policy = RetryPolicy(first_delay=1, longest_delay=30)
    for retry, full in enumerate([1, 2, 4, 8, 16, 30, 30], start=1):
        for _ in range(20):
            assert full * 2 / 3 <= policy.delay(retry) <= full


@pytest.mark.parametrize(
    ("status", "retires", "successor", "added"),
    [
        (404, "2026-12-11", "openai:new", " Its vendor shuts it down on 2026-12-11; choose openai:new instead."),
        (410, None, "openai:new", " Its vendor has deprecated it; choose openai:new instead."),
        (404, "2026-12-11", None, ""),
        (404, None, None, ""),
        (400, "2026-12-11", "openai:new", ""),
    ],
)
async def test_a_model_that_is_gone_is_named_with_its_successor(
    status: int, retires: str | None, successor: str | None, added: str
) -> None:
    info = REQUEST.model.model_copy(update={"retires": retires, "successor": successor})
    model = Fake([RequestRefused("No such model.", "openai", status, details="its words")])
    with pytest.raises(RequestRefused) as caught:
        async for _ in stream_with_retry(model, replace(REQUEST, model=info), QUICK):
            pass
    assert str(caught.value) == f"No such model.{added}"
    assert (caught.value.status, caught.value.details, model.asked) == (status, "its words", 1)
