"""Regular expressions that every Python 3.11 reads alike.

Before 3.11.5 a possessive quantifier after a group that can backtrack matches too little (python/cpython#106052), and
Debian 12 has 3.11.2: an atomic group says the same everywhere.
"""

import re
from pathlib import Path

SERVER = Path(__file__).parents[2] / "server"
_STRING = re.compile(r"""\br[bf]?(["']).*""")
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{+[^{}]*\}+)\+")


def test_no_group_has_a_possessive_quantifier() -> None:
    found = [
        f"{path.relative_to(SERVER)}:{number}"
        for path in SERVER.rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (string := _STRING.search(line)) and _POSSESSIVE_GROUP.search(string[0])
    ]
    assert found == []
