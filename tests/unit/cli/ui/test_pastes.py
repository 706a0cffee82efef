"""Long pastes stand in the composer as one word, and are sent whole."""

import pytest

from amanu.cli.ui.pastes import MOST_CHARACTERS, MOST_LINES, Pastes

LONG = "line\n" * 500


@pytest.mark.parametrize(
    ("pasted", "shown"),
    [
        ("", ""),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("x\n" * MOST_LINES, "x\n" * MOST_LINES),
        (LONG, "[Pasted #1: 500 lines]"),
        (f"{LONG}more", "[Pasted #1: 501 lines]"),
        ("y" * (MOST_CHARACTERS + 1), "[Pasted #1: 2,001 characters]"),
    ],
)
def test_what_stands_in_the_composer(pasted: str, shown: str) -> None:
    pastes = Pastes()
    assert pastes.folded(pasted) == shown
    assert pastes.unfolded(shown) == pasted.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("See [Pasted #1: 500 lines], then [Pasted #2: 501 lines].", f"See {LONG}, then {LONG}x."),
        ("[Pasted #2: 501 lines][Pasted #2: 501 lines]", f"{LONG}x{LONG}x"),
        (
            "[Pasted #3: 9 lines] is no paste, nor is [Pasted #1]",
            "[Pasted #3: 9 lines] is no paste, nor is [Pasted #1]",
        ),
    ],
)
def test_a_prompt_is_sent_with_what_was_pasted(written: str, sent: str) -> None:
    pastes = Pastes()
    assert [pastes.folded(LONG), pastes.folded(f"{LONG}x")] == ["[Pasted #1: 500 lines]", "[Pasted #2: 501 lines]"]
    assert pastes.unfolded(written) == sent
    pastes.forget()
    assert pastes.unfolded(written) == written
