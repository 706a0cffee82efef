"""Limits on costs: they stop, they ask once per amount, and a prompt is the yes."""

import pytest

from amanu.agent.budget import SESSION_SPENT, CostLimits
from amanu_protocol.events import TurnEnded
from amanu_protocol.items import Notice, Usage
from amanu_protocol.state import SessionState
from support.loop_harness import INFO


def session(cost: float | None = None, asked: int = 0, *, asks: bool = False) -> SessionState:
    """One that has cost that much, was asked about so often, and whose last turn ended with the question."""
    usage = Usage(
        input_tokens=0, cache_read_tokens=0, cache_write_tokens=0, output_tokens=0, thought_tokens=0,
        cost_usd=cost, context_tokens=0, context_window=0,
    )  # fmt: skip
    said = f"{SESSION_SPENT} $5.00; its limit is $5.00."
    items = [Notice(item_id=f"n{at}", level="warning", code="costLimit", text=said) for at in range(asked)]
    items.append(Notice(item_id="turn", level="warning", code="costLimit", text="This turn has spent $5.00."))
    ended = TurnEnded(turn_id="t", reason="costLimit", message=said, can_continue=True)
    return SessionState(
        session_id="s", title="", roots=[], mode="ask", model_id="m", trusted=False, read_only=False,
        items=[*items], usage=usage, last_turn=ended if asks else None,
    )  # fmt: skip


def test_no_limit_no_stop() -> None:
    allowance = CostLimits(None, None, session(9e9))
    allowance.add(9e9)
    assert allowance.limit_reached() is None


def test_a_turn_has_its_own_limit_each_time() -> None:
    allowance = CostLimits(1.0, None, session())
    for _ in range(2):
        allowance.start_turn()
        allowance.add(0.9)
        assert allowance.limit_reached() is None
        allowance.add(None)  # not known: counts nothing
        allowance.add(0.2)
        assert allowance.limit_reached() == "This turn has spent $1.10; its limit is $1.00."


def test_the_session_asks_once_per_amount() -> None:
    allowance = CostLimits(None, 5.0, session())
    allowance.start_turn()
    allowance.add(5.02)
    said = allowance.limit_reached()
    assert said == (
        "This session has spent $5.02; its limit is $5.00. Send another prompt to continue and spend up to $5.00 more."
    )
    allowance.start_turn()
    assert allowance.limit_reached() is None
    allowance.add(4.9)
    assert allowance.limit_reached() is None
    allowance.add(0.1)
    assert allowance.limit_reached() is not None
    allowance.start_turn()
    assert allowance.limit_reached() is None


def test_a_turn_that_ended_over_the_limit_is_asked_about_by_the_next() -> None:
    allowance = CostLimits(None, 5.0, session())
    allowance.start_turn()
    allowance.add(5.02)  # its last reply: there was no further request to stop
    allowance.start_turn()
    assert allowance.limit_reached() is not None
    allowance.start_turn()
    assert allowance.limit_reached() is None


def test_one_request_dearer_than_the_amount_is_asked_about_once() -> None:
    allowance = CostLimits(None, 1.0, session())
    allowance.start_turn()
    allowance.add(12.5)
    assert allowance.limit_reached() is not None
    allowance.start_turn()
    assert allowance.limit_reached() is None
    allowance.add(0.5)
    assert allowance.limit_reached() is not None


@pytest.mark.parametrize(
    ("past", "stops"),
    [
        (session(), False),
        (session(None), False),
        (session(4.9), False),
        (session(5.02), True),  # never asked
        (session(5.02, 1, asks=True), False),  # the prompt is the yes
        (session(7.0, 1), False),  # asked and allowed
        (session(10.1, 1), True),
        (session(10.1, 2, asks=True), False),
    ],
)
def test_a_session_that_is_opened_again_knows_how_often_it_asked(past: SessionState, stops: bool) -> None:
    allowance = CostLimits(None, 5.0, past)
    allowance.start_turn()
    assert (allowance.limit_reached() is not None) == stops


@pytest.mark.parametrize(("turn", "whole", "price", "says"), [
    (1.0, None, None, True), (None, 1.0, None, True), (None, None, None, False), (1.0, None, 2.0, False),
])  # fmt: skip
def test_a_price_that_is_not_known_is_said_once(
    turn: float | None, whole: float | None, price: float | None, says: bool
) -> None:
    allowance = CostLimits(turn, whole, session())
    info = INFO.model_copy(update={"input_price": price})
    assert (allowance.unknown_price(info) is not None) == says
    assert allowance.unknown_price(info) is None
