"""What a prompt mentions with an `@`: files and folders by their path, and some things by a word.

    @src/a.py  @"a file.txt"  @src/  @symbol:Name  @problems  @diff  @terminal  @https://example.org/page
    @server:scheme://resource              a resource of an MCP server

A file or folder with the name of one of the words is written `@./diff` or `@diff/`; `\\@` mentions nothing.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

Word = Literal["problems", "diff", "terminal"]
WORDS: tuple[Word, ...] = get_args(Word)
SYMBOL = "symbol:"

BEGINS = r"(?<![\w@\\])@"
"""As an expression: the `@` of a mention."""

_MENTION = re.compile(
    BEGINS + "(?:"
    r"(?P<url>https?://[^\s<>\"'`]+)"
    r"|symbol:(?P<symbol>[\w$]+(?:(?:\.|::|\#)[\w$]+)*)"
    r"|(?P<resource>[A-Za-z0-9_-]+:[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`]*)"
    r"|\"(?P<quoted>[^\"\n]+)\""
    r"|(?P<plain>[^\s@\"'`,;:!?()]+[^\s@\"'`,;:!?().]))"
)


@dataclass(frozen=True)
class Mention:
    kind: Literal["path", "folder", "symbol", "url", "resource", Word]
    """`folder` only once it is known to be one."""
    text: str
    """The path, the symbol's name, the address, `server:uri` of a resource; "" for a word."""

    def __str__(self) -> str:
        """As it is named to the user."""
        return self.text if self.kind in ("path", "folder") else f"@{SYMBOL * (self.kind == 'symbol')}{self.label}"

    @property
    def label(self) -> str:
        """The source named by the block that holds it."""
        return self.text or self.kind


def mentions(text: str) -> list[Mention]:
    """In order, each once."""
    return list(dict.fromkeys(map(_mention, _MENTION.finditer(text))))


def without_mentions(text: str) -> str:
    """The text, such that nothing in it is a mention."""
    return re.sub(BEGINS, r"\\@", text)


def _mention(match: "re.Match[str]") -> Mention:
    if url := match["url"]:
        return Mention("url", url.rstrip(".,;:!?)]}"))
    if symbol := match["symbol"]:
        return Mention("symbol", symbol)
    if resource := match["resource"]:
        return Mention("resource", resource.rstrip(".,;:!?)]}"))
    for word in WORDS:
        if match["plain"] == word:
            return Mention(word, "")
    return Mention("path", match["quoted"] or match["plain"])
