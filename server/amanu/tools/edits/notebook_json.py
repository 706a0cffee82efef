"""The JSON of a notebook with other sources and new cells, written as the rest of it is."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from amanu.core.tool import ToolError
from amanu.text.notebook import joined_text, notebook_cells

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\u(?!00[01])")
"""A character that only `ensure_ascii` escapes."""
_TOP = re.compile(r"[ \t\r\n]*\{\r?\n([ \t]+)")
"""The beginning of JSON with a member on a line of its own, and its indentation."""


@dataclass(frozen=True)
class NewCell:
    cell_type: str
    source: str


@dataclass(frozen=True)
class _Span:
    """Characters [start, end) of the JSON."""

    start: int
    end: int


def write_cells(text: str, sources: Mapping[int, str], new_cells: Mapping[int, Sequence[NewCell]]) -> str:
    """The JSON of a notebook with new sources, and with new cells behind others, both by the index of a cell; -1 stands
    for the place before the first. Line feeds at the end of a source stay as they are. Raises `ToolError`."""
    writer = _Writer(text)
    changes = [(writer.source_span(index), writer.source(index, source)) for index, source in sources.items()]
    changes += [writer.added(index, cells) for index, cells in new_cells.items() if cells]
    for span, written in sorted(changes, key=lambda change: change[0].start, reverse=True):
        text = text[: span.start] + written + text[span.end :]
    return text


class _Writer:
    def __init__(self, text: str) -> None:
        """`text` is a notebook with at least one cell."""
        self._text = text
        self._ascii = text.isascii() and _ESCAPED.search(text) is not None
        top = _TOP.match(text)
        self._unit = None if top is None else top[1]
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._documents = notebook_cells(text) or ()
        self._list = dict(self._members(_end_of_blanks(text, 0)))["cells"]
        self._cells = list(self._items(self._list))

    def source_span(self, index: int) -> _Span:
        span = dict(self._members(self._cells[index].start)).get("source")
        source: Any = self._documents[index].get("source")
        lines = cast("list[Any]", source) if isinstance(source, list) else [source]
        if span is None or not all(isinstance(line, str) for line in lines):
            raise ToolError(f"The source of cell {index + 1} is not text. Nothing was changed. Edit its JSON.")
        return span

    def source(self, index: int, new_source: str) -> str:
        """The value that says `new_source`, a string or a list of lines as it was; lines that stay are not touched."""
        old_source: Any = self._documents[index]["source"]
        whole = joined_text(old_source)
        new_source += whole[len(whole.rstrip("\n")) :] if new_source else ""
        if isinstance(old_source, str):
            return self._dumped(new_source)
        return self._list_of(cast("list[str]", old_source), new_source, self.source_span(index))

    def _list_of(self, old_lines: Sequence[str], new_source: str, span: _Span) -> str:
        if not new_source:
            return "[]"
        items = list(self._items(span))
        head = _unchanged_head(old_lines, new_source)
        rest = new_source[len("".join(old_lines[:head])) :]
        tail = _unchanged_tail(old_lines[head:], rest)
        middle = rest[: len(rest) - len("".join(old_lines[len(old_lines) - tail :]))]
        before, between, behind = self._layout(span, items)
        text = self._text
        parts = [text[items[0].start : items[head - 1].end]] if head else []
        parts += [self._dumped(line) for line in middle.splitlines(keepends=True)]
        parts += [text[items[-tail].start : items[-1].end]] if tail else []
        return f"[{before}{between.join(parts)}{behind}]"

    def added(self, index: int, cells: Sequence[NewCell]) -> tuple[_Span, str]:
        """The place where new cells behind that one go, and the text that goes there."""
        before, between, _ = self._layout(self._list, self._cells)
        indent = before.rpartition("\n")[2] if "\n" in before else ""
        written = [self._new_cell(cell, f"{index}.{at}", indent) for at, cell in enumerate(cells)]
        if index < 0:
            start = self._cells[0].start
            return _Span(start, start), "".join(each + between for each in written)
        end = self._cells[index].end
        return _Span(end, end), "".join(between + each for each in written)

    def _new_cell(self, cell: NewCell, name: str, indent: str) -> str:
        fields: dict[str, Any] = {"cell_type": cell.cell_type}
        if cell.cell_type == "code":
            fields["execution_count"] = None
        if any("id" in document for document in self._documents):
            fields["id"] = self._new_id(f"{name} {cell.source}")
        fields["metadata"] = {}
        if cell.cell_type == "code":
            fields["outputs"] = []
        as_text = any(isinstance(document.get("source"), str) for document in self._documents)
        fields["source"] = cell.source if as_text else cell.source.splitlines(keepends=True)
        written = json.dumps(fields, ensure_ascii=self._ascii, indent=self._unit)
        return written.replace("\n", self._newline + indent)

    def _new_id(self, seed: str) -> str:
        """The same for the same edit of the same notebook, and none that a cell has."""
        taken = {document.get("id") for document in self._documents}
        digest = hashlib.sha256(f"{seed}\n{self._text}".encode("utf-8", "surrogatepass")).hexdigest()
        return next(each for start in range(56) if (each := digest[start : start + 8]) not in taken)

    def _layout(self, span: _Span, items: Sequence[_Span]) -> tuple[str, str, str]:
        """The text before the first item of that list, between two, and behind the last."""
        text = self._text
        if items:
            before, behind = text[span.start + 1 : items[0].start], text[items[-1].end : span.end - 1]
            if len(items) > 1:
                return before, text[items[0].end : items[1].start], behind
            return before, f",{before}" if "\n" in before else ", ", behind
        line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
        if self._unit is None or not line.strip():
            return "", ", ", ""
        behind = self._newline + line[: len(line) - len(line.lstrip())]
        return behind + self._unit, f",{behind}{self._unit}", behind

    def _dumped(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self._ascii)

    def _members(self, at: int) -> Iterator[tuple[str, _Span]]:
        """Names and values of the object that begins there."""
        text = self._text
        at = _end_of_blanks(text, at + 1)
        while text[at] != "}":
            name, at = _DECODER.raw_decode(text, at)
            start = _end_of_blanks(text, _end_of_blanks(text, at) + 1)
            end = _DECODER.raw_decode(text, start)[1]
            yield name, _Span(start, end)
            at = _next_item(text, end)

    def _items(self, span: _Span) -> Iterator[_Span]:
        """Items of the list there."""
        at = _end_of_blanks(self._text, span.start + 1)
        while self._text[at] != "]":
            end = _DECODER.raw_decode(self._text, at)[1]
            yield _Span(at, end)
            at = _next_item(self._text, end)


def _unchanged_head(old_lines: Sequence[str], new_source: str) -> int:
    """The number of lines that the new source begins with."""
    at = 0
    for count, line in enumerate(old_lines):
        if not line or not new_source.startswith(line, at) or not (line.endswith("\n") or new_source[at:] == line):
            return count
        at += len(line)
    return len(old_lines)


def _unchanged_tail(old_lines: Sequence[str], new_source: str) -> int:
    """The number of lines that the new source ends with."""
    end = len(new_source)
    for count, line in enumerate(reversed(old_lines)):
        start = end - len(line)
        if not line or not new_source.endswith(line, 0, end) or not (start == 0 or new_source[start - 1] == "\n"):
            return count
        end = start
    return len(old_lines)


def _next_item(text: str, at: int) -> int:
    at = _end_of_blanks(text, at)
    return _end_of_blanks(text, at + 1) if text[at] == "," else at


def _end_of_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return at if match is None else match.end()
