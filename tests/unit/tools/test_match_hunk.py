"""Hunks of a patch: whole lines, behind the hunk before, under their heading."""

import pytest

from amanu.core.tool import ToolError
from amanu.tools.edits.match import replace_hunk

TEXT = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
RETURN = "        return 1\n"


@pytest.mark.parametrize(
    ("old", "new", "after", "heading", "at_end", "expected"),
    [
        ("class A:\n", "class C:\n", 0, "", False, TEXT.replace("A", "C")),
        (RETURN, "        return 2\n", 0, "class B:", False, TEXT[:-2] + "2\n"),
        (RETURN, "        return 2\n", 0, "class A:", False, TEXT.replace("1", "2", 1)),
        (RETURN, "        return 2\n", 3, "", False, TEXT[:-2] + "2\n"),
        (RETURN, "        return 2\n", 0, "", True, TEXT[:-2] + "2\n"),
        ("", "    pass\n", 0, "class B:", False, TEXT.replace("B:\n", "B:\n    pass\n")),
        ("", "end\n", 0, "", False, TEXT + "end\n"),
        ("class B: \n    def f(self):\n", "class B: \n    def g(self):\n", 0, "", False,
         TEXT.replace("class B:\n    def f", "class B:\n    def g")),
        (RETURN, "x\n", 0, "", False, "2 times (at lines 3, 7)"),
        (RETURN, "x\n", 0, "def f(self):", False, "2 times (at lines 2, 6)"),
        (RETURN, "x\n", 0, "class Z:", False, "is not in f"),
        ("class A:\n", "x\n", 1, "", False, "is not in f"),
        ("f(self):\n", "x\n", 4, "", False, "is not in f"),  # whole lines only
    ],
)  # fmt: skip
def test_hunk(old: str, new: str, after: int, heading: str, at_end: bool, expected: str) -> None:
    try:
        found = replace_hunk(TEXT, old, new, first_line=after, heading=heading, at_end=at_end, path="f").text
    except ToolError as error:
        assert expected in str(error)
    else:
        assert found == expected


def test_the_next_hunk_begins_where_the_last_ended() -> None:
    first = replace_hunk(TEXT, RETURN, "        x()\n        return 1\n", heading="class A:", path="f")
    assert first.end == 4
    second = replace_hunk(first.text, RETURN, "        return 2\n", first_line=first.end, path="f")
    assert second.text == TEXT.replace("        return 1", "        x()\n        return 1", 1)[:-2] + "2\n"
    assert second.end == 8


def test_a_file_without_final_newline() -> None:
    assert replace_hunk("a\nb", "b\n", "b\nc\n", path="f").text == "a\nb\nc"
    assert replace_hunk("a\nb", "", "c\n", path="f").text == "a\nb\nc\n"
    assert replace_hunk("", "", "c\n", path="f").text == "c\n"
