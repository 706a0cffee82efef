"""The text of one open document, changed as LSP says, for all three position encodings.

Lines end at `\\n`, `\\r\\n` or `\\r` and nowhere else (LSP, "Text Documents"; `str.splitlines` also cuts at U+2028,
form feeds and others). Positions outside the text are moved to its nearest place: past the end of a line to the
line's end, past the last line to the end of the text, into the middle of a character to its start.

Neovim counts lines by its buffer's own line end: it sends a buffer with a lone `\\r` as one line where LSP sees two.
For it (`breaks_for`) a text that has `\\n` ends lines there alone, and a text that has only `\\r` (fileformat=mac)
at `\\r`; decided when the document opens, since the buffer's format does not change with its text.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from amanu.text.code_units import Encoding, code_points, units

STANDARD_BREAKS = re.compile(r"\r\n|\r|\n")
NEWLINE_ONLY = re.compile(r"\n")

_OTHER_BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` ends a line and LSP does not."""


class Position(NamedTuple):
    """As on the wire: `line` from 0, `character` in units of the negotiated encoding."""

    line: int
    character: int


def breaks_for(client: str, text: str) -> re.Pattern[str]:
    """Where lines end in a document that the client of that name (clientInfo.name) opens with that text."""
    if client == "Neovim" and ("\n" in text or "\r" not in text):
        return NEWLINE_ONLY
    return STANDARD_BREAKS


class DocumentText:
    """A text as its lines, each with its line end; the last one has none and may be empty.

    A change costs as much as the lines it touches; `text` is joined when asked for.
    """

    def __init__(self, text: str, encoding: Encoding = "utf-16", breaks: re.Pattern[str] = STANDARD_BREAKS) -> None:
        self.encoding: Encoding = encoding
        self._breaks = breaks
        self._cuts: list[str] | None = None
        """The lines; None until somebody asks for one: most documents are opened and never changed."""
        self._joined: str | None = None
        self.replace(text)

    @property
    def _lines(self) -> list[str]:
        if self._cuts is None:
            assert self._joined is not None
            self._cuts = self._cut(self._joined)
        return self._cuts

    @property
    def text(self) -> str:
        if self._joined is None:
            self._joined = "".join(self._lines)
        return self._joined

    def replace(self, text: str) -> None:
        """Put a whole new text."""
        self._joined = _joined_surrogates(text)
        self._cuts = None

    def change(self, start: Position, end: Position, text: str) -> None:
        """Put `text` in place of what is between two positions (swapped when in the wrong order)."""
        (first, from_), (last, to) = sorted((self._place(start), self._place(end)))
        changed = self._lines[first][:from_] + text + self._lines[last][to:]
        # A line end may now be made of, or torn into, halves: CR and LF that meet across the seam.
        if first > 0 and changed.startswith("\n") and self._lines[first - 1].endswith("\r"):
            first -= 1
            changed = self._lines[first] + changed
        if changed.endswith("\r") and last + 1 < len(self._lines):
            last += 1
            changed += self._lines[last]
        changed = _joined_surrogates(changed)
        lines = self._cut(changed)
        if last + 1 < len(self._lines):
            lines.pop()  # the region ended with a line end; the empty rest after it is no line of its own
        self._lines[first : last + 1] = lines
        self._joined = None

    def offset(self, position: Position) -> int:
        """The number of code points before a position."""
        line, column = self._place(position)
        return sum(map(len, self._lines[:line])) + column

    def position(self, offset: int) -> Position:
        """The position of a code-point offset; offsets outside the text are moved into it, one between CR and LF
        to the end of its line."""
        return self.positions([offset])[0]

    def positions(self, offsets: Iterable[int]) -> list[Position]:
        """The positions of offsets in growing order, like `position` for each."""
        positions: list[Position] = []
        number = before = 0
        for offset in offsets:
            while offset >= before + len(self._lines[number]) and number < len(self._lines) - 1:
                before += len(self._lines[number])
                number += 1
            content = self._content(self._lines[number])
            positions.append(Position(number, units(content[: max(0, offset - before)], self.encoding)))
        return positions

    def _place(self, position: Position) -> tuple[int, int]:
        """Line and code points into it."""
        if position.line < 0:
            return 0, 0
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        content = self._content(self._lines[position.line])
        return position.line, code_points(content, position.character, self.encoding)

    def _content(self, line: str) -> str:
        """The line without its line end."""
        for end in ("\r\n", "\n", "\r"):
            if line.endswith(end) and self._breaks.fullmatch(end):
                return line[: -len(end)]
        return line

    def _cut(self, text: str) -> list[str]:
        if self._breaks is STANDARD_BREAKS and not any(line_break in text for line_break in _OTHER_BREAKS):
            # The same, ten times as fast: a file of a million lines would hold everybody up for a second.
            lines = text.splitlines(keepends=True)
            return lines if lines and not lines[-1].endswith(("\r", "\n")) else [*lines, ""]
        lines: list[str] = []
        index = 0
        for match in self._breaks.finditer(text):
            lines.append(text[index : match.end()])
            index = match.end()
        lines.append(text[index:])
        return lines


def _joined_surrogates(text: str) -> str:
    """Two halves of a character that came in two messages become the character; a half alone stays."""
    try:
        text.encode()  # ten times as fast as to look for one
        return text
    except UnicodeEncodeError:
        pass
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
