"""Differences: all hunks give the new text, none the old, and what is between them is never touched."""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amanu.workspace import diff as hunks
from amanu.workspace.diff import LineChange, changes, compose, unified, unified_lines
from amanu.workspace.text_file import split_lines

_line = st.sampled_from(["a", "b", "c", "", "}", "  x", "é", "\u2028", "long line"])
_end = st.sampled_from(["\n", "\n", "\r\n", "\r"])


def _join(lines: list[tuple[str, str]], last: str) -> str:
    return "".join(line + end for line, end in lines) + last


_text = st.builds(_join, st.lists(st.tuples(_line, _end), max_size=30), _line)
_git_end = st.sampled_from(["\n", "\n", "\r\n"])  # to git a lone \r is no line end
_git_text = st.builds(_join, st.lists(st.tuples(_line, _git_end), min_size=1, max_size=30), _line)


@given(_text, _text, st.data())
def test_any_subset(old: str, new: str, data: st.DataObject) -> None:
    before, after = split_lines(old), split_lines(new)
    found = changes(before, after)
    assert all(left.old_end < right.old_start and left.new_end < right.new_start for left, right in pairwise(found))
    used: set[LineChange] = data.draw(st.sets(st.sampled_from(found))) if found else set()
    parts = [
        (each.old_start, each.old_end - each.old_start, "".join(after[each.new_start : each.new_end])) for each in found
    ]
    assert compose(before, parts) == new
    assert compose(before, []) == old
    expected: list[str] = []
    at = 0
    for each in found:
        expected += before[at : each.old_start]
        expected += after[each.new_start : each.new_end] if each in used else before[each.old_start : each.old_end]
        at = each.old_end
    some = [part for part, each in zip(parts, found, strict=True) if each in used]
    assert compose(before, some) == "".join([*expected, *before[at:]])


@given(_text, _text)
def test_big_texts_are_cut_at_unique_lines(old: str, new: str) -> None:
    before, after = split_lines(old), split_lines(new)
    found = hunks._between_anchors(before, after)  # pyright: ignore[reportPrivateUsage]
    parts = [
        (each.old_start, each.old_end - each.old_start, "".join(after[each.new_start : each.new_end])) for each in found
    ]
    assert compose(before, parts) == new


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", []),
        ("a\nb\nc\n", "a\nX\nc\n", [(1, 2, 1, 2)]),
        ("a\nb\nc\nd\n", "X\nb\nc\nY\n", [(0, 1, 0, 1), (3, 4, 3, 4)]),
        ("a\n}\n\nd\n", "X\n}\n\nY\n", [(0, 4, 0, 4)]),
        ("", "a\n", [(0, 0, 0, 1)]),
        ("a\n", "", [(0, 1, 0, 0)]),
        ("a", "a\n", [(0, 1, 0, 1)]),
    ],
)
def test_changes(old: str, new: str, expected: list[tuple[int, int, int, int]]) -> None:
    found = changes(split_lines(old), split_lines(new))
    assert [(each.old_start, each.old_end, each.new_start, each.new_end) for each in found] == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git to judge the diff")
@settings(max_examples=25, deadline=None)
@given(_git_text, _git_text)
def test_git_takes_the_unified_diff(tmp_path_factory: pytest.TempPathFactory, old: str, new: str) -> None:
    folder: Path = tmp_path_factory.mktemp("apply")
    (folder / "f").write_bytes(old.encode())
    diff = unified("f", old, new)
    if diff:
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        done = subprocess.run(command, cwd=folder, input=diff.encode(), capture_output=True, check=False)
        assert done.returncode == 0, (diff, done.stderr)
    assert (folder / "f").read_bytes() == new.encode()


@given(_text, _text)
@example("a\n", "")
def test_replaced_lines_give_the_diff_of_their_texts(old: str, new: str) -> None:
    old_lines, new_lines = split_lines(old), split_lines(new)
    replaced = [
        (each.old_start, each.old_end, "".join(new_lines[each.new_start : each.new_end]))
        for each in changes(old_lines, new_lines)
    ]
    assert unified_lines("f", old_lines, replaced) == unified("f", old, new)
