"""Attempts that come to nothing cost as much as any other: what the service has counted of them is in the turn's costs,
and the limit on these holds. From the bytes of each service to the end of the turn."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from amanu.agent import usage as spending
from amanu.agent.loop import run_turn
from amanu.core.model import Model, TokenUsage
from amanu.core.model_families import model_info
from amanu.models.retry import RetryPolicy
from amanu_protocol.events import StepEnded
from support.loop_harness import LoopHarness
from support.strict_services.http import Fault, Raw, Say, Step, ToolUse
from support.vendor_sweeps import over_vendors
from support.vendors import VENDORS, Vendor, running

USED = {"input": 1_000, "output": 500}
FINE = Say(text="Fine, it is done.", usage={"input": 70, "output": 7})
EMPTY = Say(usage=USED)
HALF = Say(text=["Half ", "a"], usage=USED)
MALFORMED = Say(calls=[ToolUse("read", '{"path": ')], usage=USED)
IN_FULL = TokenUsage(input=1_000, output=500)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


def on_stage(vendor: Vendor, model: Model, max_cost_usd: float | None = None) -> LoopHarness:
    priced = model_info(vendor.model_id).model_copy(update={"input_price": 1.0, "output_price": 1.0})
    harness = LoopHarness((), info=priced, max_cost_usd=max_cost_usd)
    harness.turn.candidate = replace(harness.turn.candidate, model=model)
    return harness


def spent(harness: LoopHarness) -> tuple[int, int]:
    """Tokens in and out, as the turn, its session and its steps have them."""
    turn, session = harness.turn.spent, harness.turn.ledger.usage
    steps = [event.usage for event in harness.emitted.events if isinstance(event, StepEnded) and event.usage]
    tokens = (turn.input_tokens, turn.output_tokens)
    assert tokens == (session.input_tokens, session.output_tokens)
    assert tokens == (sum(step.input_tokens for step in steps), sum(step.output_tokens for step in steps))
    return tokens


# Every vendor --------------------------------------------------------------------------------------------


@over_vendors("counts")
async def test_replies_without_an_answer_are_counted(vendor: Vendor) -> None:
    async with running(vendor, [EMPTY, EMPTY, FINE]) as (_, model):
        harness = on_stage(vendor, model)
        assert (await run_turn(harness.turn)).reason == "completed"
    assert spent(harness) == (2_070, 1_007)
    assert harness.turn.ledger.usage.context_tokens == 77  # the window holds nothing of them


@over_vendors("counts", "thoughts")
async def test_replies_of_thoughts_alone_are_counted_also_when_nothing_follows(vendor: Vendor) -> None:
    thought = Say(thought="Hm.", usage={"input": 1_000, "thoughts": 400, "output": 100})
    async with running(vendor, [thought] * 3) as (_, model):
        harness = on_stage(vendor, model)
        assert (await run_turn(harness.turn)).reason == "failed"
    assert spent(harness) == (3_000, 300)
    assert harness.turn.spent.thought_tokens == 1_200


@over_vendors("counts")
async def test_the_limit_on_costs_holds_for_replies_without_an_answer(vendor: Vendor) -> None:
    async with running(vendor, [EMPTY, EMPTY, FINE]) as (service, model):
        harness = on_stage(vendor, model, max_cost_usd=0.001)
        ending = await run_turn(harness.turn)
        assert len(service.requests) == 1
    assert (ending.reason, ending.can_continue) == ("costLimit", True)
    assert "its limit is $0.001" in ending.message
    harness.conversation.check()


@over_vendors("counts")
async def test_side_requests_without_an_answer_are_counted(vendor: Vendor) -> None:
    async with running(vendor, [EMPTY, FINE]) as (_, model):
        turn = on_stage(vendor, model).turn
        turn.use_model(turn.candidate)
        assert await turn.side_query("Be brief.", "How is it?", max_output=100) == "Fine, it is done."
    assert (turn.spent.input_tokens, turn.spent.output_tokens) == (1_070, 507)


# Each wire -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    attempt: Step
    used: TokenUsage
    """The usage that the service had counted."""
    vendors: Sequence[str]
    """Beginnings of vendors' names."""


def failed(**response: Any) -> Raw:
    error = {"code": "server_error", "message": "Something went wrong."}
    event = {"type": "response.failed", "response": {"status": "failed", "error": error, **response}}
    return Raw([f"data: {json.dumps(event)}\n\n".encode()])


ANTHROPIC, GEMINI = ("anthropic",), ("gemini",)
CHAT = ("openrouter", "google-openai", "deepseek", "kimi", "local")
CASES: dict[str, Case] = {
    "breaks off": Case(replace(HALF, fault=Fault("unfinished")), TokenUsage(input=1_000, output=1), ANTHROPIC),
    "is cut in a string": Case(replace(HALF, fault=Fault("cut", after=3)), TokenUsage(1_000, output=1), ANTHROPIC),
    "is overloaded": Case(replace(HALF, fault=Fault("errorEvent", after=3)), TokenUsage(1_000, output=1), ANTHROPIC),
    "breaks off ": Case(replace(HALF, fault=Fault("unfinished")), TokenUsage(input=1_000), GEMINI),
    "is reset": Case(replace(HALF, fault=Fault("reset", after=1)), TokenUsage(input=1_000), GEMINI),
    "fails": Case(replace(HALF, fault=Fault("errorEvent", after=1)), TokenUsage(input=1_000), GEMINI),
    "malformed call": Case(Say(stop="MALFORMED_FUNCTION_CALL", usage=USED), IN_FULL, GEMINI),
    "unknown tool": Case(Say(stop="UNEXPECTED_TOOL_CALL", usage=USED), IN_FULL, GEMINI),
    "failed": Case(failed(usage={"input_tokens": 1_000, "output_tokens": 500}), IN_FULL, ("openai", "chatgpt")),
    "gives up": Case(replace(HALF, stop="error"), IN_FULL, CHAT),
    "malformed arguments": Case(MALFORMED, IN_FULL, ("openrouter", "local")),
    "nothing counted": Case(Fault("empty"), TokenUsage(), ("",)),
}


@pytest.mark.parametrize(
    ("vendor", "case"),
    [
        pytest.param(vendor, case, id=f"{name}-{vendor.name}")
        for name, case in CASES.items()
        for vendor in VENDORS
        if vendor.name.startswith(tuple(case.vendors)) and "counts" not in vendor.lacks
    ],
)
async def test_an_attempt_that_comes_to_nothing_is_counted_as_far_as_the_service_says(
    vendor: Vendor, case: Case
) -> None:
    async with running(vendor, [case.attempt, FINE]) as (_, model):
        harness = on_stage(vendor, model)
        assert (await run_turn(harness.turn)).reason == "completed"
    assert spent(harness) == (case.used.input + 70, case.used.output + 7)
    cost = spending.price(harness.turn.info, case.used)
    assert cost is not None and harness.turn.spent.cost_usd == pytest.approx(cost + 77e-6)
