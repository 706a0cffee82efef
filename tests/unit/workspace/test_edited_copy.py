"""An edited copy of a file's proposed text: which hunks got which text."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.proposals.decisions import revise_all
from amanu.proposals.edited_copy import edited_copy
from amanu.proposals.model import LiveFile
from amanu.proposals.places import OPEN_STATES
from amanu.workspace.text_file import FileText, sha256, split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import PROPOSED_STATES, HunkState
from support.sweeps import examples

BASE = "".join(f"line {n}\n" for n in range(1, 13))
PROPOSED = BASE.replace("line 3\n", "3\nthree\n").replace("line 7\n", "").replace("line 11\n", "11\n")
"""Three hunks: a line becomes two, a line goes, a line is another."""


def proposed(base: str, text: str, *states: HunkState) -> LiveFile:
    file = LiveFile(FileText(Path("/w/f.txt"), base, sha256(base.encode())), base)
    file.propose(text, "c1", itertools.count(1), "p")
    for hunk, state in zip(list(file.hunks), states, strict=False):
        file.update_hunk(hunk.hunk_id, state=state)
    return file


def check(file: LiveFile, copy: str, texts: Sequence[str | None], outside: bool = False) -> None:
    """`texts`: the own text of each hunk, None where it was not edited."""
    found = edited_copy(file, copy)
    assert ([found.texts.get(hunk.hunk_id) for hunk in file.hunks], found.outside) == (list(texts), outside)


@pytest.mark.parametrize(
    ("before", "after", "texts", "outside"),
    [
        ("", "", [None, None, None], False),
        ("three\n", "drei\n", ["3\ndrei\n", None, None], False),
        ("3\nthree\n", "", ["", None, None], False),
        ("3\n", "more\n3\n", ["more\n3\nthree\n", None, None], False),  # at the edge of a hunk: its own
        ("three\n", "three\nmore\n", ["3\nthree\nmore\n", None, None], False),
        ("line 6\n", "line 6\nseven\n", [None, "seven\n", None], False),  # at the place of lines that go
        ("11\n", "eleven\nand\n", [None, None, "eleven\nand\n"], False),
        ("line 5\n", "FIVE\n", [None, None, None], True),
        ("line 5\n", "", [None, None, None], True),
        ("line 1\n", "top\nline 1\n", [None, None, None], True),
        ("three\nline 4\n", "both\n", [None, None, None], True),  # of a change across the edge nothing is taken
    ],
)
def test_one_edit(before: str, after: str, texts: Sequence[str | None], outside: bool) -> None:
    file = proposed(BASE, PROPOSED)
    check(file, PROPOSED.replace(before, after, 1), texts, outside)


def test_several_edits_at_once() -> None:
    file = proposed(BASE, PROPOSED)
    copy = PROPOSED.replace("three\n", "x\ny\nz\n").replace("line 6\n", "line 6\n7\n").replace("11\n", "")
    check(file, copy, ["3\nx\ny\nz\n", "7\n", ""])
    check(file, copy.replace("line 9", "nine"), ["3\nx\ny\nz\n", "7\n", ""], outside=True)


@pytest.mark.parametrize("state", ["applied", "accepted", "rejected", "reverted", "undoing"])
def test_what_is_decided_is_outside(state: HunkState) -> None:
    file = proposed(BASE, PROPOSED, state)
    text = file.text_with(*PROPOSED_STATES)
    check(file, text, [None, None, None])
    check(file, text.replace("3\n", "3!\n", 1), [None, None, None], outside=True)
    check(file, text.replace("11\n", "eleven\n"), [None, None, "eleven\n"])


def test_what_is_in_conflict_is_edited() -> None:
    check(proposed(BASE, PROPOSED, "conflicted"), PROPOSED.replace("three\n", "drei\n"), ["3\ndrei\n", None, None])


@pytest.mark.parametrize(
    ("base", "text", "copy", "texts"),
    [
        ("a\r\nb\r\n", "a\r\nB\r\n", "a\nB\n", [None]),
        ("a\r\nb\r\n", "a\r\nB\r\n", "a\nB\nc\n", ["B\r\nc\r\n"]),
        ("a\r\nb\r\n", "a\r\nB\r\n", "a\r\nb!\r\n", ["b!\r\n"]),
        ("a\nb\n", "a\nB\n", "a\r\nB\r\n", [None]),
        ("a\nb\n", "a\nB\n", "a\r\nb!\r\n", ["b!\n"]),
        ("a\r\nb\nc\n", "a\r\nB\r\nX\nc\n", "a\nB\nY\nc\n", ["B\r\nY\n"]),  # where they differ each stays
        ("a\nb", "a\nB", "a\nB\n", [None]),
        ("a\nb", "a\nB", "a\nB\nc", ["B\nc"]),
        ("a\nb\n", "a\nB\n", "a\nb!", ["b!"]),
    ],
)
def test_line_ends(base: str, text: str, copy: str, texts: Sequence[str | None]) -> None:
    check(proposed(base, text), copy, texts)


def test_a_deletion_has_no_text() -> None:
    file = LiveFile(FileText(Path("/w/f.txt"), BASE, sha256(BASE.encode())), BASE)
    file.propose(None, "c1", itertools.count(1), "p")
    check(file, "", [None])
    with pytest.raises(AmanuError, match="deletes the file"):
        revise_all(file, edited_copy(file, "text\n").texts)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n"]), max_size=14)
STATES: Sequence[HunkState] = ("pending", "conflicted", "applied", "rejected")


@settings(max_examples=examples(3000, 400), deadline=None)
@given(LINES, LINES, LINES, st.lists(st.sampled_from(STATES), min_size=14, max_size=14))
def test_what_is_taken_makes_the_copy(old: list[str], new: list[str], copy: list[str], states: list[HunkState]) -> None:
    """Unless something outside was edited, the file as proposed then is the copy, to the byte."""
    file = proposed("".join(old), "".join(new), *states)
    found = edited_copy(file, "".join(copy))
    revise_all(file, found.texts)
    assert found.outside or file.text_with(*PROPOSED_STATES) == "".join(copy)
    if not found.outside:
        assert not edited_copy(file, "".join(copy)).texts


@settings(max_examples=examples(1500, 200), deadline=None)
@given(st.data())
def test_edits_in_open_hunks_are_never_outside(data: st.DataObject) -> None:
    """All lines differ, so where an edit is, is never in doubt."""
    numbers = itertools.count(1)

    def changed(lines: Sequence[str]) -> list[str]:
        made = list(lines)
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(made)))
            put = [f"{next(numbers)}\n" for _ in range(data.draw(st.integers(0, 2)))]
            made[at : at + data.draw(st.integers(0, 2))] = put
        return made

    states: list[HunkState] = data.draw(st.lists(st.sampled_from(STATES), min_size=8, max_size=8))
    file = proposed(BASE, "".join(changed(split_lines(BASE))), *states)
    lines = list(split_lines(file.text_with(*PROPOSED_STATES)))
    for hunk in reversed(file.placed_hunks):
        if hunk.state in OPEN_STATES:
            place = slice(hunk.proposed_lines.start, hunk.proposed_lines.end)
            lines[place] = changed(lines[place])
    found = edited_copy(file, "".join(lines))
    assert not found.outside
    revise_all(file, found.texts)
    assert file.text_with(*PROPOSED_STATES) == "".join(lines)
