"""Text a person decides on, with nothing hidden in it."""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_TITLE = 200
"""Characters of a title."""


def visible(text: str) -> str:
    """Control characters, bidirectional marks and characters of no width as their code point. Tabs, line feeds
    and carriage returns before them stay: they are what text is made of."""
    return _HIDDEN.sub(_named, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Like `visible`, and a title: of one line, not too long."""
    text = visible(text[: 2 * _TITLE]).replace("\n", "<U+000A>").replace("\t", " ")
    return text if len(text) <= _TITLE else text[: _TITLE - 1] + "…"


def _named(found: "re.Match[str]") -> str:
    return f"<U+{ord(found[0]):04X}>"
