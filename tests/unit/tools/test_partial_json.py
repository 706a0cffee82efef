"""The strings of a JSON text, however it is cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.tools.edits.partial_json import JsonStrings

Strings = list[tuple[tuple[str | int, ...], str]]


def whole(value: Any, path: tuple[str | int, ...] = ()) -> Strings:
    """All string values, in order."""
    match value:
        case str():
            return [(path, value)]
        case dict():
            return [found for key, each in value.items() for found in whole(each, (*path, key))]  # pyright: ignore
        case list():
            return [found for at, each in enumerate(value) for found in whole(each, (*path, at))]  # pyright: ignore
        case _:
            return []


def read(*pieces: str) -> Strings:
    """What is found in a text that comes in pieces, strings that have not ended included."""
    strings, found, ended = JsonStrings(), Strings(), True
    for each in pieces:
        for piece in strings.feed(each):
            if ended:
                found.append((piece.path, ""))
            assert found[-1][0] == piece.path
            found[-1] = (piece.path, found[-1][1] + piece.text)
            ended = piece.ended
    return found


TEXT = json.dumps({
    "path": "src/\U0001f600 é.py",
    "edits": [{"old_text": 'a\\"b\n', "new_text": "\\ud83d \ud83d\\n"}, {"new_text": ""}],
    "replace_all": True,
    "n": [1.5, None, [], {}, "", ["x"], "}{],:"],
    "\u00e9\n": "\ufffd",
})  # fmt: skip


@pytest.mark.parametrize("text", [TEXT, json.dumps(json.loads(TEXT), ensure_ascii=False, indent=1)])
def test_cut_anywhere(text: str) -> None:
    expected = whole(json.loads(text))
    assert read(text) == read(*text) == expected
    for at in range(len(text)):
        assert read(text[:at], text[at:]) == expected


JSON: Any = st.recursive(
    st.text() | st.integers() | st.none(), lambda of: st.lists(of, max_size=3) | st.dictionaries(st.text(), of)
)


@given(JSON, st.booleans(), st.lists(st.integers(0, 400), max_size=8))
def test_any_value_in_any_pieces(value: Any, plain: bool, cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=not plain)
    edges = [0, *sorted(cuts), len(text)]
    assert read(*(text[a:b] for a, b in pairwise(edges))) == whole(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "unfini', [(("a",), "unfini")]),
        (r'{"a": "half \ud83d', [(("a",), "half ")]),
        (r'{"a": "lone \ud83d!"', [(("a",), "lone \ud83d!")]),
        (r'{"a": "x\y", "b": "c"}', [(("a",), "x")]),  # no JSON
        ('{"a": "line\nfeed"}', [(("a",), "line\nfeed")]),  # nor this, but its meaning is plain
        ('} "a"', []),
        ("[" * 33 + '"deep"', []),
        ("", []),
        ("not json", []),
    ],
)
def test_what_is_cut_off_or_wrong(text: str, expected: Strings) -> None:
    assert read(text) == read(*text) == expected


@given(st.text(alphabet='{}[]",:\\u0d8x \n', max_size=60))
def test_never_an_error(text: str) -> None:
    assert read(text) == read(*text)
