"""The line of a reply that is being written, as far as it tells code from prose."""

import re

_TOKENS = ("<|", "<｜", "[TOOL_CALLS]", "]<]")
"""Beginnings of marks that nobody types: a call may follow any word."""

_QUOTING = re.compile(r"[>+|#$%*]|-(?!\s*\Z)|\d|\t| {4}")
"""Beginnings of lines that show something: a quotation, a diff, a table, a log, an indented example."""
_STOP = re.compile(r"(?:\A|[.!?…。！？：)\]>*]|(?<!\d):)\s?\Z")
"""Text before a tag on the same line must end in one of these."""


class Line:
    """Takes the text between line breaks in pieces, cut anywhere, and keeps only its beginning and its end."""

    def __init__(self) -> None:
        self._head = ""
        self._tail = ""
        self._odd_ticks = False
        self._fence = ""
        self._shows_call = False
        """A call is shown in this paragraph."""

    def add(self, text: str) -> None:
        """More of it, without a line break."""
        self._head += text[: max(0, 80 - len(self._head))]
        self._tail = (self._tail + text)[-4:]

    def tick(self, ticks: str) -> None:
        self._odd_ticks ^= len(ticks) % 2 == 1
        self.add(ticks)

    def end(self) -> None:
        stripped = self._head.strip()
        if self._fence:
            if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
                self._fence = ""
        elif fence := re.match(r"(?:[-*+]\s+|\d+[.)]\s+|>\s*)*(```+|~~~+)[^`]*\Z", stripped):
            self._fence = fence[1]
        self._shows_call &= bool(stripped)
        self._head, self._tail, self._odd_ticks = "", "", False

    @property
    def in_code(self) -> bool:
        return bool(self._fence) or self._odd_ticks

    @property
    def is_empty(self) -> bool:
        return not self._head

    @property
    def last(self) -> str:
        return self._tail[-1:]

    def may_hold(self, mark: str) -> bool:
        """Whether a call may begin here with that mark."""
        if self.in_code:
            return False
        follows = mark.startswith(_TOKENS) or _STOP.search(self._tail if self._head.strip() else "") is not None
        self._shows_call |= not follows or self.quotes
        return not self._shows_call

    @property
    def quotes(self) -> bool:
        return _QUOTING.match(self._head) is not None
