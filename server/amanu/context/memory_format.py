"""The text of project memory: how it is written for the model, and which other files it mentions.

    <memory path="AGENTS.md">        one file, as it is; in the system prompt
    …
    </memory>

    <project_memory>                 what came or changed later; after the user's words, or after tool results
    What is new …
    <memory path="docs/AGENTS.md">
    …
    </memory>
    </project_memory>

What the model knows is read from there, so that it is known after a restart, and known to be lost after a summary.
"""

import re
from collections.abc import Iterable, Iterator

from amanu.context.fenced_code import outside_fences
from amanu.workspace.text_file import split_lines

MAX_MENTIONS = 200
"""Mentions looked up of one file: each takes a look at the disk."""
GONE = "(This file was removed, or is no longer read. What it said no longer applies.)"

_MENTION = re.compile(r"""(?<![\w@./\\-])@(?:"([^"\n]+)"|([^\s@"'`<>|]+))""")
_PUNCTUATION = ".,;:!?)]}*_"
"""Characters that belong to the sentence around a mention, unless a file has such a name."""
_PARAGRAPHS = re.compile(r"(\n[ \t]*\n)")
_TICKS = re.compile(r"`+")
_BLOCK = re.compile(r'<memory path="([^"\n]*)">\n(.*?)\n</memory>', re.DOTALL)
_FRAME = re.compile(r"<(?=/memory>|/?project_memory>)")
_OPEN, _CLOSE = "<project_memory>\n", "\n</project_memory>"


def framed(text: str) -> str:
    """The text escaped so that it cannot end the frame it is put in; "" if it is blank."""
    return _FRAME.sub("&lt;", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n") if text.strip() else ""


def blocks(files: Iterable[tuple[str, str]]) -> str:
    """Files, as pairs of path and framed text, written for the model."""
    return "\n\n".join(f'<memory path="{path}">\n{text}\n</memory>' for path, text in files)


def note(head: str, files: Iterable[tuple[str, str]]) -> str:
    """New and changed files, written for the model."""
    return f"{_OPEN}{head}\n\n{blocks(files)}{_CLOSE}"


def in_blocks(text: str) -> dict[str, str]:
    """Path → text, read back from what `blocks` wrote."""
    return dict(_BLOCK.findall(text))


def in_note(text: str) -> dict[str, str]:
    """Path → text, read back from the last `note` in what was said to the model."""
    start = text.rfind(_OPEN)
    end = text.find(_CLOSE, start)
    return in_blocks(text[start:end]) if 0 <= start < end else {}


def mentions(text: str) -> list[tuple[str, ...]]:
    """The paths mentioned outside code as `@path` or `@"path with blanks"`, each with its possible readings: as it is
    written, then without the punctuation after it."""
    readings: dict[tuple[str, ...], None] = {}
    for quoted, plain in _MENTION.findall(_without_code(text)):
        bare = plain.rstrip(_PUNCTUATION)
        readings[(quoted,) if quoted else (plain, bare) if bare not in ("", plain) else (plain,)] = None
    return list(readings)[:MAX_MENTIONS]


def merely_mentions(text: str) -> bool:
    """Whether the text is nothing but mentions."""
    return "@" in text and not _MENTION.sub("", _without_code(text)).strip(" \t\n-*")


def _without_code(text: str) -> str:
    """The text without its code, in fences and between backticks."""
    parts = _PARAGRAPHS.split("".join(_without_fences(text)))
    return "".join(_without_spans(part) for part in parts)


def _without_fences(text: str) -> Iterator[str]:
    lines = split_lines(text)
    outside = {index for index, _ in outside_fences(lines)}
    for index, line in enumerate(lines):
        yield line if index in outside else "\n.\n\n"


def _without_spans(text: str) -> str:
    """A paragraph without its code spans: a run of backticks ends with the next of its length (CommonMark 6.1)."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    partner: dict[int, int] = {}
    following: dict[int, int] = {}
    for index in reversed(range(len(runs))):
        length = runs[index][1] - runs[index][0]
        if length in following:
            partner[index] = following[length]
        following[length] = index
    out: list[str] = []
    index = end = 0
    while index < len(runs):
        if index in partner:
            out += [text[end : runs[index][0]], "`"]
            index = partner[index]
            end = runs[index][1]
        index += 1
    return "".join([*out, text[end:]])
