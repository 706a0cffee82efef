"""Untrusted text as a terminal may get it: escape sequences go, what would be invisible or misleading becomes
visible."""

import re

from amanu_protocol.hidden import pattern

SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]P^_X]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, PM, APC, SOS
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # all others
)
"""A complete escape sequence."""
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
    return tamed(SEQUENCE.sub("", text))


def one_line(text: str, limit: int = 200) -> str:
    """For titles and status lines: no escape sequences, nothing hidden, on one line, at most `limit` characters."""
    flat = " ".join(visible(SEQUENCE.sub("", text)).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def tamed(text: str) -> str:
    """`stripped` for text that has no sequences any more."""
    return _DECEIVING.sub(_mark, text.replace("\r\n", "\n"))


def _mark(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"
