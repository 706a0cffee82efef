"""Answers on standard output while they are written."""

import io

import pytest

from amanu.cli.answer_stream import AnswerStream
from amanu.cli.console import Console, PlainConsole, RichConsole
from amanu_protocol.events import (
    Event,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    StepEnded,
    TurnEnded,
)
from amanu_protocol.items import Answer, Thought


def replaced(item_id: str, text: str) -> Event:
    return ItemsReplaced(replaces_from=1, items=[Answer(turn_id="t", item_id=item_id, text=text)], withdrawn=[])


END = TurnEnded(turn_id="t", reason="completed", message="", can_continue=False)


def begun(item_id: str, text: str = "") -> Event:
    return ItemStarted(item=Answer(turn_id="t", item_id=item_id, text=text))


def more(item_id: str, text: str) -> Event:
    return ItemDelta(item_id=item_id, text=text)


def whole(item_id: str, text: str) -> Event:
    return ItemCompleted(item=Answer(turn_id="t", item_id=item_id, text=text))


def gone(*item_ids: str) -> Event:
    return ItemsWithdrawn(item_ids=[*item_ids], reason="cut off")


@pytest.mark.parametrize(
    ("events", "written"),
    [
        ([begun("a")], ""),
        ([begun("a"), more("a", "\n\n So")], " So"),
        ([begun("a"), more("a", "So"), more("a", " it\n\n"), more("a", "is.\n")], "So it\n\nis."),
        ([begun("a", "So"), more("a", " it"), whole("a", "So it is.\n")], "So it is.\n\n"),
        ([whole("a", "One."), whole("b", " \n"), whole("c", "Two.")], "One.\n\nTwo.\n\n"),
        ([begun("a", "Red\x1b["), more("a", "31m\x07.")], "Red␇."),
        ([begun("a", "Cut"), END], "Cut\n\n"),
        ([ItemStarted(item=Thought(turn_id="t", item_id="t", subject="", text="Hm.")), more("t", "Hm.")], ""),
        ([ItemCompleted(item=Answer(turn_id="t", item_id="a", text="For the model.", agent_id="agent-1"))], ""),
        # An attempt that is discarded: the same again, more of it, less, something else
        ([begun("a", "One t"), gone("a"), begun("b", "One"), more("b", " two."), END], "One two.\n\n"),
        ([begun("a", "One."), gone("a"), whole("b", "One.")], "One.\n\n"),
        ([begun("a", "One."), gone("a"), begun("b", "On"), gone("b"), whole("c", "One.")], "One.\n\n"),
        ([begun("a", "One."), gone("a"), whole("b", "On")], "One.\n\nOn\n\n"),
        ([begun("a", "One."), gone("a"), begun("b", "O"), more("b", "ther")], "One.\n\nOther"),
        ([begun("a", "One."), gone("a"), END], "One.\n\n"),
        ([whole("a", "One."), gone("a"), whole("b", "One."), whole("c", "Two.")], "One.\n\nTwo.\n\n"),
        ([whole("a", "One."), gone("a"), whole("b", "One. Two.")], "One.\n\nOne. Two.\n\n"),
        ([whole("a", "1"), begun("b", "2"), gone("a", "b"), whole("c", "1"), whole("d", "23")], "1\n\n23\n\n"),
        ([whole("a", "1"), StepEnded(turn_id="t", step=1), gone("a"), whole("b", "1")], "1\n\n1\n\n"),
        # A slow reader, in a pipe of our own
        ([begun("a", "One"), replaced("a", "One two")], "One two"),
    ],
)  # fmt: skip
def test_a_pipe_gets_each_character_at_once(events: list[Event], written: str) -> None:
    out = io.StringIO()
    check(out, PlainConsole(out), events, written)


@pytest.mark.parametrize(
    ("events", "written"),
    [
        ([begun("a", "One\ntwo")], ""),
        ([begun("a", "One\ntwo\n"), more("a", "\nThree")], "One two\n\n"),
        ([begun("a", "One\n\nTwo"), whole("a", "One\n\nTwo, three.")], "One\n\nTwo, three.\n\n"),
        ([begun("a", "One\n\nT"), gone("a"), whole("b", "One\n\nTwo.")], "One\n\nTwo.\n\n"),
        ([begun("a", "One\n\nT"), gone("a"), whole("b", "Two.")], "One\n\nTwo.\n\n"),
    ],
)
def test_a_terminal_gets_each_block_when_it_is_whole(events: list[Event], written: str) -> None:
    out = io.StringIO()
    check(out, RichConsole(out, colour=False, width=40), events, written)


def check(out: io.StringIO, console: Console, events: list[Event], written: str) -> None:
    stream = AnswerStream(out, console, before=lambda: None)
    for event in events:
        stream.show(event)
    assert "\n".join(line.rstrip() for line in out.getvalue().split("\n")) == written
