"""A question on the screen: which key answers what."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from amanu.cli.ui.dialog import Choice, Dialog, OpenDialog, RowKey
from amanu_protocol.items import Line

ROWS = [Choice("a", "Accept all"), Choice("h", "Hunk by hunk"), Choice("n", "Reject", "the model reads why", "no")]
UP, DOWN = -1, 1


def pressed(asked: Dialog, keys: Sequence[str | int]) -> str | None:
    """The answer, after all keys: a string is typed, the number of a row answers after a moment, "\\r" is Enter."""
    dialog, typed = OpenDialog(asked), ""
    for key in keys:
        if isinstance(key, int):
            dialog.move(key, typed)
        elif key == "\r":
            return dialog.answer(typed)
        else:
            typed += key
            dialog.begin_again()
    return dialog.numbered(typed)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["\r"], "a"),
        ([DOWN, "\r"], "h"),
        ([UP, "\r"], "n"),
        ([DOWN] * 4 + ["\r"], "h"),
        (["2"], "h"),
        (["2", "\r"], "h"),
        (["2", " requests are fine, so no", "\r"], "2 requests are fine, so no"),
        (["9", "\r"], "9"),
        (["0", "\r"], "0"),
        (["use ", "2", " spaces", "\r"], "use 2 spaces"),
        ([" ", "\r"], "a"),
        ([DOWN, "no", "\r"], "no"),
    ],
)
def test_digits_arrows_and_enter_choose_and_letters_begin_words(keys: Sequence[str | int], answer: str) -> None:
    assert pressed(Dialog("› ", ROWS, valid=lambda: True), keys) == answer


@pytest.mark.parametrize(("typed", "answer"), [("hi", "high"), ("HI", "high"), ("default", "medium"), ("m", "medium")])
def test_the_row_that_begins_with_what_is_typed_comes_first(typed: str, answer: str) -> None:
    efforts = [Choice("medium", "medium", "this model's default"), Choice("low", "low"), Choice("high", "high")]
    assert pressed(Dialog("effort › ", efforts, is_picker=True, valid=lambda: True), [typed, "\r"]) == answer


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["\r"], "a"),
        (["hunk", "\r"], "h"),
        (["MODEL why", "\r"], "n"),
        (["all", DOWN, "\r"], "a"),
        (["l", "l", DOWN, "\r"], "a"),
        (["no", "\r"], "n"),
        (["nothing like it", "\r"], None),
        (["2", "\r"], None),
    ],
)
def test_a_picker_is_narrowed_by_what_is_typed(keys: Sequence[str | int], answer: str | None) -> None:
    assert pressed(Dialog("› ", ROWS, is_picker=True, valid=lambda: True), keys) == answer


def test_a_key_of_its_own_answers_with_the_row_and_what_is_hidden_is_found_by_words() -> None:
    rows = [*ROWS[:1], Choice("x", "Hidden", hidden=True)]
    keys = [RowKey("c-x", "Ctrl-X", "archive")]
    dialog = OpenDialog(Dialog("› ", rows, is_picker=True, row_keys=keys, valid=lambda: True))
    answers = [dialog.keyed("c-x", typed) for typed in ("", "hid", "nothing like it")]
    assert answers == ["archive a", "archive x", None]
    assert [each.value for each in dialog.rows("")] == ["a"]
    assert "Ctrl-X archives" in dialog.footer()


def test_without_rows_what_is_typed_is_the_answer() -> None:
    dialog = OpenDialog(Dialog("name › ", valid=lambda: True))
    assert [dialog.answer(typed) for typed in ("", "1", "two words")] == ["", "1", "two words"]


@pytest.mark.parametrize(
    ("screen", "choices", "heights"),
    [
        ((160, 45), 40, (10, 12)),
        ((90, 26), 40, (10, 10)),
        ((90, 26), 3, (10, 12)),
        ((90, 19), 40, (10, 3)),
        ((90, 18), 40, (10, 0)),
        ((60, 10), 40, (7, 0)),
        ((60, 10), 1, (7, 3)),
        ((59, 45), 40, (10, 0)),
        ((20, 2), 40, (1, 0)),
    ],
)
def test_a_preview_has_the_room_that_the_rows_leave(
    screen: tuple[int, int], choices: int, heights: tuple[int, int]
) -> None:
    async def preview(value: str) -> Sequence[Line]:
        return []

    asked = Dialog("› ", ROWS[:1] * choices, is_picker=True, preview=preview, valid=lambda: True)
    dialog = OpenDialog(asked)
    assert (dialog.list_height(screen[1]), dialog.preview_height(*screen)) == heights
    assert OpenDialog(replace(asked, preview=None)).preview_height(*screen) == 0


@pytest.mark.parametrize(
    ("typed", "text", "selected"),
    [("", "", 0), ("n", "", 2), ("a", "", 0), ("half a sen", "half a sen", 0), ("h h", "h h", 0)],
)
def test_who_comes_back_finds_the_words_or_the_row(typed: str, text: str, selected: int) -> None:
    dialog = OpenDialog(Dialog("› ", ROWS, valid=lambda: True, typed=typed))
    assert (dialog.text, dialog.index(dialog.rows(dialog.text))) == (text, selected)
    assert dialog.left_with(dialog.text) == ("" if typed == "a" else typed)
