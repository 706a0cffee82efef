"""Sections of a thought: where one ends and the next begins."""

import re
from collections.abc import Iterator

LONGEST = 200
"""Characters of a line that can be a heading; a longer one is not waited for."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"\s*\*\*[^*\n]+\*\*\s*")


class ThoughtSections:
    """Cuts streamed thought before each line that is nothing but a bold heading and follows a blank line (Gemini and
    GPT models write `**Subject**`, a blank line, and what they think about it). The size of the pieces changes nothing.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._held = ""
        """The line being written, while it may still become a heading."""
        self._passing = False
        """Of the line being written, something was let through: it is none."""
        self._after_blank = True
        self._begun = False
        """The section has more in it than blanks."""

    def feed(self, text: str) -> Iterator[tuple[bool, str]]:
        """Text to show, and whether a new section begins with it. The start of a possible heading is held back."""
        for piece in _LINES.findall(text):
            if self._passing:
                self._passing = not piece.endswith("\n")
                yield False, piece
                continue
            self._held += piece
            if piece.endswith("\n"):
                yield self._line()
            elif not self._may_be_heading():
                pending, self._held = self._held, ""
                self._passing, self._after_blank, self._begun = True, False, True
                yield False, pending

    def end(self) -> Iterator[tuple[bool, str]]:
        """What was held back. The next text starts anew."""
        if self._held:
            yield self._line()
        self._reset()

    def _line(self) -> tuple[bool, str]:
        line, self._held = self._held, ""
        if not line.strip():
            self._after_blank = True
            return False, line
        heading = self._after_blank and len(line) <= LONGEST and _HEADING.fullmatch(line) is not None
        begins = heading and self._begun
        self._begun, self._after_blank = True, False
        return begins, line

    def _may_be_heading(self) -> bool:
        start = self._held.lstrip()
        if not start:
            return True
        return self._after_blank and len(self._held) <= LONGEST and start[:2] == "**"[: len(start)]
