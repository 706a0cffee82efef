"""Untrusted text on a terminal: escape sequences go, what would be invisible or misleading becomes visible."""

import re

from amanu_protocol.hidden import pattern

_INTRODUCER = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
"""ESC, and the one-character forms of DCS, SOS, CSI, OSC, PM, APC (ECMA-48)."""
_BEGINS = re.compile(f"[{_INTRODUCER}]")

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]P^_X]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, PM, APC, SOS
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # all others
)
_UNFINISHED = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    r"|(?:\x1b[\]P^_X]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*\x1b?"
    r"|\x1b[ -/]*)\Z"
)
_MAX_PENDING = 4096
"""Characters of an unfinished sequence that are waited with; a longer one is shown as text."""

_HIDDEN = re.compile(pattern())
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and newline
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # direction, zero width
    "\u2028\u2029"  # line ends some programs see and others do not
    "\U000e0000-\U000e007f"  # tags: text no one sees
    "\ud800-\udfff]"  # halves of a character; they cannot be printed at all
)
"""Of those, what prose never needs."""


def visible(text: str) -> str:
    """Whole text, nothing removed and nothing hidden: for what a user is asked to approve. Line ends become `\\n`."""
    return _HIDDEN.sub(_mark, text.replace("\r\n", "\n"))


def stripped(text: str) -> str:
    """Whole text without complete escape sequences; what remains of controls made visible. For prose: what belongs to
    emoji and to other scripts stays."""
    return _tame(_SEQUENCE.sub("", text))


def one_line(text: str, limit: int = 200) -> str:
    """For titles and status lines: no escape sequences, nothing hidden, on one line, at most `limit` characters."""
    flat = " ".join(visible(_SEQUENCE.sub("", text)).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


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
        visible_part, self._pending = _SEQUENCE.sub("", text[:cut]), text[cut:]
        if visible_part.endswith("\r"):  # what follows, once the sequence is gone, may be the rest of a line end
            visible_part, self._pending = visible_part[:-1], "\r" + self._pending
        return _tame(visible_part)

    def end(self) -> str:
        remaining, self._pending = self._pending, ""
        return stripped(remaining)


def _unfinished_at(text: str) -> int | None:
    """Where a sequence begins that reaches to the end and is not whole. What lies within a whole one begins none."""
    index = text.rfind("\n") + 1  # no sequence has a line end in it
    while (sequence := _BEGINS.search(text, index)) is not None:
        whole = _SEQUENCE.match(text, sequence.start())
        if whole is None and _UNFINISHED.match(text, sequence.start()):
            return sequence.start()
        index = sequence.end() if whole is None else whole.end()
    return None


def _tame(text: str) -> str:
    return _DECEIVING.sub(_mark, text.replace("\r\n", "\n"))


def _mark(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"
