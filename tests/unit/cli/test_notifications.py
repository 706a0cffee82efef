"""What a terminal is told of a session whose user looks elsewhere."""

import os
from typing import Any

import pytest

from amanu.cli.ui.keyboard import FOCUS_GAINED, FOCUS_LOST, PromptKeyboard
from amanu.cli.ui.notifications import LONG_MS, Notifications, can_notify, escapes
from amanu_protocol.events import (
    ApprovalRequested,
    Event,
    EventMessage,
    ItemStarted,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Approval, Question
from amanu_protocol.state import SessionState, fold

START = 1_000_000
SOON, LATE = START + LONG_MS, START + LONG_MS + 1


def state(title: str = "Fix it") -> SessionState:
    return SessionState(
        session_id="s", title=title, roots=["/w"], mode="ask", model_id="scripted:demo", trusted=True, read_only=False
    )


def begun() -> Event:
    return TurnStarted(turn_id="t", prompt_id="p", model_id="scripted:demo")


def ended(reason: Any = "completed") -> Event:
    return TurnEnded(turn_id="t", reason=reason, message="", can_continue=False)


def asked() -> Event:
    return ApprovalRequested(approval=Approval.model_construct(tool_call_id="c", title="Run make", agent_id=None))


def questioned() -> Event:
    return ItemStarted(item=Question(item_id="q", turn_id="t", asker="Amanu", title="Which one", fields=[]))


NAMED = "\x1b]2;amanu · Fix it\x07"
WAITS = "\x1b]2;● amanu · Fix it\x07"


@pytest.mark.parametrize(
    ("event", "at", "focused", "written"),
    [
        (ended(), SOON, None, ""),
        (ended(), LATE, None, f"{NAMED}\x07\x1b]9;amanu: Done · Fix it\x07"),
        (ended(), LATE, True, f"{NAMED}\x07\x1b]9;amanu: Done · Fix it\x07"),
        (ended(), SOON, False, f"{NAMED}\x07\x1b]9;amanu: Done · Fix it\x07"),
        (ended("failed"), LATE, None, f"{NAMED}\x07\x1b]9;amanu: Failed · Fix it\x07"),
        (ended("costLimit"), LATE, None, f"{NAMED}\x07\x1b]9;amanu: Stopped · Fix it\x07"),
        (ended("cancelled"), LATE, False, ""),
        (asked(), SOON, True, WAITS),
        (asked(), LATE, True, f"{WAITS}\x07\x1b]9;amanu: Run make? · Fix it\x07"),
        (questioned(), SOON, False, f"{WAITS}\x07\x1b]9;amanu: Which one? · Fix it\x07"),
        (SessionChanged(title="Mend\x1b]2;it\x07"), LATE, False, "\x1b]2;amanu · Mend\x07"),
    ],
)
def test_what_happens_in_a_turn(event: Event, at: int, focused: bool | None, written: str) -> None:
    now, told = state(), list[str]()
    notifications = Notifications(told.append, lambda: focused, {})
    notifications.enter(now)
    for seq, (each, when) in enumerate([(begun(), START), (event, at)]):
        fold(now, each)
        notifications.show(EventMessage(session_id="s", epoch=1, seq=seq, at=when, event=each), now)
    assert told == [NAMED, *([written] if written else [])]


def test_who_has_just_come_is_told_nothing() -> None:
    told = list[str]()
    Notifications(told.append, lambda: None, {}).show(
        EventMessage(session_id="s", epoch=1, seq=1, at=LATE, event=ended()), state()
    )
    assert told == [NAMED]


def test_tmux_passes_it_on() -> None:
    assert escapes(state(""), "Done", tmux=True) == "\x1b]2;amanu\x07\x07\x1bPtmux;\x1b\x1b]9;amanu: Done\x07\x1b\\"


@pytest.mark.parametrize(
    ("environ", "can"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "linux"}, False),
        ({}, False),
    ],
)
def test_a_terminal_that_would_print_it_is_left_alone(environ: dict[str, str], can: bool) -> None:
    assert can_notify(environ) is can


def test_the_focus_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PromptKeyboard, "focused", None)
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin:
        keyboard = PromptKeyboard(stdin)
        for sent, focused in ((FOCUS_LOST, False), ("a" + FOCUS_GAINED[:2], False), (FOCUS_GAINED[2:] + "b", True)):
            os.write(writing, sent.encode())
            keys = [key.data for key in keyboard.read_keys() if key.key != "<ignore>"]
            assert (keyboard.focused, "".join(keys)) == (focused, sent.strip("\x1b[IO"))
        written: list[str] = []
        monkeypatch.setattr("amanu.cli.ui.keyboard.write_now", written.append)
        keyboard.lent = True
        monkeypatch.setattr(PromptKeyboard, "reports_focus", True)
        keyboard.lent = True
        keyboard.lent = False
        assert written == ["\x1b[?1004l", "\x1b[?1004h"]
        os.close(writing)
