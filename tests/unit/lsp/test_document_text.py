"""Text sync against a naive model, for all encodings and line ends."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.frontends.lsp.document_text import (
    NEWLINE_ONLY,
    STANDARD_BREAKS,
    DocumentText,
    Encoding,
    Position,
    breaks_for,
)

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)


# The model: the whole text as one string, a place found by walking over its characters --------------


def model_offset(text: str, position: Position, encoding: Encoding, breaks: re.Pattern[str]) -> int:
    at = 0
    for _ in range(position.line):
        found = breaks.search(text, at)
        if found is None:
            return len(text)
        at = found.end()
    if position.line < 0:
        return 0
    end = breaks.search(text, at)
    last = len(text) if end is None else end.start()
    units = 0
    while at < last:
        units += width(text[at], encoding)
        if units > position.character:
            break
        at += 1
    return at


def width(character: str, encoding: Encoding) -> int:
    match encoding:
        case "utf-8":
            return len(character.encode("utf-8", "surrogatepass"))
        case "utf-16":
            return 2 if ord(character) > 0xFFFF else 1
        case "utf-32":
            return 1


LETTERS = st.text(st.sampled_from("ab\t\r\n\u2028\x0c\x85é✓𝄞👩\u200d"), max_size=12)
POSITIONS = st.builds(Position, st.integers(-1, 8), st.integers(-1, 14))
CHANGES = st.lists(st.tuples(POSITIONS, POSITIONS, LETTERS), max_size=6)


@given(LETTERS, CHANGES, st.sampled_from(ENCODINGS), st.sampled_from([STANDARD_BREAKS, NEWLINE_ONLY]))
def test_changes_give_what_the_model_gives(
    text: str, changes: list[tuple[Position, Position, str]], encoding: Encoding, breaks: re.Pattern[str]
) -> None:
    document = DocumentText(text, encoding, breaks)
    for start, end, new in changes:
        places = sorted(model_offset(text, each, encoding, breaks) for each in (start, end))
        text = text[: places[0]] + new + text[places[1] :]
        document.change(start, end, new)
        assert document.text == text
        for line in range(-1, 10):
            for character in (0, 1, 3, 99):
                position = Position(line, character)
                assert document.offset(position) == model_offset(text, position, encoding, breaks)


@given(LETTERS, st.sampled_from(ENCODINGS), st.sampled_from([STANDARD_BREAKS, NEWLINE_ONLY]))
def test_every_offset_has_a_position_and_comes_back(text: str, encoding: Encoding, breaks: re.Pattern[str]) -> None:
    document = DocumentText(text, encoding, breaks)
    for offset in range(len(text) + 1):
        back = document.offset(document.position(offset))
        inside_crlf = breaks is STANDARD_BREAKS and text[offset - 1 : offset + 1] == "\r\n" and offset > 0
        assert back == (offset - 1 if inside_crlf else offset)


@given(LETTERS, LETTERS)
def test_a_whole_text_replaces(text: str, new: str) -> None:
    document = DocumentText(text)
    document.change(Position(0, 0), Position(0, 0), "x")
    document.replace(new)
    assert document.text == new


@pytest.mark.parametrize(
    ("text", "encoding", "start", "end", "new", "expected"),
    [
        # Past the end of the last line: behind its last character (stock pygls inserts before it).
        ("abc", "utf-16", (0, 9), (0, 9), "X", "abcX"),
        ("abc\nde", "utf-16", (0, 9), (0, 9), "X", "abcX\nde"),
        ("abc\r\nde", "utf-16", (0, 9), (0, 9), "X", "abcX\r\nde"),
        ("abc", "utf-16", (7, 0), (7, 0), "X", "abcX"),
        # Characters at which str.splitlines cuts and LSP does not.
        ("a\u2028b\nc", "utf-16", (1, 0), (1, 1), "X", "a\u2028b\nX"),
        ("a\x0bb\x0cc\x1cd\x85e\nf", "utf-16", (1, 0), (1, 1), "X", "a\x0bb\x0cc\x1cd\x85e\nX"),
        ("a\rb\rc", "utf-16", (1, 0), (1, 1), "X", "a\rX\rc"),
        # The same place in three encodings.
        ("é𝄞x", "utf-8", (0, 6), (0, 7), "y", "é𝄞y"),
        ("é𝄞x", "utf-16", (0, 3), (0, 4), "y", "é𝄞y"),
        ("é𝄞x", "utf-32", (0, 2), (0, 3), "y", "é𝄞y"),
        # In the middle of a character: its start.
        ("𝄞x", "utf-16", (0, 1), (0, 1), "y", "y𝄞x"),
        ("𝄞x", "utf-8", (0, 3), (0, 3), "y", "y𝄞x"),
        # Two halves of a line end meet; a line end is torn.
        ("a\rb", "utf-16", (1, 0), (1, 0), "\n", "a\r\nb"),
        ("a\r\nb", "utf-16", (0, 1), (1, 0), "\r", "a\rb"),
        # Halves of a character that come one after the other.
        ("\ud834", "utf-16", (0, 1), (0, 1), "\udd1e", "𝄞"),
        ("a\ud834b", "utf-16", (0, 2), (0, 3), "c", "a\ud834c"),
    ],
)
def test_change(
    text: str, encoding: Encoding, start: tuple[int, int], end: tuple[int, int], new: str, expected: str
) -> None:
    document = DocumentText(text, encoding)
    document.change(Position(*start), Position(*end), new)
    assert document.text == expected


@pytest.mark.parametrize(
    ("client", "text", "breaks"),
    [
        ("Neovim", "a\rb\n", NEWLINE_ONLY),
        ("Neovim", "a\r\nb\r\n", NEWLINE_ONLY),
        ("Neovim", "a\rb\r", STANDARD_BREAKS),  # fileformat=mac
        ("Neovim", "", NEWLINE_ONLY),
        ("Visual Studio Code", "a\rb\n", STANDARD_BREAKS),
        ("", "a\rb\n", STANDARD_BREAKS),
    ],
)
def test_breaks_for(client: str, text: str, breaks: re.Pattern[str]) -> None:
    assert breaks_for(client, text) is breaks


def test_neovim_counts_a_lone_cr_as_a_character() -> None:
    """What Neovim 0.11 sends when `c` of the second line is replaced in a buffer "a\\rb\\nc\\n"."""
    text = "a\rb\nc\n"
    document = DocumentText(text, "utf-8", breaks_for("Neovim", text))
    document.change(Position(1, 0), Position(1, 1), "X")
    assert document.text == "a\rb\nX\n"
    document.change(Position(0, 1), Position(0, 2), "")
    assert document.text == "ab\nX\n"
