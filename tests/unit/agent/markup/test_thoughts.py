"""Thoughts in the text of a reply, told from its answer."""

import pytest

from amanu.agent.loop import run_turn
from amanu.agent.markup.templates import THOUGHTS, ThoughtMarks
from amanu.core.model import ReplyCompleted, TextDelta
from support.loop_harness import LoopHarness, says
from support.markup import read

SIZES = (1, 2, 5, 1_000_000)
FINE = "Fine, it is done."
LATE = "I think about it.\nIt is easy.\n"

CASES: list[tuple[str, str, str]] = [
    # (reply, thought, answer)
    ("<think>Hm.</think>Fine.", "Hm.", "Fine."),
    ("\n<think>\nHm.\n\nYes.\n</think>\n\nFine.\n", "Hm.\n\nYes.", "Fine.\n"),
    ("<think>a</think>\n<think>b</think>\nFine.", "ab", "Fine."),
    ("<think></think>\n\nFine.", "", "Fine."),
    ("<think>\n\n</think>\n\nFine.", "", "Fine."),
    ("<think>Is `</think` a tag?</think>Fine.", "Is `</think` a tag?", "Fine."),
    ("<think>Hm, it goes on", "Hm, it goes on", ""),
    ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Fine.", "Hm.", "Fine."),
    ("<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>Fine.<|return|>", "Hm.", "Fine."),
    ("<|start|>assistant<|channel|>final<|message|>Fine.<|end|>", "", "Fine."),
    ("<|channel|>final<|message|>Fine.", "", "Fine."),
    ("<think>Hm.</think><response>\nFine.\n</response>", "Hm.", "Fine."),
    ("<think>Hm.</think>\n<answer>Fine.</answer>\n", "Hm.", "Fine."),
    ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Fine.<|END_RESPONSE|>", "Hm.", "Fine."),
    # only the closing mark
    ("Hm.\nIt is so.\n</think>\n\nFine.", "Hm.\nIt is so.\n", "Fine."),
    ("Hm. It is so.</think>Fine.", "Hm. It is so.", "Fine."),
    ("嗯，是这样。</think>\n\n好的。", "嗯，是这样。", "好的。"),
    ("Hm.\n</thinking>\nFine.", "Hm.\n", "Fine."),
    ("Hm.</seed:think>Fine.", "Hm.", "Fine."),
    ("Hm.[/THINK]Fine.", "Hm.", "Fine."),
    ("Hm. See `<x>`.\n```\ncode\n```\nSo.\n</think>\nFine.", "Hm. See `<x>`.\n```\ncode\n```\nSo.\n", "Fine."),
    ("</think>\n\nFine.", "", "Fine."),
    # no thoughts
    ("Fine <think>x</think> so.", "", "Fine <think>x</think> so."),
    ("The tag </think> ends thoughts.", "", "The tag </think> ends thoughts."),
    ("It ends with </think>.", "", "It ends with </think>."),
    ("It ends with `</think>`\nFine.", "", "It ends with `</think>`\nFine."),
    ("Between <think> and\n</think>\nstand thoughts.", "", "Between <think> and\n</think>\nstand thoughts."),
    ("```xml\nx\n</think>\n```\nFine.", "", "```xml\nx\n</think>\n```\nFine."),
    ("“</think>” is a tag.", "", "“</think>” is a tag."),
    ("`<think>` is a tag.", "", "`<think>` is a tag."),
    ("<thinker>x</thinker>", "", "<thinker>x</thinker>"),
    ("<t", "", "<t"),
    ("  \n  ", "", "  \n  "),
    ("<response>", "", ""),
    ("< think > no", "", "< think > no"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "thought", "answer"), CASES, ids=[repr(text[:40]) for text, _, _ in CASES])
async def test_thoughts_are_told_from_the_answer(text: str, thought: str, answer: str) -> None:
    for size in SIZES:
        seen = await read(text, size=size)
        assert (seen.thought, seen.answer) == (thought, answer)
        assert seen.end.message.text.strip() == answer.strip()
        assert [part.kind for part in seen.end.message.parts if part.kind == "thinking"] == ["thinking"] * bool(thought)


@pytest.mark.parametrize("marks", THOUGHTS, ids=[each.opens for each in THOUGHTS])
async def test_no_mark_is_drawn(marks: ThoughtMarks) -> None:
    for close in marks.closes:
        text = f"{marks.opens}\nHm. <So> it [is].\n{close}\nFine."
        for size in SIZES:
            seen = await read(text, size=size)
            assert all("Fine.".startswith(step) for step in seen.steps)
            assert seen.answer == "Fine." and seen.thought == "Hm. <So> it [is]."


async def test_text_that_turns_out_to_be_a_thought_is_shown_as_one() -> None:
    first = [TextDelta(LATE), TextDelta("</think>\n\n"), TextDelta(FINE)]
    done = says(f"{LATE}</think>\n\n{FINE}")[-1]
    assert isinstance(done, ReplyCompleted)
    harness = LoopHarness([[*first, done]])
    assert (await run_turn(harness.turn)).reason == "completed"
    assert (harness.shown("thought"), harness.shown("answer")) == ([LATE.strip()], [FINE])
    last = harness.conversation.last
    assert last is not None and last.role == "assistant" and last.text == FINE


async def test_thoughts_alone_are_no_answer() -> None:
    harness = LoopHarness([says("<think>Hm."), says(FINE)])
    assert (await run_turn(harness.turn)).reason == "completed"
    assert harness.shown("answer") == [FINE] and len(harness.model.requests) == 2
