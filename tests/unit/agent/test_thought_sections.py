"""Where one thought ends and the next begins."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.agent.reply import ReplyItems
from amanu.agent.thought_sections import MAX_HEADING, ThoughtSections
from amanu.core.conversation import Assistant, Text
from amanu.core.model import CallStarted, TextDelta, ThoughtDelta
from amanu_protocol.items import Thought
from support.loop_harness import Emitted
from support.sweeps import examples


def sections(*pieces: str) -> list[str]:
    cut = ThoughtSections()
    found = [""]
    for piece in pieces:
        for begins, text in cut.feed(piece):
            found += [text] if begins else []
            found[-1] += "" if begins else text
    for begins, text in cut.end():
        found += [text] if begins else []
        found[-1] += "" if begins else text
    return found


LONG = f"**{'x' * MAX_HEADING}**"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # as Gemini sends them: one chunk each
        (["**A**\n\nbody\n\n\n", "**B**\n\nmore\n\n\n"], ["**A**\n\nbody\n\n\n", "**B**\n\nmore\n\n\n"]),
        (["**A**\n\n**B**\n\nx"], ["**A**\n\n", "**B**\n\nx"]),
        (["plain\n\n**B**\nx"], ["plain\n\n", "**B**\nx"]),
        (["\n\n**A**\n\nx"], ["\n\n**A**\n\nx"]),
        (["x\n \t\n  **B**  \ny"], ["x\n \t\n", "  **B**  \ny"]),
        (["x\n\n**B**"], ["x\n\n", "**B**"]),
        # no headings
        (["x\n**B**\ny"], ["x\n**B**\ny"]),
        (["x\n\n**B** is bold\ny"], ["x\n\n**B** is bold\ny"]),
        (["x\n\n**B**: **C**\ny"], ["x\n\n**B**: **C**\ny"]),
        (["x\n\n* item\n\n*it*\n\n** open\ny"], ["x\n\n* item\n\n*it*\n\n** open\ny"]),
        (["x\n\n****\ny"], ["x\n\n****\ny"]),
        ([f"x\n\n{LONG}\ny"], [f"x\n\n{LONG}\ny"]),
        (["", "x"], ["x"]),
    ],
)
def test_sections(pieces: list[str], expected: list[str]) -> None:
    assert sections(*pieces) == expected


THOUGHTS = st.lists(
    st.sampled_from(["**A**", "**", "*", "\n", "\n\n", " ", "word", "**B** c", "**C**\n\n", LONG]), max_size=12
).map("".join)


@given(THOUGHTS, st.data())
@settings(max_examples=examples(300, 80), deadline=None)
def test_the_size_of_the_pieces_changes_nothing(thought: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(thought)), max_size=8)))
    pieces = [thought[start:end] for start, end in zip([0, *cuts], [*cuts, len(thought)], strict=True)]
    assert sections(*pieces) == sections(thought) == sections(*thought)
    assert "".join(sections(*pieces)) == thought


def test_what_is_no_heading_is_not_held_back() -> None:
    cut = ThoughtSections()
    assert list(cut.feed("Let")) == [(False, "Let")]
    assert list(cut.feed(" me\n\nSo")) == [(False, " me\n"), (False, "\n"), (False, "So")]
    assert list(cut.feed("\n\n**Ti")) == [(False, "\n"), (False, "\n")]
    assert list(cut.feed("tle** and")) == []  # it may still be one until the line ends
    assert list(cut.feed(" more\n")) == [(False, "**Title** and more\n")]


def test_each_section_is_an_item_with_its_subject() -> None:
    emitted = Emitted()
    reply = ReplyItems("t", 1, {}, emitted)
    for delta in (
        ThoughtDelta("**First**\n\none\n\n\n*"),
        ThoughtDelta("*Second*"),
        ThoughtDelta("*\n\ntwo\n\n**Th"),
        TextDelta("\n"),  # nobody's item, and no end of the thought
        ThoughtDelta("ird**"),
        TextDelta("So: "),
        ThoughtDelta("**Fourth**"),
        CallStarted("c", "read"),
    ):
        reply.add_delta(delta)
    assert reply.cut("Cancelled.") == Assistant(parts=(Text(text="\nSo: "),), cut=True)
    shown = [(item.subject, item.text) if isinstance(item, Thought) else item.kind for item in emitted.state.items]
    assert shown == [
        ("First", "**First**\n\none\n\n\n"),
        ("Second", "**Second**\n\ntwo\n\n"),
        ("Third", "**Third**"),
        "answer",
        ("Fourth", "**Fourth**"),
    ]
