"""Broken JSON of models: read where it can mean one thing only, refused everywhere else."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.loose_json import JSONFault, read_object
from amanu.models.reply_values import as_json, parse_arguments

READ: list[tuple[str, dict[str, Any]]] = [
    ('{"a": 1}', {"a": 1}),
    ('{"text": "one\ntwo\tthree"}', {"text": "one\ntwo\tthree"}),
    ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
    ("{'path': 'a.txt'}", {"path": "a.txt"}),
    ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
    ('{"say": \'it is "so"\'}', {"say": 'it is "so"'}),
    (r"""{'say': 'it\'s'}""", {"say": "it's"}),
    ('{path: "a.txt", line_2: -1.5e3}', {"path": "a.txt", "line_2": -1500.0}),
    (r'{"pattern": "\d+\.\w"}', {"pattern": r"\d+\.\w"}),
    (r'{"pattern": "\\d\s", "text": "a\nb"}', {"pattern": r"\d\s", "text": "a\nb"}),
    (r'{"path": "C:\users"}', {"path": r"C:\users"}),
    (r'{"a": "\ud83d\ude00 \d"}', {"a": "😀 \\d"}),
    ('{"path": "a"}</tool_call>', {"path": "a"}),
    ('{"path": "a"}\n</function></tool_call><|im_end|>\n', {"path": "a"}),
    ('{"path": "a"}{"path": "a"}', {"path": "a"}),
    ('{"path": "a"}\n{"path":"a"}', {"path": "a"}),
    ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
    ('```json\n{"path": "a"}\n```', {"path": "a"}),
    ('```\n{"path": "a"}\n```\n', {"path": "a"}),
    ('{"a": 1, "a": 1}', {"a": 1}),
    ("{}", {}),
]
REFUSED: list[tuple[str, str]] = [
    # (text, what is said of it)
    ("", "line 1, column 1: expected a value, but the text ends"),
    ("not json", "line 1, column 1: expected a value, but found 'not json'"),
    ("[1, 2]", "line 1, column 1: expected an object"),
    ('"text"', "line 1, column 1: expected an object"),
    ('{"path": ', "line 1, column 10: expected a value, but the text ends"),
    ('{"path": "a', 'line 1, column 12: expected the closing ", but the text ends'),
    ('{"path": "a\\', 'expected the closing ", but the text ends'),
    ('{"path": "a"', "line 1, column 13: expected ',' or '}', but the text ends"),
    ('{\n  "a": 1,\n  "b": x\n}', "line 3, column 8: expected a value, but found 'x\\n}'"),
    ('{"a": "say "x" now"}', "line 1, column 13: expected ',' or '}', but found 'x"),
    ('{"a": "b" "c": 1}', "line 1, column 11: expected ',' or '}'"),
    ('{"a" 1}', "line 1, column 6: expected ':'"),
    ("{'a': 'it's'}", "line 1, column 11: expected ',' or '}'"),
    (r'{"a": "echo ' "'" r"\'" "'" r'"}', r"expected \\ or ' alone"),
    (r'{"pattern": "\bword\d"}', "line 1, column 14: expected every backslash doubled"),
    ("{}}", "line 1, column 3: expected nothing after the object, but found '}'"),
    ('{"a": 1} and more', "line 1, column 10: expected nothing after the object"),
    ('{"a": 1}{"a": 2}', "line 1, column 9: expected one object, not two"),
    ('{"a": 1}{"a": 1', "expected ',' or '}', but the text ends"),
    ('{"a": 1, "a": 2}', "line 1, column 10: expected one value for 'a', not two"),
    ('{"a": 1, "a": true}', "line 1, column 10: expected one value for 'a', not two"),
    ('{"a": [1]}{"a": [true]}', "line 1, column 11: expected one object, not two"),
    ('{"a": NaN}', "line 1, column 7: expected a value"),
    ('{"a": 01}', "line 1, column 7: expected a value"),
    ('{"a": 1.}', "expected a value"),
    ("{,}", "line 1, column 2: expected a name or '}'"),
    ('{"a": [,]}', "line 1, column 8: expected a value"),
    ("{a-b: 1}", "line 1, column 3: expected ':'"),
    ('{"a": 1 // one\n}', "expected ',' or '}'"),
    ('{"a":' * 100, "expected no more than 64 levels"),
    ('```json\n{"a": 1', "line 2, column 8: expected ',' or '}', but the text ends"),
]


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_what_can_mean_one_thing_is_read(text: str, value: dict[str, Any]) -> None:
    assert read_object(text) == value
    assert parse_arguments(text, cut=False) == value


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_anything_else_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(JSONFault, match=re.escape(said)):
        read_object(text)
    if text and as_json(text) is None:
        assert parse_arguments(text, cut=False) == text


@pytest.mark.parametrize(("text", "value"), READ, ids=[text for text, _ in READ])
def test_a_cut_reply_is_not_repaired(text: str, value: dict[str, Any]) -> None:
    assert parse_arguments(text, cut=True) == (value if as_json(text) is not None else text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES, max_size=4)


def _outside_strings(text: str, pattern: str, replacement: str) -> str:
    """The replacement made outside the strings of valid JSON."""
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(piece if at % 2 else re.sub(pattern, replacement, piece) for at, piece in enumerate(pieces))


def _raw(text: str) -> str:
    return re.sub(r"\\\\|\\n|\\t", lambda escape: {"\\n": "\n", "\\t": "\t"}.get(escape[0], escape[0]), text)


def _with_commas(text: str) -> str:
    return re.sub(r"([^{,])}\Z", r"\1,}", _outside_strings(text, r"([^{\[\s])(\s*[}\]])", r"\1,\2"))


def _pythonic(text: str) -> str:
    for word in ("true", "false", "null"):
        text = _outside_strings(text, word, {"null": "None"}.get(word, word.capitalize()))
    return text


BREAKS: dict[str, Callable[[str], str]] = {
    "line breaks and tabs": _raw,
    "commas": _with_commas,
    "Python": _pythonic,
    "as Python writes it": lambda text: repr(json.loads(text)),
    "backslashes": lambda text: re.sub(r'\\\\(?=[^"\\/bfnrtu])', r"\\", text),
    "a tag": lambda text: f"{text}\n</tool_call>",
    "twice": lambda text: text + text,
    "a fence": lambda text: f"```json\n{text}\n```",
    "a string": lambda text: json.dumps(text),
}


@given(OBJECTS, st.sampled_from(sorted(BREAKS)))
def test_broken_in_a_known_way_it_is_the_same_or_refused(value: dict[str, Any], way: str) -> None:
    broken = BREAKS[way](json.dumps(value))
    try:
        assert read_object(broken) == value
    except JSONFault:
        assert way in ("as Python writes it", "backslashes")  # \x07 and the like


@given(OBJECTS, st.sampled_from(sorted(BREAKS)), st.data())
def test_a_beginning_is_never_taken_for_the_whole(value: dict[str, Any], way: str, data: st.DataObject) -> None:
    broken = BREAKS[way](json.dumps(value))
    cut = broken[: data.draw(st.integers(0, len(broken) - 1))]
    try:
        read = read_object(cut)
    except JSONFault:
        return
    assert read == value and way in ("a tag", "a fence", "twice")  # the object itself was whole


@given(st.text(st.sampled_from("{}[]\"'\\,:abn1 \n`<>/tTrue"), max_size=60))
def test_nothing_is_dropped_or_made_up(text: str) -> None:
    """Whatever is read has the letters and digits of the text, in their order; and no text takes any other error."""
    try:
        value = read_object(text)
    except JSONFault:
        return
    if "\\" not in text and text.count("{") == 1:
        letters = "".join(re.findall(r"\w", re.sub(r"</\w+>", "", text)))
        assert letters.lower() in "".join(re.findall(r"\w", str(value))).lower() or "None" in str(value)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text", ['{"a": "' + "\\d\n" * 50_000, "{a: " + "[" * 150_000, "{a:1," * 30_000, '{"a":1,' * 9_000 + "\n" * 99_000]
)
def test_long_texts_hold_nobody_up(text: str) -> None:
    assert parse_arguments(text, cut=False) == text
