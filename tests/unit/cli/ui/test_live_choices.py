from collections.abc import Sequence

import pytest

from amanu.cli.ui.dialog import Choice, Dialog, OpenDialog
from amanu.cli.ui.live_choices import LiveChoices


def rows(text: str) -> Sequence[Choice]:
    """ "a1 b2": two rows, with what is said of each."""
    return [Choice(word[0], word) for word in text.split()]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a1 b1", "a1 b2", "a1 b2"),
        ("a1 b1", "b2 a2", "b2 a2"),
        ("a1 b1", "c1 a1 b1", "c1 a1 b1"),
        ("a1 b1", "b2", "b2 a1"),
        ("", "a1", "a1"),
    ],
)
@pytest.mark.parametrize("how", ["a second later", "at once, if told"])
def test_rows_change_and_what_is_no_more_stands_below(before: str, after: str, shown: str, how: str) -> None:
    now, text = 7.0, before
    choices = LiveChoices(lambda: rows(text), lambda: now)
    assert [each.label for each in choices] == before.split()
    text = after
    assert len(choices) == len(before.split()), "asked once a second"
    if how == "a second later":
        now = 8.0
    else:
        choices.renew()
    assert " ".join(each.label for each in choices) == shown
    assert [each.label for each in choices[:1]] == shown.split()[:1]


def test_what_is_marked_stays_so_wherever_it_moves() -> None:
    now = "a1 b1"
    choices = LiveChoices(lambda: rows(now))
    dialog = OpenDialog(Dialog("› ", choices, is_picker=True, valid=lambda: True))
    assert dialog.index(dialog.rows("")) == 0, "it is drawn"
    for then, moves, at, answer in (
        ("b2 a2", 0, 1, "a"),
        ("b2 c2 a2", -1, 1, "c"),
        ("c3", 0, 0, "c"),
        ("b4", 0, 1, "c"),
    ):
        now = then
        choices.renew()
        dialog.move(moves, "")
        assert (dialog.index(dialog.rows("")), dialog.answer("")) == (at, answer)
