"""The changes of one file on the review page: rows of the terminal, made only where they are in sight."""

import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol

from amanu.cli.code_colours import coloured
from amanu.cli.console import Console
from amanu.cli.diff import BaseText, HunkText, hunk_lines, hunk_text, show_file_header, show_row
from amanu.cli.numbered_diff import TAB, folded, number_width, numbered, numbered_line
from amanu.cli.styles import Span, Style
from amanu.cli.text import one_line
from amanu_protocol.items import Hunk, ProposedFile, Row

Rows = Sequence[Sequence[Span]]
CHUNK = 100
"""Lines that are coloured at once: about 10 ms. What began above them, such as a long comment, may look like code."""


MOST_DRAWN = 500


class Lines(Protocol):
    """Lines that may take several rows each."""

    def __len__(self) -> int: ...

    def rows(self, at: int, columns: int) -> Rows: ...


class PlainLines:
    """A few, which are there."""

    def __init__(self, lines: Rows) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def rows(self, at: int, columns: int) -> Rows:
        return folded([*self._lines[at]], columns)


class HunkLines:
    """The lines of a hunk with their numbers, and colours in the new ones."""

    def __init__(self, text: HunkText, name: str, number: str) -> None:
        self._text = text
        self._name = name
        self._head: list[Span] = [text.head, ("dim", f" · {number}" if number else "")]
        self._ends = [*accumulate(len(lines) for _, lines, _ in text.parts)]
        self._width = number_width(max(text.old_first, text.new_first) + self._ends[-1])
        self._chunks: dict[int, list[list[Span]] | None] = {}

    def __len__(self) -> int:
        return 1 + self._ends[-1]

    def rows(self, at: int, columns: int) -> Rows:
        if at == 0:
            return folded(self._head, columns)
        at -= 1
        part = bisect.bisect_right(self._ends, at)
        sign, _, style = self._text.parts[part]
        number = at - self._removed * (part > 1)
        plain: list[Span] = [(style, self._code(at))]
        pieces = self._coloured(number) if sign == "+" else None
        first = self._text.old_first if sign == "-" else self._text.new_first
        return [*numbered_line(f"{first + number:>{self._width}}", (style, sign), pieces or plain, columns)]

    @property
    def _removed(self) -> int:
        return self._ends[1] - self._ends[0]

    def _code(self, at: int) -> str:
        part = bisect.bisect_right(self._ends, at)
        sign, lines, _ = self._text.parts[part]
        return self._text.line(sign, lines[at - self._ends[part] + len(lines)])[1:].expandtabs(TAB)

    def _coloured(self, new_line: int) -> list[Span] | None:
        """The new text's line of that index."""
        chunk, at = divmod(new_line, CHUNK)
        if chunk not in self._chunks:
            before, removed = self._ends[0], self._removed
            lines = range(chunk * CHUNK, min((chunk + 1) * CHUNK, self._ends[-1] - removed))
            self._chunks[chunk] = coloured([self._code(n + removed * (n >= before)) for n in lines], self._name)
        rows = self._chunks[chunk]
        return None if rows is None else rows[at]


class FileText:
    """All changes of one file, below each other."""

    def __init__(self, parts: Sequence[Lines]) -> None:
        self._parts = parts
        self._ends = [*accumulate(map(len, parts))]
        self._drawn: dict[tuple[int, int], Rows] = {}
        """Rows that were in sight, by line and columns: most are drawn again at once."""

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def start(self, part: int) -> int:
        """Its first line."""
        return self._ends[part] - len(self._parts[part])

    def part(self, at: int) -> int:
        """The index of the part that the line is of."""
        return bisect.bisect_right(self._ends, at)

    def rows(self, at: int, columns: int) -> Rows:
        if (at, columns) not in self._drawn:
            if len(self._drawn) > MOST_DRAWN:
                self._drawn.clear()
            part = self.part(at)
            self._drawn[at, columns] = self._parts[part].rows(at - self.start(part), columns)
        return self._drawn[at, columns]


def hunk_part(file: ProposedFile, base: BaseText, hunk: Hunk, number: str, *, explained: bool) -> Sequence[Lines]:
    """Its purpose, if that was not said yet, and its lines."""
    said: Rows = [[("", f"  {one_line(hunk.explanation, 300)}")]] if explained and hunk.explanation else []
    if file.change == "rename":
        return [PlainLines([*said, *_renamed(file, hunk, number)])]
    lines = HunkLines(hunk_text(base, hunk, reason=hunk.reason), file.path, number)
    return [PlainLines(said), lines]


def _renamed(file: ProposedFile, hunk: Hunk, number: str) -> Iterator[Sequence[Span]]:
    if hunk.old_text != hunk.new_text:
        yield from numbered([*hunk_lines(file, hunk, number, hunk.reason)], file.path, 10_000)
    else:
        yield [("dim", f"  {number} · the text stays as it is")]


def file_part(file: ProposedFile, roots: Sequence[str]) -> Lines:
    return PlainLines(collected(lambda console: show_file_header(console, file, roots)))


def row_part(row: Row, roots: Sequence[str], number: str) -> Lines:
    return PlainLines(collected(lambda console: show_row(console, row, roots, number=number)))


def collected(show: Callable[[Console], object]) -> Rows:
    """The lines that it would print."""
    console = _Lines()
    show(console)
    return console.lines


class _Lines:
    """A console that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[Sequence[Span]] = []

    def line(self, *spans: Span, hang: int | None = None) -> None:
        self.lines.append(spans)

    def verbatim(self, *spans: Span) -> None:
        self.lines.append(spans)

    def diff(self, lines: Sequence[Span], name: str | None) -> None:
        self.lines += [[span] for span in lines]

    def markdown(self, text: str, style: Style = "") -> None:
        self.lines.append([(style, text)])
