"""Text a user decides on, with nothing hidden in it."""

import re

from amanu_protocol.hidden import pattern

_HIDDEN = re.compile(pattern())
_TITLE = 200
"""Characters of a title."""


def visible(text: str) -> str:
    """Control characters, bidirectional marks and characters of no width (`amanu_protocol/hidden.py`) as their code
    point. Tabs, line feeds and carriage returns before them stay: they are what text is made of."""
    return _HIDDEN.sub(_named, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Like `visible`, and a title: of one line, not too long."""
    text = visible(text[: 2 * _TITLE]).replace("\n", "<U+000A>").replace("\t", " ")
    return text if len(text) <= _TITLE else text[: _TITLE - 1] + "…"


def _named(match: "re.Match[str]") -> str:
    return f"<U+{ord(match[0]):04X}>"
