"""Finds where one section of a thought ends and the next begins."""

import re
from collections.abc import Iterator

MAX_HEADING = 200
"""Characters of a line that can be a heading; a longer line is let through at once."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"\s*\*\*[^*\n]+\*\*\s*")


class ThoughtSections:
    """Cuts streamed thoughts before each line that holds only a bold heading and follows a blank line. (Gemini and GPT
    models write `**Subject**`, a blank line, and their thoughts about it.) How the text is cut into pieces makes no
    difference.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._line_start = ""
        """The current line, while it may still become a heading."""
        self._let_through = False
        """Part of the current line was let through: it is no heading."""
        self._after_blank = True
        self._has_text = False
        """The section has more than blank lines in it."""

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """Yields (whether a new section begins, text to show). The start of a possible heading is held back."""
        for piece in _LINES.findall(text):
            if self._let_through:
                self._let_through = not piece.endswith("\n")
                yield False, piece
                continue
            self._line_start += piece
            if piece.endswith("\n"):
                yield self._end_line()
            elif not self._may_be_heading():
                pending, self._line_start = self._line_start, ""
                self._let_through, self._after_blank, self._has_text = True, False, True
                yield False, pending

    def end(self) -> Iterator[tuple[bool, str]]:
        """Yields what was held back. The next text starts from scratch."""
        if self._line_start:
            yield self._end_line()
        self._reset()

    def _end_line(self) -> tuple[bool, str]:
        line, self._line_start = self._line_start, ""
        if not line.strip():
            self._after_blank = True
            return False, line
        heading = self._after_blank and len(line) <= MAX_HEADING and _HEADING.fullmatch(line) is not None
        begins = heading and self._has_text
        self._has_text, self._after_blank = True, False
        return begins, line

    def _may_be_heading(self) -> bool:
        start = self._line_start.lstrip()
        if not start:
            return True
        return self._after_blank and len(self._line_start) <= MAX_HEADING and start[:2] == "**"[: len(start)]
