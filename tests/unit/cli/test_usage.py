"""How full the window is, and what stands behind a notice, at a terminal."""

import io
from typing import Any

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.render import Renderer
from amanu.cli.usage import show_context
from amanu.text import wording
from amanu_protocol.events import Event, EventMessage, ItemCompleted, ItemStarted, TurnStarted
from amanu_protocol.items import Citations, ContextUse, Notice, ServerTokens, Source, Usage
from amanu_protocol.state import fold
from support.fake_daemon import SESSION, state


def usage(tier: Any = None, **changes: Any) -> Usage:
    context = ContextUse(
        system=900,
        tools=2_100,
        memory=0,
        conversation=1_200,
        tool_output=4_800,
        reserved=4_000,
        free=3_000,
        tier=tier or "roomy",
        servers=[ServerTokens(name="git", tokens=1_200)],
    )
    plain: dict[str, Any] = {
        "input_tokens": 1,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "output_tokens": 0,
        "thought_tokens": 0,
        "context_tokens": 8_000,
        "context_window": 16_000,
        "context": context if tier else None,
    }
    return wording.summarize_usage(Usage(**{**plain, **changes}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (usage(), "context 50%"),
        (usage(context_window=0), ""),
        (usage("roomy"), "context 75%"),
        (usage("warn"), "context 75%, filling up"),
        (usage("mask"), "context 75%, nearly full"),
        (usage("compact"), "context 75%, full"),
    ],
)
def test_how_full_it_is(given: Usage, expected: str) -> None:
    assert given.fullness == expected


def test_what_fills_it() -> None:
    out = io.StringIO()
    show_context(usage("mask"), PlainConsole(out))
    assert out.getvalue() == (
        "Context 75% full, nearly full\n"
        "  System prompt               900     6%\n"
        "  Tools                     2,100    13%\n"
        "    git                     1,200\n"
        "  Conversation              1,200     8%\n"
        "  Tool output               4,800    30%\n"
        "  Free                      3,000    19%\n"
        "  Reserved for reply        4,000    25%\n"
        "  Window                   16,000\n"
        "Old tool output is dropped to make room; the model can read it again.\n"
        "/compact [what to preserve] frees space\n"
    )


@pytest.mark.parametrize(("given", "expected"), [(None, "Nothing has been sent"), (usage(), "context 50%")])
def test_what_fills_it_is_not_known(given: Usage | None, expected: str) -> None:
    out = io.StringIO()
    show_context(given, PlainConsole(out))
    assert expected in out.getvalue()


def notice(code: str, detail: str = "") -> Notice:
    return Notice(item_id="n", level="info", code=code, text=f"It is {code}.", detail=detail)


def drawn(*events: Event, more: str = "") -> tuple[str, str]:
    """What is printed of them, and what moves afterwards."""
    out, now = io.StringIO(), state()
    renderer = Renderer(PlainConsole(out), details_hint=more)
    for seq, event in enumerate(events, 1):
        fold(now, event)
        renderer.show(EventMessage(session_id=SESSION, epoch=1, seq=seq, at=0, event=event), now)
    activity = renderer.status(now, 0)
    return out.getvalue(), "" if activity is None else activity.title


TURN = TurnStarted(turn_id="t", prompt_id="p", model_id="m")
SOURCES = [
    Source(title="A\x1b[31m page", url="https://example.org/a", quote="It says\nso."),
    Source(title="", url="https://example.org/b"),
    Source(title="A letter"),
]


@pytest.mark.parametrize(
    ("events", "more", "expected", "status"),
    [
        ([TURN, ItemStarted(item=notice("compacting"))], "/notes", "", "compacting"),
        ([ItemCompleted(item=notice("compacted", "## Goal"))], "/notes", "· It is compacted. (/notes)\n", ""),
        ([ItemCompleted(item=notice("compacted", "## Goal"))], "", "· It is compacted.\n", ""),
        ([ItemCompleted(item=notice("modelTold"))], "/notes", "· It is modelTold.\n", ""),
        (
            [ItemCompleted(item=Citations(item_id="c", turn_id="t", sources=SOURCES))],
            "",
            "  [1] A page https://example.org/a\n      “It says so.”\n  [2] https://example.org/b\n  [3] A letter\n",
            "",
        ),
    ],
)
def test_how_it_is_drawn(events: list[Event], more: str, expected: str, status: str) -> None:
    assert drawn(*events, more=more) == (expected, status)
