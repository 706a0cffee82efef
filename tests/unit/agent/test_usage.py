"""Tokens by kind, and what they cost."""

from typing import Any

import pytest

from amanu.agent import usage as spending
from amanu.agent.budget import CostLimits
from amanu.core.agent import NOTHING_SPENT
from amanu.core.model import TokenUsage
from amanu.core.model_families import model_info
from amanu_protocol.items import ModelInfo, ModelPrices, Spend
from amanu_protocol.state import SessionState

SESSION = SessionState(session_id="s", title="", roots=[], mode="ask", model_id="m", trusted=False, read_only=False)
ALL = TokenUsage(input=1000, cache_read=2000, cache_write=300, output=40, thoughts=5, tools=600)


def priced(**prices: Any) -> ModelInfo:
    none = dict.fromkeys(("input_price", "output_price", "cache_read_price", "cache_write_price"))
    return model_info("scripted:x").model_copy(update={**none, **prices})


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({"input_price": 1.0, "output_price": 10.0, "cache_read_price": 0.1, "cache_write_price": 1.25},
         (1000 + 200 + 375 + 450) / 1e6),
        ({"input_price": 1.0, "output_price": 10.0}, (1000 + 2000 + 300 + 450) / 1e6),  # never too low
        ({"input_price": 1.0}, None),
        ({}, None),
        ({"input_price": 0.0, "output_price": 0.0}, 0.0),
    ],
)  # fmt: skip
def test_price(prices: dict[str, float], cost: float | None) -> None:
    found = spending.price(priced(**prices), ALL)
    assert found == (None if cost is None else pytest.approx(cost))


SHORT, LONG = 10_000, 300_000


@pytest.mark.parametrize(
    ("model_id", "used", "dollars"),
    [
        ("anthropic:claude-opus-5-5", TokenUsage(1_000, 5_000, 2_000, output=300, thoughts=40), 0.005 + 0.010 + 0.0068),
        ("anthropic:claude-opus-5-5", TokenUsage(0, 0, 3_000, cache_write_hour=1_000), 0.010 + 0.008),
        ("anthropic:claude-haiku-5-5", TokenUsage(0, 0, LONG, cache_write_hour=LONG), 0.3),
        ("anthropic:claude-opus-5-5", TokenUsage(LONG, output=1_000), 1.2 + 0.02),
        ("anthropic:claude-haiku-5-5", TokenUsage(100_000, output=1_000), 0.01 + 0.0005),
        ("anthropic:claude-haiku-5-5", TokenUsage(100_001, output=1_000), 0.0500005 + 0.0025),
        ("anthropic:claude-haiku-5-5", TokenUsage(1, 90_000, 10_000, output=1_000), 0.0107505 + 0.0025),
        ("openai:gpt-6.2-sol", TokenUsage(SHORT, 2_000, 1_000, output=500), 0.02 + 0.0002 + 0.0025 + 0.005),
        ("openai:gpt-6.2-sol", TokenUsage(SHORT, LONG, 1_000, output=500, thoughts=500), 0.04 + 0.06 + 0.005 + 0.015),
        ("openai:gpt-6.2-sol", TokenUsage(272_000, output=1_000_000), 0.544 + 10),  # the reply is no prompt
        ("openai:gpt-5.5", TokenUsage(0, 0, LONG, output=1_000), 3.0 + 0.045),
        ("azure:gpt-6-luna", TokenUsage(LONG), 0.06),
        ("openai:gpt-5.4-mini", TokenUsage(LONG), 0.225),
        ("openai:gpt-6-astra", TokenUsage(SHORT, 10_000, output=1_000), 0.1 + 0.01 + 0.05),
        ("openai:gpt-6-sol", TokenUsage(SHORT, 10_000, output=1_000), 0.02 + 0.002 + 0.01),
        ("gemini:gemini-3.1-pro-preview", TokenUsage(SHORT, 10_000, output=1_000), 0.02 + 0.002 + 0.012),
        ("gemini:gemini-3.1-pro-preview", TokenUsage(LONG, 10_000, output=1_000), 1.2 + 0.004 + 0.018),
        ("gemini:gemini-4-argon", TokenUsage(LONG, 10_000, output=1_000), 1.2 + 0.002 + 0.02),
        ("gemini:gemini-2.5-pro", TokenUsage(LONG, output=1_000), 0.75 + 0.015),
        ("anthropic:claude-sonnet-5-5", TokenUsage(SHORT, searches=3), 0.02 + 0.03),
        ("anthropic:claude-haiku-5-5", TokenUsage(LONG, searches=1), 0.15 + 0.01),
        ("gemini:gemini-3.8-flash", TokenUsage(SHORT, searches=2), 0.0075 + 0.028),
        ("openai:gpt-6.2-sol", TokenUsage(SHORT, searches=1), 0.02 + 0.01),
        ("openai:gpt-6.2-sol", TokenUsage(SHORT, told_usd=0.5), 0.5),
        ("openrouter:openrouter/auto", TokenUsage(SHORT, told_usd=0.5), 0.5),
        ("openrouter:openrouter/auto", TokenUsage(SHORT, searches=1), None),
        ("ollama:x", ALL, None),
    ],
)  # fmt: skip
def test_what_a_request_of_a_known_model_costs(model_id: str, used: TokenUsage, dollars: float | None) -> None:
    cost = spending.price(model_info(model_id), used)
    assert cost == (None if dollars is None else pytest.approx(dollars))


OURS = {"input_price": 2.0, "output_price": 10.0, "cache_read_price": 0.1, "cache_write_price": 2.5}


@pytest.mark.parametrize(
    ("listed", "used", "shown", "counted"),
    [
        ({"input_price": 3.0}, TokenUsage(1_000_000), 3.0, 3.0),
        ({"input_price": 1.0}, TokenUsage(1_000_000), 1.0, 2.0),
        ({"cache_read_price": 0.2}, TokenUsage(0, 1_000_000), 0.2, 0.2),
        ({"cache_read_price": 0.05}, TokenUsage(0, 1_000_000), 0.05, 0.1),
        # One is dearer for this request, the other for that one.
        ({"input_price": 1.0, "output_price": 20.0}, TokenUsage(1_000_000), 1.0, 2.0),
        ({"input_price": 1.0, "output_price": 20.0}, TokenUsage(output=1_000_000), 20.0, 20.0),
        ({"input_price": 1.0}, TokenUsage(1_000_000, told_usd=0.7), 0.7, 0.7),
    ],
)
def test_limits_count_the_dearer_of_two_prices(
    listed: dict[str, float], used: TokenUsage, shown: float, counted: float
) -> None:
    other = ModelPrices.model_validate({name.removesuffix("_price"): price for name, price in OURS.items()})
    info = priced(**{**OURS, **listed}, other_prices=other)
    limits = CostLimits(counted, None, SESSION)
    ledger = spending.Ledger(spending.NO_USAGE, limits)
    assert ledger.count_request(info, used).cost_usd == ledger.usage.cost_usd == pytest.approx(shown)
    assert limits.left == pytest.approx(0, abs=1e-9)
    said = limits.limit_reached()
    assert said is not None and ("two prices are known, the dearer counts" in said) == (counted > shown)


def test_steps_add_up_to_the_turn_and_the_turn_to_the_session() -> None:
    info = priced(input_price=1.0, output_price=10.0)
    one = spending.spend_of(info, ALL)
    turn = spending.add_spends(spending.add_spends(NOTHING_SPENT, one), one)
    session = spending.add_request(spending.add_request(spending.NO_USAGE, info, ALL), info, ALL)
    kinds = Spend.model_fields
    assert {kind: getattr(turn, kind) for kind in kinds} == {kind: getattr(session, kind) for kind in kinds}
    assert (turn.input_tokens, turn.tool_tokens, turn.thought_tokens) == (2000, 1200, 10)


def test_one_price_that_is_not_known_makes_the_sum_unknown() -> None:
    info = priced(input_price=1.0, output_price=10.0)
    assert spending.add_spends(spending.spend_of(info, ALL), spending.spend_of(priced(), ALL)).cost_usd is None
    before = spending.add_request(spending.NO_USAGE, priced(), ALL)
    assert spending.add_request(before, info, ALL).cost_usd is None


def test_a_question_aside_costs_and_says_nothing_of_the_window() -> None:
    info = priced(input_price=1.0, output_price=1.0)
    before = spending.NO_USAGE.model_copy(update={"context_tokens": 77, "context_window": 100})
    after = spending.add_beside(before, info, ALL)
    assert (after.context_tokens, after.context_window, after.input_tokens) == (77, 100, 1000)
    assert after.cost_usd is not None and after.cost_usd > 0
