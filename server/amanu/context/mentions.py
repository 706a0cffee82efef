"""What a prompt mentions with an `@`: files and folders by their path, and some things by a word.

    @src/a.py  @"a file.txt"  @a\\ file.txt  @src/  @symbol:Name  @problems  @diff  @terminal
    @https://example.org/page              an address
    @server:scheme://resource              a resource of an MCP server

A file or folder with the name of one of the words is written `@./diff` or `@diff/`; `\\@` mentions nothing.

Where a path ends only the disk can tell: people put any sign behind it, in some scripts none, and names hold any sign.
So a mention has its likely path, and the other paths that it may mean.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

Word = Literal["problems", "diff", "terminal"]
WORDS: tuple[Word, ...] = get_args(Word)
SYMBOL = "symbol:"

BEGINS = r"(?<![0-9A-Za-z_\u00aa-\u052f@\\])@"
"""The `@` of a mention, as an expression. Scripts without blanks between words may have a word before it."""

_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}
_MENTION = re.compile(
    BEGINS + "(?:"
    r"(?P<url>https?://[^\s<>\"'`]+)"
    r"|symbol:(?P<symbol>[\w$]+(?:(?:\.|::|\#)[\w$]+)*)"
    r"|(?P<resource>(?!file:)[A-Za-z0-9_-]+:[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`]*)"
    + "".join(
        f"|{first}(?P<quoted{at}>(?:\\\\{last}|[^{last}\n])+){last}" for at, (first, last) in enumerate(_QUOTES.items())
    )
    + r"|(?P<plain>(?:\\[^\w\\]|(?<=[0-9A-Za-z_/\\.-])@|[^\s@\"`<>|])+)"
    ")"
)
_BRACKETS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "（": "）",
    "「": "」",
    "『": "』",
    "【": "】",
    "《": "》",
    "“": "”",
    "‘": "’",
    "«": "»",
}
_OF_NAMES = "/._-~$#%&+=^*\\"
"""Signs that are as likely part of a name as letters are."""
_PREFIX = re.compile(r"file://|[A-Za-z]:(?=[\\/])")
_OF_NAME = re.compile(r"\w|/")
_WORD = re.compile(r"[ \t]+\S+")
_STOPS = ".,;:!?…'。，、；：！？"
_LONGEST = 500  # characters of a path that are looked at
_NEAR = 64  # characters behind an end that are looked at
_MOST = 40  # paths that one mention may mean
_WORDS = 6  # words with blanks before them that a path may have


@dataclass(frozen=True)
class Mention:
    kind: Literal["path", "folder", "symbol", "url", "resource", Word]
    """`folder` only once it is known to be one."""
    text: str
    """The path, the symbol's name, the address, `server:uri` of a resource; "" for a word."""
    paths: tuple[str, ...] = field(default=(), compare=False)
    """All paths that may be meant, the longest first."""
    run: str = field(default="", compare=False)
    """The text up to the next blank: a part of it names a folder only if the rest is no part of a path."""

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
    if (plain := match["plain"]) is None:
        quoted = match[match.lastgroup or 0]
        return Mention("path", re.sub(r"\\([\"'”’»」』])", r"\1", quoted))
    plain = plain[:_LONGEST]
    ends = sorted(_ends(plain))
    likely = _unescaped(plain[: min(end for end in ends if end == len(plain) or _is_end(plain, end))])
    for word in WORDS:
        if likely == word:
            return Mention(word, "")
    paths = [*_with_blanks(match), *(_unescaped(plain[:end]) for end in reversed(ends[-_MOST:]))]
    return Mention("path", likely, tuple(dict.fromkeys((*paths, likely))), _unescaped(plain))


def _with_blanks(match: "re.Match[str]") -> list[str]:
    """The path with the next words, the longest first."""
    line = match.string[match.start("plain") : match.end() + _LONGEST].partition("\n")[0]
    ends = [word.end() for word in _WORD.finditer(line, match.end() - match.start("plain"))][:_WORDS]
    return [_unescaped(line[:end].rstrip(_STOPS)) for end in reversed(ends)]


def _ends(text: str) -> Iterator[int]:
    """The places where a path that begins the text may end: before signs that end a part of a sentence, before what
    follows in a script without blanks, and behind all of it. Never inside of brackets, nor between a folder and what
    is in it."""
    closers: list[str] = []
    prefix = _PREFIX.match(text)
    begin = prefix.end() if prefix else 1
    for at, character in enumerate(text):
        escaped = at > 0 and text[at - 1] == "\\" and not character.isalnum()
        if at >= begin and not closers and not escaped and _may_follow(text, at):
            yield at
        if closers and character == closers[-1]:
            closers.pop()
        elif _opens(text, at) and not escaped:
            closers.append(_BRACKETS[character])
    yield len(text)


def _may_follow(text: str, at: int) -> bool:
    """Whether the sign there may come behind a path."""
    character, rest = text[at], text[at : at + _NEAR]
    if character in _OF_NAMES:
        return not _OF_NAME.search(rest) and text[:at].strip("./") != ""
    if text[at - 1] in "/\\" and (character in _BRACKETS or character == "@"):
        return False
    if not _is_letter(character):
        return not character.isalnum() and not unicodedata.category(character).startswith("M")
    letters = next((index for index, other in enumerate(rest) if not _is_letter(other)), len(rest))
    return text[at - 1] not in "/\\" and (
        not _is_letter(text[at - 1])
        or letters == len(rest)
        or not (rest[letters] in _OF_NAMES or rest[letters].isalnum())
    )


def _is_end(text: str, at: int) -> bool:
    """Whether a path is likely to end before the sign there, whatever files there are."""
    character = text[at]
    return (
        not _is_letter(character) and (character not in _OF_NAMES or character in ".*") and not _opens(text, at, "([{")
    )


def _opens(text: str, at: int, brackets: str = "".join(_BRACKETS)) -> bool:
    """Whether a bracket begins there that ends in the text."""
    return text[at] in brackets and _BRACKETS[text[at]] in text[at:]


def _is_letter(character: str) -> bool:
    """Whether its script has no upper and lower case, as Chinese, Thai, Arabic: a word may follow a path at once."""
    return unicodedata.category(character) in ("Lo", "Lm")


def _unescaped(path: str) -> str:
    return re.sub(r"\\([^\w\\])", r"\1", path)
