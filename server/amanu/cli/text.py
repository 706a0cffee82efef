"""Untrusted text on a terminal: escape sequences go, what would be invisible or misleading becomes visible."""

import re

from amanu.text.terminal import SEQUENCE, tamed
from amanu.text.terminal import one_line as one_line
from amanu.text.terminal import stripped as stripped
from amanu.text.terminal import visible as visible

_INTRODUCER = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
"""ESC, and the one-character forms of DCS, SOS, CSI, OSC, PM, APC (ECMA-48)."""
_BEGINS = re.compile(f"[{_INTRODUCER}]")

_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]P^_X]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
_MAX_PENDING = 4096
"""Characters of an unfinished sequence that are waited with; a longer one is shown as text."""


def cut(text: str, columns: int) -> str:
    """The part of one line that fits, with a sign where something is missing."""
    from rich.cells import set_cell_size

    return text if cell_width(text) <= columns else set_cell_size(text, max(0, columns - 1)).rstrip() + "…"


def cell_width(text: str) -> int:
    """Columns that it takes on a terminal."""
    from rich.cells import cell_len

    return cell_len(text)


class Stripper:
    """`stripped` for text that comes in pieces: a sequence cut in two is held back until it is whole."""

    def __init__(self) -> None:
        self._pending: str = ""

    def feed(self, text: str) -> str:
        text = self._pending + text
        cut = len(text)
        unfinished = _unfinished_at(text)
        if unfinished is not None and cut - unfinished <= _MAX_PENDING:
            cut = unfinished
        visible_part, self._pending = SEQUENCE.sub("", text[:cut]), text[cut:]
        if visible_part.endswith("\r"):  # what follows, once the sequence is gone, may be the rest of a line end
            visible_part, self._pending = visible_part[:-1], "\r" + self._pending
        return tamed(visible_part)

    def end(self) -> str:
        remaining, self._pending = self._pending, ""
        return stripped(remaining)


def _unfinished_at(text: str) -> int | None:
    """Where a sequence begins that reaches to the end and is not whole. What lies within a whole one begins none."""
    index = text.rfind("\n") + 1  # no sequence has a line end in it
    while (sequence := _BEGINS.search(text, index)) is not None:
        whole = SEQUENCE.match(text, sequence.start())
        if whole is None and _UNFINISHED.match(text, sequence.start()):
            return sequence.start()
        index = sequence.end() if whole is None else whole.end()
    return None
