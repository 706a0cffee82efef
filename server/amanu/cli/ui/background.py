"""The terminal's background: what it answers when it is asked, or the environment says."""

import re
from collections.abc import Mapping
from typing import Literal

Background = Literal["dark", "light"]

QUESTION = "\x1b]11;?\x1b\\\x1b[c"
"""OSC 11, then what every terminal answers (DA1): whoever does not know the first need not be waited for."""
WAIT_SECONDS = 0.2
ANSWER = re.compile(r"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b\[\?[\d;]*c")
UNFINISHED = re.compile(r"\x1b(?:\]11;[^\x07\x1b]*\x1b?|\[\?[\d;]*)\Z")
"""The first part of an answer. No key begins like that."""
_COLOUR = re.compile(r"rgba?:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})(?:/[0-9a-f]{1,4})?", re.IGNORECASE)
_WEIGHTS = (0.299, 0.587, 0.114)
_LIGHT_NUMBERS = frozenset({7, *range(9, 16)})


def answered(colour: str) -> Background | None:
    """`rgb:ffff/ffff/ffff`, as in OSC 11."""
    found = _COLOUR.fullmatch(colour)
    if found is None:
        return None
    parts = (int(each, 16) / (16 ** len(each) - 1) for each in found.groups())
    return "light" if sum(map(float.__mul__, _WEIGHTS, parts)) > 0.5 else "dark"


def by_environment(environ: Mapping[str, str]) -> Background | None:
    """`COLORFGBG`, which ends with the number of the background among the 16 colours."""
    number = environ.get("COLORFGBG", "").rpartition(";")[2]
    if not re.fullmatch(r"1?\d", number) or int(number) > 15:
        return None
    return "light" if int(number) in _LIGHT_NUMBERS else "dark"
