"""Where an edit goes: exactly there, or nowhere."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.tools.base import ToolError
from amanu.tools.match import replace_text

PY = "def f():\n    if x:\n        return 1\n    return 2\n\n\ndef g():\n    return 2\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "everywhere", "expected"),
    [
        # exact
        ("a\nb\nc\n", "b", "B", False, "a\nB\nc\n"),
        ("a\nb\nc\n", "b\n", "", False, "a\nc\n"),
        ("a $1 b", "$1", "\\1 $0", False, "a \\1 $0 b"),
        ("x x", "x", "y", True, "y y"),
        # final newline, added and removed
        ("a\nb", "b", "b\n", False, "a\nb\n"),
        ("a\nb\n", "b\n", "b", False, "a\nb"),
        # line ends
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb", False, "a\r\nX\r\nb\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "A\nb\nC\n", False, "A\r\nb\nC\r\n"),
        # blanks at line ends, either side
        ("a  \nb\t\nc\n", "a\nb\n", "A\nB\n", False, "A\nB\nc\n"),
        ("a\nb\nc\n", "a \nb  \n", "A\nB\n", False, "A\nB\nc\n"),
        ("keep  \nb \n", "keep\nb\n", "keep\nB\n", False, "keep  \nB\n"),
        # indentation, to the right and to the left
        (PY, "if x:\n    return 1\n", "if y:\n    z()\n    return 1\n", False,
         PY.replace("    if x:\n", "    if y:\n        z()\n")),
        (PY, "        def g():\n            return 2\n", "        def g():\n            return 3\n", False,
         PY.replace("def g():\n    return 2", "def g():\n    return 3")),
        ("\t\tif a:\n\t\t\tb\n", "if a:\n\tb", "if a:\n\n\tc", False, "\t\tif a:\n\n\t\t\tc\n"),
        # refusals
        ("x x", "x", "y", False, "2 times (at lines 1, 1)"),
        ("aaa", "aa", "b", False, "2 times"),
        (PY, "return 2", "return 3", False, "2 times (at lines 4, 8)"),
        ("  a\n    a\n", "a \n", "b\n", False, "2 times (at lines 1, 2)"),
        (PY, "if z:\n    return 1\n", "x", False, "The nearest text is"),
        (PY, "if x:\n  return 1\n", "x", False, "     2      if x:"),
        ("", "a", "b", False, "is not in f"),
        ("foobar\n", "foo bar", "x", False, "is not in f"),
        ("a\n", " \n", "b", False, "is not in f"),
        ("new_name_here = 1\n", "old_name = 1", "new_name_here = 1", False, "has new_text already"),
    ],
)  # fmt: skip
def test_replace(text: str, old: str, new: str, everywhere: bool, expected: str) -> None:
    try:
        found = replace_text(text, old, new, replace_all=everywhere, path="f").text
    except ToolError as error:
        assert expected in str(error)
        assert "Nothing was changed" in str(error)
    else:
        assert found == expected


_piece = st.text(alphabet="ab \t\n\ré", max_size=12)


@given(_piece, _piece.filter(bool), _piece, _piece)
def test_what_is_outside_the_place_stays(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    try:
        edited = replace_text(text, old, new, replace_all=False, path="f")
    except ToolError:
        assert text.find(old) != text.rfind(old) or "\r\n" in text
        return
    if edited.how == "" and text.count(old) == 1:
        assert edited.text == before + new + after or "\r\n" in text


@given(st.lists(st.sampled_from(["a", "  b", "\tc", "", "d "]), min_size=1, max_size=8), st.integers(0, 7), _piece)
def test_never_a_silent_wrong_place(lines: list[str], at: int, new: str) -> None:
    """Whatever is forgiven, only lines that say what was asked for are replaced."""
    text = "".join(line + "\n" for line in lines)
    asked = lines[at % len(lines)].strip() + " \n"
    if not asked.strip():
        return
    try:
        edited = replace_text(text, asked, new, replace_all=False, path="f")
    except ToolError:
        return
    same = [line for line in lines if line.strip() == asked.strip()]
    assert len(same) == 1 and edited.count == 1
    place = lines.index(same[0])
    assert edited.text.startswith("".join(line + "\n" for line in lines[:place]))
    assert edited.text.endswith("".join(line + "\n" for line in lines[place + 1 :]))


def test_millions_of_places_take_no_time() -> None:
    """The thread that looks lets nobody else work meanwhile."""
    before = time.process_time()
    with pytest.raises(ToolError, match="2000000 times"):
        replace_text("b" * 10_000_000, "bbbbb", "x", replace_all=False, path="a")
    assert time.process_time() - before < 1
