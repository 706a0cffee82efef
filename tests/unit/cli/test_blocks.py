import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.cli.blocks import Blocks
from amanu.cli.live import rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("one", ["one"]),
        ("one\nstill\n\ntwo\n", ["one\nstill", "two"]),
        ("\n\n\none\n\n\n\ntwo", ["one", "two"]),
        ("a\n\n```py\nx\n\ny\n```\n\nb", ["a", "```py\nx\n\ny\n```", "b"]),
        ("~~~\n```\n\n~~~\n\nb", ["~~~\n```\n\n~~~", "b"]),
        ("```\nnever closed\n\nx", ["```\nnever closed\n\nx"]),
    ],
)
def test_blocks(text: str, expected: list[str]) -> None:
    blocks = Blocks()
    assert [*blocks.feed(text), *blocks.end()] == expected


@given(st.text(alphabet="a\n`~ "), st.lists(st.integers(0, 80)))
def test_where_the_text_is_cut_makes_no_difference(text: str, cuts: list[int]) -> None:
    whole = Blocks()
    expected = [*whole.feed(text), *whole.end()]
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    blocks = Blocks()
    found = [block for a, b in itertools.pairwise(edges) for block in blocks.feed(text[a:b])]
    assert [*found, *blocks.end()] == expected


def test_the_tail_is_what_is_being_written() -> None:
    blocks = Blocks()
    blocks.feed("done\n\none\ntwo\nthr")
    assert blocks.tail == "one\ntwo\nthr"
    assert blocks.last_lines(2) == ["two", "thr"]


@pytest.mark.parametrize(
    ("lines", "count", "columns", "expected"),
    [
        ([], 3, 10, []),
        (["one", "", "two"], 3, 10, ["one", "", "two"]),
        (["one", "", "two"], 2, 10, ["", "two"]),
        (["abcdefgh"], 3, 3, ["abc", "def", "gh"]),
        (["abcdefgh"], 2, 3, ["def", "gh"]),
        (["日本語"], 3, 4, ["日本", "語"]),
        (["one two three"], 3, 8, ["one two", "three"]),
        (["the 1080 words"], 3, 7, ["the", "1080", "words"]),
        (["x" * 100_000 + "yz"], 2, 10, ["x" * 10, "yz"]),
    ],
)
def test_the_end_of_a_long_line_stays_in_sight(lines: list[str], count: int, columns: int, expected: list[str]) -> None:
    assert rows(lines, count, columns) == expected
