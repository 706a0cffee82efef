"""Edits as language servers send them, made to a text: whatever its line ends and characters, or refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from amanu.frontends.lsp.document_text import DocumentText, Position
from amanu.frontends.lsp.edit_request import wire_edits
from amanu.text.code_units import Encoding
from amanu.text.span_edits import SpanEdit
from amanu.workspace.range_edits import MisplacedEdit, placed_edits
from amanu_protocol.requests import TextEdit
from support.range_edits import apply_range_edits, text_edit

WIRE = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
Numbers = tuple[int, int, int, int, str]


def edit(numbers: Numbers) -> TextEdit:
    start_line, start, end_line, end, text = numbers
    return text_edit((start_line, start), (end_line, end), text)


@pytest.mark.parametrize(
    ("text", "edits", "result"),
    [
        ("a b\n", [], "a b\n"),
        ("a b a\n", [(0, 4, 0, 5, "x"), (0, 0, 0, 1, "y")], "y b x\n"),  # in any order
        ("a\r\nb\r\n", [(1, 0, 1, 1, "c")], "a\r\nc\r\n"),
        ("a\rb", [(1, 0, 1, 1, "c")], "a\rc"),
        ("a\u2028b\n", [(0, 2, 0, 3, "c")], "a\u2028c\n"),  # no line end in LSP
        ("a\r\nb\r\n", [(0, 0, 0, 1, "x\ny\r\nz")], "x\r\ny\r\nz\r\nb\r\n"),
        ("a\r\nb\n", [(0, 0, 0, 1, "x\ny")], "x\ny\r\nb\n"),  # mixed: as the server has it
        ("𝄞 = é\n", [(0, 0, 0, 2, "x"), (0, 5, 0, 6, "y")], "x = y\n"),
        ("ab\ncd", [(0, 1, 1, 1, "")], "ad"),
        ("ab\n", [(0, 9, 0, 99, "!")], "ab!\n"),  # past the end of the line
        ("ab\r\n", [(0, 9, 0, 9, "!")], "ab!\r\n"),
        ("ab\n", [(1, 0, 1, 0, "c")], "ab\nc"),  # the empty last line
        ("ab\r\n", [(1, 0, 1, 0, "c")], "ab\r\nc"),
        ("", [(0, 0, 0, 0, "c")], "c"),
        ("ab", [(0, 1, 0, 1, "x"), (0, 1, 0, 1, "y"), (0, 1, 0, 2, "z")], "axyz"),
        ("ab", [(0, 0, 0, 1, "x"), (0, 1, 0, 2, "y")], "xy"),  # they touch
        ("ab\n", [(2, 0, 2, 1, "x")], "name a place in line 3 that does not exist"),
        ("𝄞\n", [(0, 1, 0, 2, "x")], "cut a character of line 1 in two"),
        ("abc", [(0, 0, 0, 2, "x"), (0, 1, 0, 3, "y")], "overlap"),
        ("abc", [(0, 0, 0, 2, "x"), (0, 1, 0, 1, "y")], "overlap"),
    ],
)
def test_edits(text: str, edits: list[Numbers], result: str) -> None:
    try:
        changed = apply_range_edits(text, [edit(each) for each in edits], "utf-16")
    except MisplacedEdit as error:
        changed = str(error)
    assert changed == result


@pytest.mark.parametrize(("first", "last"), [((0, -1), (0, 1)), ((-1, 0), (0, 1)), ((0, 2), (0, 1)), ((1, 0), (0, 5))])
def test_a_range_is_ordered_and_from_0(first: tuple[int, int], last: tuple[int, int]) -> None:
    with pytest.raises(ValidationError):
        text_edit(first, last, "x")


@given(
    st.lists(st.text(st.sampled_from("a😀é\u2028"), max_size=6), min_size=1, max_size=5),
    st.lists(st.integers(0, 40), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
def test_the_wire_and_back(lines: list[str], offsets: list[int], newline: str, encoding: Encoding) -> None:
    """The daemon's edits reach the client's text at their places, however it counts."""
    text = newline.join(lines)
    cuts = {offset for offset in offsets if offset <= len(text) and text[offset - 1 : offset + 1] != "\r\n"}
    edits = [SpanEdit(start, end, "<é>") for start, end in list(pairwise(sorted(cuts)))[::2]]
    told = wire_edits(DocumentText(text, encoding), edits)
    assert placed_edits(text, told, encoding) == edits
    for edit, (start, end, _) in zip(told, edits, strict=True):
        before = text[:start].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert edit.range.start.line == len(before) - 1
        assert edit.range.start.character == len(before[-1].encode(WIRE[encoding])) // WIDTH[encoding]
        assert (edit.range.end == edit.range.start) is (start == end)


@pytest.mark.parametrize(("encoding", "before", "length"), [("utf-8", 7, 2), ("utf-16", 4, 1), ("utf-32", 3, 1)])
def test_the_server_counts_in_units_of_its_own(encoding: Encoding, before: int, length: int) -> None:
    assert apply_range_edits("𝄞é=é", [edit((0, before, 0, before + length, "x"))], encoding) == "𝄞é=x"


@given(
    st.text(st.sampled_from("ab é𝄞\u2028\f\n"), max_size=30).flatmap(
        lambda text: st.tuples(st.just(text), st.lists(st.integers(0, len(text)), max_size=8))
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
def test_as_if_made_to_the_plain_text(case: tuple[str, list[int]], newline: str, encoding: Encoding) -> None:
    text, offsets = case[0], sorted(set(case[1]))
    document = DocumentText(text, encoding)

    def at(start: int, end: int) -> TextEdit:
        first, last = document.position(start), document.position(end)
        assert isinstance(first, Position)
        return edit((first.line, first.character, last.line, last.character, "<>"))

    spans = list(pairwise(offsets))[::2]
    result = text
    for start, end in reversed(spans):
        result = result[:start] + "<>" + result[end:]
    edits = [at(start, end) for start, end in reversed(spans)]
    assert apply_range_edits(text.replace("\n", newline), edits, encoding) == result.replace("\n", newline)
