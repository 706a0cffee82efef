"""Tokens by kind, and what they cost."""

from typing import Any

import pytest

from amanu.agent import usage as spending
from amanu.core.agent import NOTHING_SPENT
from amanu.core.model import TokenUsage
from amanu.core.model_families import model_info
from amanu_protocol.items import ModelInfo, Spend

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


@pytest.mark.parametrize("model_id", ["anthropic:claude-haiku-5-5", "ollama:x"])
def test_a_price_that_depends_on_the_prompt_or_is_not_known_is_not_guessed(model_id: str) -> None:
    assert spending.price(model_info(model_id), ALL) is None


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
    after = spending.add_side_query(before, info, ALL)
    assert (after.context_tokens, after.context_window, after.input_tokens) == (77, 100, 1000)
    assert after.cost_usd is not None and after.cost_usd > 0
