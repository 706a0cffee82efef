import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amanu.cli.text import Stripper, one_line, stripped, visible
from amanu_protocol.hidden import HIDDEN

CASES = [
    ("plain, with\ttab\nand line", "plain, with\ttab\nand line"),
    ("grün 日本 👩‍🚀", "grün 日本 👩‍🚀"),
    ("\x1b[1;31mred\x1b[0m", "red"),
    ("\x9b31mred", "red"),
    ("\x1b]8;;https://e.test\x1b\\link\x1b]8;;\x07", "link"),
    ("\x1b]52;c;c2VjcmV0\x07", ""),
    ("\x1bPq…\x1b\\x", "x"),
    ("\x1bc\x1b7\x1b(B", ""),
    ("open \x1b]8;;https://e.test\nnext", "open ␛]8;;https://e.test\nnext"),
    ("a\x08b\x07\x7f", "a␈b␇␡"),
    ("crlf\r\nlone\rcr", "crlf\nlone␍cr"),
    ("user\u202etxt.exe", "user<U+202E>txt.exe"),
    ("\u2066x\u2069 \u200bzero\ufeff", "<U+2066>x<U+2069> <U+200B>zero<U+FEFF>"),
    ("line\u2028end", "line<U+2028>end"),
    ("\U000e0041hidden", "<U+E0041>hidden"),
    ("half \ud800", "half <U+D800>"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_stripped(text: str, expected: str) -> None:
    assert stripped(text) == expected


def test_what_is_approved_is_shown_whole() -> None:
    assert visible("rm x \x1b[8m; rm -rf ~\x1b[0m") == "rm x ␛[8m; rm -rf ~␛[0m"


@pytest.mark.parametrize("code", sorted({code for each in HIDDEN for code in each}))
def test_nothing_is_hidden_where_a_person_decides(code: int) -> None:
    character = chr(code)
    assert character not in visible(f"a{character}b") and character not in one_line(f"a{character}b")
    assert f"U+{code:04X}" in visible(f"a{character}b") or code < 0x80


def test_prose_keeps_what_belongs_to_emoji() -> None:
    assert stripped("❤\ufe0f 👩\u200d💻") == "❤\ufe0f 👩\u200d💻"


def test_one_line() -> None:
    assert one_line(" a\n b\x1b[1m c ") == "a b c"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"


ALPHABET = st.text(alphabet="ab\x1b[]\\;08m\x07\r\n\x9b\x9dP\u202e", max_size=60)


@given(ALPHABET, st.lists(st.integers(0, 60)))
@example("000000000\x9d\x1b\\", [11])
@example("\r\x9bP\n", [2])
@example("00\x9b\x9bPP", [5])
@example("000000\x9d\x9bP\x07", [9])
@example("8\x9d\x9b]bb", [4])
def test_pieces_come_out_as_the_whole(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stripper = Stripper()
    pieces = [stripper.feed(text[a:b]) for a, b in itertools.pairwise(edges)]
    assert "".join(pieces) + stripper.end() == stripped(text)


@given(st.text())
def test_nothing_a_terminal_obeys_is_left(text: str) -> None:
    for clean in (visible(text), stripped(text)):
        assert not any((ord(each) < 32 and each not in "\n\t") or 127 <= ord(each) < 160 for each in clean)
        clean.encode()  # no half characters
