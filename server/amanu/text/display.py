"""Makes hidden characters visible in text that a user decides on."""

import re
from collections.abc import Sequence

from amanu_protocol.hidden import pattern

_HIDDEN = re.compile(pattern())
_MAX_TITLE = 200
"""Characters of a title."""
_MOST_NAMED = 20
"""Files named in a note."""


def visible(text: str) -> str:
    """The text with control characters, bidirectional marks and characters without width (`amanu_protocol/hidden.py`)
    replaced by their code points. Tabs and line ends stay; CR LF becomes a line feed."""
    return _HIDDEN.sub(_code_point, text.replace("\r\n", "\n"))


def unbroken(text: str) -> str:
    """The text, `visible` and on one line, whole: for what a question is about."""
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")  # names of files may be no text
    return visible(whole).replace("\n", "<U+000A>").replace("\t", " ")


def one_line(text: str) -> str:
    """The text as a title: `visible`, on one line, and not too long."""
    text = unbroken(text[: 2 * _MAX_TITLE])
    return text if len(text) <= _MAX_TITLE else text[: _MAX_TITLE - 1] + "…"


def _code_point(match: "re.Match[str]") -> str:
    return f"<U+{ord(match[0]):04X}>"


def all_files(paths: Sequence[str]) -> str:
    """All paths, for a question in which a yes is about all of them."""
    return ", ".join(map(unbroken, paths))


def file_list(paths: Sequence[str]) -> str:
    """The paths; if there are many, only the first ones and the number of the others."""
    names = ", ".join(map(one_line, paths[:_MOST_NAMED]))
    return f"{names} and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else names
