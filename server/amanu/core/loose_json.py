"""JSON as models write it: read where it can mean one thing only, refused everywhere else.

Allowed beyond JSON: line breaks and tabs in strings, a comma after the last member, single quotes, keys without
quotes, Python's `True`, `False` and `None`, a backslash that begins no escape (`\\d`). Nothing is closed, dropped or
guessed, so the beginning of a text is never taken for the whole of it. json-repair and json5 were tried: the one
completes what was cut off, the other drops the backslash.
"""

import json
import re
from typing import Any, NoReturn, cast

from amanu.core.nesting import MAX_NESTING

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_PYTHON = re.compile(r"\\x[0-9a-fA-F]{2}|\\U[0-9a-fA-F]{8}")
"""Escapes of Python: it is unclear whether the character is meant or the letters as they stand."""
_OPENING = re.compile(r"\s*(?:```(?:json)?[ \t]*\n\s*)?")
_CLOSING = re.compile(r"(?:\s|```|</[\w:]+>|<\|[\w/]+\|>)*\Z")
"""Text that may follow the object: the end of a fence, tags and tokens of a template."""


class JSONFault(ValueError):
    """The text is no JSON, and cannot be read as such. `ended`: it stops where more was expected."""

    def __init__(self, text: str, position: int, expected: str) -> None:
        self.position = position
        self.ended = position >= len(text)
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        found = "the text ends" if self.ended else f"found {text[position : position + 12]!r}"
        super().__init__(f"line {line}, column {column}: expected {expected}, but {found}")


def read_object(text: str) -> dict[str, Any]:
    """The one object that the text holds: alone, in a fence, before the closing tags of a template, as a string of
    JSON, or twice the same. Raises `JSONFault`."""
    value, end = scan(text, _span(_OPENING, text, 0))
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = read_object(value)
    if not isinstance(value, dict):
        raise JSONFault(text, _span(_OPENING, text, 0), "an object")
    again = _span(_SPACE, text, end)
    if text.startswith("{", again):
        second, end = scan(text, again)
        if not _same(second, value):
            raise JSONFault(text, again, "one object, not two")
    if _CLOSING.match(text, end) is None:
        raise JSONFault(text, _span(_SPACE, text, end), "nothing after the object")
    return cast("dict[str, Any]", value)


def scan(text: str, start: int) -> tuple[Any, int]:
    """The value that begins there, and where it ends. Linear. Raises `JSONFault`."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _Reader(text).value(start, 0)


def _span(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return start if match is None else match.end()


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: Python's `1 == True`."""
    return one is other or (one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members) and not all(_same(made[name], value) for name, value in members):
        raise ValueError("a name stands for two values")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, strict=False)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def _fault(self, position: int, expected: str) -> NoReturn:
        raise JSONFault(self._text, position, expected)

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        text = self._text
        at = _span(_SPACE, text, at)
        if depth > MAX_NESTING:
            self._fault(at, f"no more than {MAX_NESTING} levels")
        match text[at : at + 1]:
            case "{":
                return self._object(at + 1, depth)
            case "[":
                return self._array(at + 1, depth)
            case "'" | '"':
                return self._string(at)
            case _:
                pass
        if (number := _NUMBER.match(text, at)) is not None:
            try:
                return json.loads(number[0]), number.end()
            except ValueError:
                self._fault(at, "a number of fewer digits")
        word = _WORD.match(text, at)
        if word is None or word[0] not in _WORDS:
            self._fault(at, "a value")
        return _WORDS[word[0]], word.end()

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        while True:
            at = _span(_SPACE, self._text, at)
            if self._text.startswith("}", at):
                return made, at + 1
            begin = at
            name, at = self._name(at)
            at = self._expect(":", at)
            value, at = self.value(at, depth + 1)
            if name in made and not _same(made[name], value):
                self._fault(begin, f"one value for {name!r}, not two")
            made[name] = value
            at = _span(_SPACE, self._text, at)
            if self._text.startswith("}", at):
                return made, at + 1
            at = self._expect(",", at, "',' or '}'")

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        made: list[Any] = []
        while True:
            at = _span(_SPACE, self._text, at)
            if self._text.startswith("]", at):
                return made, at + 1
            value, at = self.value(at, depth + 1)
            made.append(value)
            at = _span(_SPACE, self._text, at)
            if self._text.startswith("]", at):
                return made, at + 1
            at = self._expect(",", at, "',' or ']'")

    def _name(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in ("'", '"'):
            return self._string(at)
        word = _WORD.match(self._text, at)
        if word is None:
            self._fault(at, "a name or '}'")
        return word[0], word.end()

    def _expect(self, mark: str, at: int, expected: str = "") -> int:
        at = _span(_SPACE, self._text, at)
        if not self._text.startswith(mark, at):
            self._fault(at, expected or repr(mark))
        return at + 1

    def _string(self, at: int) -> tuple[str, int]:
        text, quote = self._text, self._text[at]
        pieces: list[str] = []
        unescaped = False
        control = -1
        at += 1
        while True:
            plain = _PLAIN[quote].match(text, at)
            assert plain is not None
            pieces.append(plain[0])
            at = plain.end()
            if at + 1 >= len(text) and not text.startswith(quote, at):
                self._fault(len(text), f"the closing {quote}")
            if text[at] == quote:
                if unescaped and control >= 0:  # `\bword\d`: was the first a backspace?
                    self._fault(control, "every backslash doubled")
                return "".join(pieces), at + 1
            escape = text[at + 1]
            if (coded := _UNICODE.match(text, at)) is not None:
                pieces.append(json.loads(f'"{coded[0]}"'))  # all at once: two may be one character
                at = coded.end()
                continue
            if _PYTHON.match(text, at) is not None:
                self._fault(at, "a \\u escape")
            if escape == "'":
                if quote == '"':  # as in the shell's `'\''`, or to no purpose
                    self._fault(at, "\\\\ or ' alone")
                pieces.append("'")
            elif escape in _ESCAPES:
                control = at if escape in "bf" else control
                pieces.append(_ESCAPES[escape])
            else:
                unescaped = True
                pieces.append(f"\\{escape}")
            at += 2
