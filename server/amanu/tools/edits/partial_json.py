"""The strings of a JSON text while it is still being written.

Own code, because what there is reads a string only when it is whole (ijson) or reads everything again with each piece
(jiter, partial-json-parser).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_DEPTH = 32
"""Of objects and arrays in one another: more than any tool's arguments have."""

_TEXT = re.compile(r'(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+')
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_STRUCTURE = re.compile(r'["{}\[\],]')


@dataclass(frozen=True, slots=True)
class StringPiece:
    """More of the string value at `path`, e.g. ("edits", 0, "new_text")."""

    path: tuple[str | int, ...]
    text: str
    ended: bool
    """The string is whole; `text` is ""."""


class JsonStrings:
    """Linear in the text, however it is cut. No validator: what is no JSON gives nothing more, or nonsense, but never
    an error."""

    def __init__(self) -> None:
        self._path: list[str | int | None] = []
        """For each open array its index, for each open object its key; None where a key comes next."""
        self._key: list[str] | None = None
        """What has come of a key."""
        self._in_string = False
        self._broken = False
        self._rest = ""
        """The beginning of an escape: at most eleven characters."""

    def feed(self, text: str) -> Iterator[StringPiece]:
        """The pieces of values in the next piece of the text, which is read as far as the iterator is."""
        text = self._rest + text
        self._rest = ""
        index = 0
        while index < len(text) and not self._broken:
            if not self._in_string:
                index = self._between(text, index)
            elif text[index] == '"':
                index += 1
                self._in_string = False
                if self._key is None:
                    yield self._piece("", ended=True)
                else:
                    self._path[-1] = "".join(self._key)
                    self._key = None
            else:
                text_piece, index = self._inside(text, index)
                if self._key is not None:
                    self._key.append(text_piece)
                elif text_piece:
                    yield self._piece(text_piece)

    def _between(self, text: str, index: int) -> int:
        """To behind the next character that means something outside of strings."""
        match = _STRUCTURE.search(text, index)
        if match is None:
            return len(text)
        match match[0]:
            case "{" | "[" as opening:
                self._path.append(None if opening == "{" else 0)
                self._broken = len(self._path) > MAX_DEPTH
            case '"':
                self._in_string = True
                self._key = [] if self._path and self._path[-1] is None else None
            case _ if not self._path:
                self._broken = True
            case ",":
                last = self._path[-1]
                self._path[-1] = last + 1 if isinstance(last, int) else None
            case _:
                self._path.pop()
        return match.end()

    def _inside(self, text: str, index: int) -> tuple[str, int]:
        """What the next characters of a string mean, and where they end."""
        match = _TEXT.match(text, index)
        end = index if match is None else match.end()
        if end == len(text) or _HALF_ESCAPE.match(text, end):
            if _HALF_PAIR.search(text, max(index, end - 6), end) and not _escaped(text, index, end - 6):
                end -= 6  # the other half of the character may follow
            self._rest = text[end:]
            return _meaning(text[index:end]), len(text)
        self._broken = match is None
        return _meaning(text[index:end]), end

    def _piece(self, text: str, *, ended: bool = False) -> StringPiece:
        return StringPiece(tuple(step for step in self._path if step is not None), text, ended)


def _meaning(written: str) -> str:
    return json.loads(f'"{written}"', strict=False)


def _escaped(text: str, start: int, index: int) -> bool:
    """The backslash at `at` is the second of an escape."""
    preceding = text[start:index]
    return (len(preceding) - len(preceding.rstrip("\\"))) % 2 == 1
