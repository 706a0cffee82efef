"""A turn whose model cannot be asked goes on with another one, at the same step, and says so."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from amanu.agent.failover import BRIEF
from amanu.agent.fallback import Candidate, Fallbacks
from amanu.agent.loop import run_turn
from amanu.core.agent import SystemPrompt
from amanu.core.listeners import TurnView
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    Delta,
    ModelError,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    Request,
    RequestRefused,
    StreamBroken,
    TextDelta,
    TokenUsage,
    Unreachable,
    UsageCounted,
)
from amanu.models.retry import PATIENT, RetryPolicy
from amanu.permissions import approvals as approval
from amanu_protocol.events import ItemsWithdrawn, RetryChanged, StepEnded, TurnRouted
from support.loop_harness import INFO, LoopHarness, PlayedModel, Reply, call, says

BUSY = Overloaded("The service is busy.")
DAILY = QuotaExhausted("The quota is used up.")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def harness(*models: list[Reply], **options: Any) -> LoopHarness:
    """The turn's model and those that can stand in for it, each with its replies."""
    made = LoopHarness(models[0], **options)
    ways = [Candidate(made.model, INFO)]
    for at, replies in enumerate(models[1:], start=1):
        info = INFO.model_copy(update={"model_id": f"test:standin{at}", "name": f"Standin {at}"})
        ways.append(Candidate(PlayedModel(replies), info))
    made.turn.fallbacks = Fallbacks(candidates=ways)
    return made


async def play(made: LoopHarness) -> tuple[str, str]:
    async with asyncio.timeout(50):
        ending = await run_turn(made.turn)
    made.conversation.check()
    return ending.reason, ending.message


def requests(made: LoopHarness) -> list[int]:
    return [len(way.model.requests) for way in made.turn.fallbacks.candidates if isinstance(way.model, PlayedModel)]


def routed(made: LoopHarness) -> list[tuple[str, str]]:
    return [(event.model_id, event.reason) for event in made.emitted.events if isinstance(event, TurnRouted)]


def notices(made: LoopHarness) -> list[tuple[str, str]]:
    return [(item.code, item.text) for item in made.emitted.state.items if item.kind == "notice"]


CASES: dict[str, tuple[list[Reply], list[int], str]] = {
    # name: (what the model does at last, requests to it and its stand-in, why)
    "overloaded": ([BUSY] * 3, [3, 1], "is overloaded"),
    "rate limited": ([RateLimited("Slow.")] * 3, [3, 1], "is taking no more requests for now"),
    "asked to wait longer than with another model at hand": (
        [RateLimited("Slow.", retry_after=21)], [1, 1], "is taking no more requests for now",
    ),
    "out of reach": ([Unreachable("No route.")] * 3, [3, 1], "cannot be reached"),
    "quota used up": ([DAILY], [1, 1], "has no quota or credit left"),
    "a key that is refused": ([AuthFailed("Bad key.")], [1, 1], "cannot be used with your key"),
    "no such model": ([ModelNotFound("No model.")], [1, 1], "is not offered to you by its service"),
    "broken, then overloaded": ([StreamBroken("Cut."), BUSY, BUSY, BUSY], [4, 1], "is overloaded"),
}  # fmt: skip


@pytest.mark.parametrize(("fails", "asked", "why"), CASES.values(), ids=CASES)
async def test_in_the_middle_of_a_tool_loop(fails: list[Reply], asked: list[int], why: str) -> None:
    made = harness([says("Look.", call("read", "r1")), *fails], [says("", call("read", "r2")), says("Done.")])
    assert await play(made) == ("completed", "")
    assert requests(made) == [asked[0] + 1, asked[1] + 1]  # and the turn stays with it
    reason = f"Test {why}; Standin 1 is used instead."
    assert routed(made) == [("test:standin1", reason)]
    ((code, text),) = notices(made)
    assert code == "fallback" and reason in text and str(fails[-1]) in text
    assert made.emitted.state.turn is None
    assert [event.step for event in made.emitted.events if isinstance(event, StepEnded)] == [1, 2, 3]
    assert [item.text for item in made.emitted.state.items if item.kind == "answer"] == ["Look.", "Done."]
    assert made.emitted.state.retry is None
    assert made.turn.fallbacks.replaced == "test:model"
    assert made.turn.info.model_id == "test:standin1"


@pytest.mark.parametrize(
    ("failure", "attempts"),
    [
        (RequestRefused("Bad."), 1),
        (ContextTooLong("Long."), 1),
        (StreamBroken("Cut."), 4),
    ],
)
async def test_what_another_model_would_not_mend(failure: ModelError, attempts: int) -> None:
    made = harness([failure] * attempts, [says("Not me.")])
    reason, message = await play(made)
    assert reason == "failed" and failure.message in message
    assert (requests(made), routed(made)) == ([attempts, 0], [])


class Breaking(PlayedModel):
    """Counts 1,000 tokens, then fails with its only reply, each time."""

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        yield UsageCounted(TokenUsage(input=1_000))
        failure = self.replies[0]
        assert isinstance(failure, ModelError)
        raise failure


async def test_each_model_costs_its_own_price() -> None:
    made = harness([], [says("Done.")])
    dear, cheap = (INFO.model_copy(update={"input_price": price, "output_price": price}) for price in (8.0, 1.0))
    made.turn.candidate = Candidate(Breaking([BUSY]), dear)
    standin = replace(made.turn.fallbacks.candidates[1], info=cheap.model_copy(update={"model_id": "test:standin"}))
    made.turn.fallbacks.candidates = [made.turn.candidate, standin]
    assert await play(made) == ("completed", "")
    assert made.turn.spent.cost_usd == pytest.approx(3 * 8e-3 + 15e-6)
    assert made.turn.ledger.usage.cost_usd == made.turn.spent.cost_usd


async def test_nothing_stands_in_when_the_limit_on_costs_is_reached() -> None:
    made = harness([], [says("Done.")], max_cost_usd=0.005)
    made.turn.candidate = Candidate(Breaking([DAILY]), INFO.model_copy(update={"input_price": 8.0}))
    assert await play(made) == ("costLimit", "This turn has spent $0.0080; its limit is $0.0050.")
    assert requests(made) == [0, 0] and routed(made) == []


async def test_what_was_shown_of_the_attempt_disappears() -> None:
    half = LoopHarness([]).model

    async def breaks(request: Any) -> Any:
        yield TextDelta("Half a sen")
        raise DAILY

    half.stream = breaks  # type: ignore[method-assign]
    made = harness([], [says("A whole one.")])
    made.turn.candidate = replace(made.turn.candidate, model=half)
    made.turn.fallbacks.candidates = [Candidate(half, INFO), *made.turn.fallbacks.candidates[1:]]
    assert await play(made) == ("completed", "")
    kinds = [type(event) for event in made.emitted.events]
    assert kinds.index(ItemsWithdrawn) < kinds.index(TurnRouted)
    assert [item.text for item in made.emitted.state.items if item.kind == "answer"] == ["A whole one."]


async def test_a_retry_is_not_waited_for_any_more_when_another_model_is_asked() -> None:
    made = harness([BUSY] * 3, [says("Done.")])
    await play(made)
    routed_at = next(at for at, event in enumerate(made.emitted.events) if isinstance(event, TurnRouted))
    retries = [event.retry for event in made.emitted.events[:routed_at] if isinstance(event, RetryChanged)]
    assert [each and each.attempt for each in retries] == [2, None, 3, None]
    assert not any(isinstance(event, RetryChanged) for event in made.emitted.events[routed_at:])


async def test_one_after_the_other_and_then_the_error_of_the_first() -> None:
    made = harness([DAILY], [AuthFailed("The second key is refused.")], [QuotaExhausted("The third has none.")])
    reason, message = await play(made)
    assert (reason, message) == ("failed", "The quota is used up. The third has none.")
    assert [model_id for model_id, _ in routed(made)] == ["test:standin1", "test:standin2"]
    assert requests(made) == [1, 1, 1]


async def test_what_another_session_found_out_is_not_tried_again() -> None:
    made = harness([DAILY], [says("Not me.")], [says("Me.")])
    first, second, _ = made.turn.fallbacks.candidates
    made.turn.fallbacks.availability.lost(second.model, second.info, BUSY)
    assert await play(made) == ("completed", "")
    assert requests(made) == [1, 0, 1]
    again = harness([BUSY] * 8, [says("Not me.")])
    again.turn.fallbacks.availability.lost(
        again.turn.fallbacks.candidates[1].model, again.turn.fallbacks.candidates[1].info, BUSY
    )
    reason, message = await play(again)  # with nobody else to ask it is asked patiently
    assert (reason, requests(again)) == ("failed", [8, 0])
    assert message.endswith("No other model is available right now either.")
    assert first.model is not second.model


async def test_one_without_room_for_the_conversation_does_not_stand_in() -> None:
    made = harness([DAILY], [says("Not me.")], [says("Me.")])
    small = made.turn.fallbacks.candidates[1]
    made.turn.fallbacks.candidates = [
        made.turn.fallbacks.candidates[0],
        Candidate(small.model, small.info.model_copy(update={"context_window": 100})),
        made.turn.fallbacks.candidates[2],
    ]
    made.turn.ledger.usage = made.turn.ledger.usage.model_copy(update={"context_tokens": 500})
    assert await play(made) == ("completed", "")
    assert requests(made) == [1, 0, 1]


async def test_a_standin_that_fails_gives_back_to_the_first_when_its_time_is_over() -> None:
    made = harness([DAILY, says("Me again.")], [says("", call("read", "r")), BUSY, BUSY, BUSY])
    ways = made.turn.fallbacks
    task = asyncio.create_task(run_turn(made.turn))
    while ways.replaced is None:
        await asyncio.sleep(0)
    ways.availability.answered(made.model, INFO)
    assert (await task).reason == "completed"
    assert [model_id for model_id, _ in routed(made)] == ["test:standin1", "test:model"]
    assert ways.replaced is None


async def test_cancelled_while_it_waits_nobody_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 30.0)  # pyright: ignore[reportUnknownLambdaType]
    made = harness([BUSY] * 3, [says("Not me.")])
    task = asyncio.create_task(run_turn(made.turn))
    while made.emitted.state.retry is None:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (requests(made), routed(made)) == ([1, 0], [])


async def test_the_system_prompt_is_that_of_the_model_that_is_asked() -> None:
    made = harness([DAILY], [says("Done.")])
    made.turn.system_prompt_for = lambda info: SystemPrompt(f"You are {info.name}.", "")
    await play(made)
    assert made.turn.system == "You are Standin 1."


async def test_the_cost_is_that_of_the_model_that_answered() -> None:
    made = harness([DAILY], [says("Done.")])
    way = made.turn.fallbacks.candidates[1]
    dear = way.info.model_copy(update={"input_price": 100.0, "output_price": 1000.0})
    made.turn.fallbacks.candidates = [made.turn.fallbacks.candidates[0], Candidate(way.model, dear)]
    await play(made)
    assert made.turn.spent.cost_usd == pytest.approx((10 * 100 + 5 * 1000) / 1e6)
    ended = [event.usage for event in made.emitted.events if isinstance(event, StepEnded)]
    assert [each and each.cost_usd for each in ended] == [made.turn.spent.cost_usd]


async def test_a_judge_may_send_it_elsewhere_before_the_first_request() -> None:
    made = harness([], [says("Done.")])

    async def judge(turn: TurnView) -> tuple[Candidate, str]:
        return made.turn.fallbacks.candidates[1], "Judged easy."

    made.turn.fallbacks.judge = judge
    assert await play(made) == ("completed", "")
    assert (requests(made), routed(made)) == ([0, 1], [("test:standin1", "Judged easy.")])


async def test_the_utility_model_out_of_order_is_no_reason_to_go_without_an_answer() -> None:
    made = harness([says("Forty.")])
    out_of_order = PlayedModel([DAILY])
    made.turn.utility = Candidate(out_of_order, INFO)
    assert await made.turn.side_query("s", "How much?", max_output=10) == "Forty."
    assert made.turn.spent.output_tokens == 5
    assert len(out_of_order.requests) == 1
    with pytest.raises(QuotaExhausted):
        made.model.replies.append(DAILY)
        await made.turn.side_query("s", "How much?", max_output=10)


def test_with_another_model_at_hand_patience_is_short_for_busy_services_alone() -> None:
    assert (BRIEF.busy_retries, BRIEF.longest_wait) < (PATIENT.busy_retries, PATIENT.longest_wait)
    assert (BRIEF.attempts, BRIEF.broken_retries, BRIEF.empty_retries) == (8, 3, 2)
