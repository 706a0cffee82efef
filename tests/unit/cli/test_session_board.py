"""All sessions on one screen: in which order, and what is said of each."""

from typing import Any

import pytest

from amanu.cli.session_board import board_choices, board_preview
from amanu.text.amounts import age
from amanu_protocol.requests import OpenQuestion, SessionSummary


def summary(session_id: str = "s1", **changes: Any) -> SessionSummary:
    plain: dict[str, Any] = {
        "session_id": session_id,
        "title": "Fix the cart",
        "roots": ["/home/ada/shop"],
        "model_id": "scripted:x",
        "created_at": 0,
        "updated_at": 40_000,
        "status": "idle",
    }
    return SessionSummary(**{**plain, **changes})


ASKED = [OpenQuestion(tool_call_id="c", title="Run\x1b[2J make"), OpenQuestion(tool_call_id="d", title="Edit a")]


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([], []),
        ([summary(title="")], []),
        ([summary(title="", status="running")], ["▸ works Untitled | 5 min · shop"]),
        (
            [
                summary("new"),
                summary("closed", status="closed", changes=2),
                summary("died", status="interrupted"),
                summary("busy", status="running"),
                summary("asks", status="waiting", questions=ASKED, roots=["/a", "/b"]),
                summary("here", status="idle"),
            ],
            [
                "? waits Fix the cart | 5 min · Run make · a, b",
                "▸ works Fix the cart | 5 min · shop",
                "· ready Fix the cart | 5 min · shop",
                "· ready Fix the cart | 5 min · shop · 2 changes to review",
                "! ready Fix the cart | 5 min · shop · its last turn broke off",
                "· ready Fix the cart | you are here · 5 min · shop",
            ],
        ),
    ],
)
def test_what_waits_comes_first(sessions: list[SessionSummary], expected: list[str]) -> None:
    assert [f"{each.label} | {each.about}" for each in board_choices(sessions, "here", 340.0)] == expected


def test_below_them_is_where_it_is_and_all_that_it_waits_for() -> None:
    texts = [line.text for line in board_preview(summary(status="waiting", questions=ASKED))]
    assert texts == ["/home/ada/shop", "waiting · x · s1", "? Run make", "? Edit a"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-5, "now"), (59, "now"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (172_799, "47 h"), (172_800, "2 d")],
)
def test_ages(value: float, expected: str) -> None:
    assert age(value) == expected
