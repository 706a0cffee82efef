"""Loops are seen, honest repetition is not taken for one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.agent.checks import SAME_STEPS, Repetition, repeats_steps
from amanu.conversation import Assistant, Call, Conversation, Result, Results, User


def steps(*pairs: tuple[dict[str, Any], str]) -> Conversation:
    """(arguments, result) of one call a step."""
    conversation = Conversation([User(text="go")])
    for at, (arguments, result) in enumerate(pairs):
        conversation.append(Assistant(parts=(Call(call_id=f"c{at}", tool="t", arguments=arguments),)))
        conversation.append(Results(results=(Result(call_id=f"c{at}", tool="t", text=result),)))
    return conversation


@pytest.mark.parametrize(
    ("conversation", "expected"),
    [
        (steps(*[({"a": 1, "b": 2}, "same")] * SAME_STEPS), True),
        (steps(*[({"a": 1}, "same")] * (SAME_STEPS - 1)), False),
        (steps(*[({"a": 1}, f"line {n}") for n in range(9)]), False),  # polling a build
        (steps(*[({"a": n}, "same") for n in range(9)]), False),
        (steps(({"a": 0}, "x"), *[({"a": 1}, "same")] * SAME_STEPS), True),
        (steps(*[({"a": 1, "b": 2} if n % 2 else {"b": 2, "a": 1}, "same") for n in range(SAME_STEPS)]), True),
        (Conversation([User(text="hi")]), False),
        (Conversation(), False),
    ],
)
def test_steps(conversation: Conversation, expected: bool) -> None:
    assert repeats_steps(conversation) == expected


TEXTS = [
    ("I will now read the file again. " * 60, True),
    ("First I look at it. Then I look away from it. " * 20, True),
    ("A thought that goes on.\n" * 12, True),
    ("I will now read the file again. " * 9, False),
    ("Done. " * 60, False),
    ("```\n" + "    self.assertEqual(1, 1)\n" * 60 + "```\nThat is the test.", False),
    ("\n".join(f"- step number {n} of the plan" for n in range(80)), False),
    ("| --- | --- |\n" * 5 + "\n".join(f"| row {n} | value |" for n in range(80)), False),
]


@given(st.sampled_from(TEXTS), st.integers(min_value=1, max_value=70))
def test_text_in_pieces_of_any_size(case: tuple[str, bool], size: int) -> None:
    text, expected = case
    watch = Repetition()
    assert any([watch.feed(text[at : at + size]) for at in range(0, len(text), size)]) == expected
