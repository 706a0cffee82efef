"""A unified diff for a terminal: each line with its number, added code in colours."""

import re
from collections.abc import Iterator, Sequence

from amanu.cli.code_colours import coloured
from amanu.cli.styles import Span, Style

TAB = 4
FURTHER = " ┊ "
"""Before a further row of a line, below its number and sign."""
_NARROWEST = 20
COLOURED_LINES = 2000
"""A longer diff has no colours: each further thousand lines take a tenth of a second."""
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STYLES: dict[str, Style] = {"+": "green", "-": "red"}
_NUMBER = 4
"""Columns of a number, at least."""


def numbered(lines: Sequence[Span], name: str | None, columns: int) -> Iterator[Sequence[Span]]:
    """Its lines in styled pieces: a line that goes has its number in the old text, any other that in the new one. One
    that is too long goes on below, behind a sign: nothing in it can pass for a line of ours.

    The language of the code is that of the file of that name, or of each file that the diff names if it is ""; None: no
    code is coloured."""
    name = name if len(lines) <= COLOURED_LINES else None
    language = name
    at = 0
    while at < len(lines):
        style, text = lines[at]
        at += 1
        yield [(style, text)]
        if name == "" and text.startswith("+++ "):
            language = text[4:]
        if (header := _HEADER.match(text)) is not None:
            old, old_count, new, new_count = (1 if group is None else int(group) for group in header.groups())
            end = _end(lines, at, old_count, new_count)
            yield from _hunk([text for _, text in lines[at:end]], old, new, language or "", columns)
            at = end


def _end(lines: Sequence[Span], start: int, old: int, new: int) -> int:
    """The end of a hunk that has so many lines of the old and the new text."""
    for at in range(start, len(lines)):
        sign = _sign(lines[at][1])
        if old <= 0 and new <= 0 and sign != "\\":
            return at
        old -= sign in (" ", "-")
        new -= sign in (" ", "+")
    return len(lines)


def _hunk(texts: Sequence[str], old: int, new: int, name: str, columns: int) -> Iterator[Sequence[Span]]:
    width = number_width(max(old, new) + len(texts))
    rows = [(_sign(text), text[1:].expandtabs(TAB)) for text in texts]
    new_side = coloured([code for sign, code in rows if sign in (" ", "+")], name) if name else None
    codes = iter(new_side or ())
    for sign, code in rows:
        style: Style = _STYLES.get(sign, "dim")
        number = "" if sign == "\\" else old if sign == "-" else new
        coloured_code = next(codes, None) if sign in (" ", "+") else None
        pieces: list[Span] = [(style, code)]  # what does not change keeps in the background
        if sign == "+" and coloured_code is not None:
            pieces = coloured_code
        yield from numbered_line(f"{number:>{width}}", (style, sign), pieces, columns)
        old += sign in (" ", "-")
        new += sign in (" ", "+")


def number_width(highest: int) -> int:
    return max(_NUMBER, len(str(highest)))


def numbered_line(number: str, sign: Span, pieces: list[Span], columns: int) -> Iterator[list[Span]]:
    """The rows of one line."""
    first, *further = folded(pieces, columns - len(number) - len(FURTHER))
    yield [("dim", f"{number} "), (sign[0], f"{sign[1]} "), *first]
    for row in further:
        yield [("dim", f"{'':{len(number)}}{FURTHER}"), *row]


def folded(pieces: list[Span], columns: int) -> list[list[Span]]:
    """The rows that they take."""
    from rich.cells import cell_len

    columns = max(columns, _NARROWEST)
    if sum(cell_len(text) for _, text in pieces) <= columns:
        return [pieces]
    rows: list[list[Span]] = [[]]
    left = columns
    for style, text in pieces:
        start = 0
        if text.isascii():  # a column each
            while len(text) - start > left:
                rows[-1].append((style, text[start : start + left]))
                rows.append([])
                start, left = start + left, columns
            rows[-1].append((style, text[start:]))
            left -= len(text) - start
            continue
        for at, character in enumerate(text):
            left -= cell_len(character)
            if left < 0:
                rows[-1].append((style, text[start:at]))
                rows.append([])
                start, left = at, columns - cell_len(character)
        rows[-1].append((style, text[start:]))
    return rows


def _sign(text: str) -> str:
    return text[:1] or " "
