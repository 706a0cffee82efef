"""The conversation in the clipboard, and what it has cost."""

from typing import Any

import pytest

from amanu.cli.ui.cost import cost_lines
from amanu.cli.ui.sequences import clipboard
from amanu_protocol.events import TurnEnded
from amanu_protocol.items import Spend, Usage
from amanu_protocol.state import SessionState
from unit.cli.test_notifications import state

SPENT: dict[str, Any] = {"cache_read_tokens": 0, "cache_write_tokens": 0, "thought_tokens": 0, "tool_tokens": 0}


@pytest.mark.parametrize(
    ("environ", "sequence"),
    [
        ({}, "\x1b]52;c;w7w=\x07"),
        ({"TMUX": "/tmp/tmux"}, "\x1b]52;c;w7w=\x07\x1bPtmux;\x1b\x1b]52;c;w7w=\x07\x1b\\"),
    ],
)
def test_the_clipboard(environ: dict[str, str], sequence: str) -> None:
    assert clipboard("ü", environ) == sequence


def spend(cost: float | None, tokens: int = 1000) -> Spend:
    return Spend(input_tokens=tokens, output_tokens=5, cost_usd=cost, **SPENT)


def spent(cost: float | None) -> SessionState:
    usage = Usage(input_tokens=9000, output_tokens=50, cost_usd=cost, context_tokens=0, context_window=1, **SPENT)
    usage = usage.model_copy(update={"cache_read_tokens": 20_000, "tool_tokens": 700})
    ended = TurnEnded(turn_id="t", reason="completed", message="", can_continue=False, usage=spend(0.25))
    return state().model_copy(update={"usage": usage, "last_turn": ended})


@pytest.mark.parametrize(
    ("session", "steps", "lines"),
    [
        (state(), {}, ["Nothing has been sent to a model yet."]),
        (
            spent(1.5),
            {"a:b": [spend(0.25), spend(0.5)], "c:d": [spend(None)]},
            [
                "session   $1.50 · 9k in · 20k from cache · 50 out · 700 of the input by the service's tools",
                "last turn $0.25 · 1k in · 5 out",
                "a:b  $0.75 · 2 steps since you came · 2k in · 10 out",
                "c:d  price unknown · 1 step since you came · 1k in · 5 out",
            ],
        ),
    ],
)
def test_the_cost(session: SessionState, steps: dict[str, list[Spend]], lines: list[str]) -> None:
    assert [*cost_lines(session, steps)] == lines
