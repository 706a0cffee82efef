"""The query and the output of a grep: ripgrep and our own scan (`grep_worker.py`) write the same format."""

import json
import re
from dataclasses import dataclass, field

from amanu.core.tool import ToolError

_PER_FILE = 1000  # matching lines of one file
_COLUMNS = 2000  # characters shown of a line
_CUT = re.compile(rb"^([^\0\n]*): WARNING: stopped searching binary file after match", re.MULTILINE)
_LINE = re.compile(rb"^([^\0\n]*)\0(\d+)([:-])(.*)$|^--$", re.MULTILINE)


@dataclass(frozen=True)
class SearchQuery:
    pattern: str
    """A regular expression (Rust's syntax with ripgrep, Python's without), or literal text."""
    fixed: bool = False
    ignore_case: bool = False
    context: int = 0
    """Lines shown before and after a match."""
    include: str | None = None
    """Only files whose path fits this glob."""


NOT_UTF_8 = (
    r"(?-u)[\xC0\xC1\xF5-\xFF]|[\xC2-\xF4](?:[\x00-\x7F\xC2-\xFF]|$)|(?:^|[\x00-\x7F])[\x80-\xBF]"
    r"|[\xE0-\xF4][\x80-\xBF](?:[\x00-\x7F\xC2-\xFF]|$)|[\xF0-\xF4][\x80-\xBF]{2}(?:[\x00-\x7F\xC2-\xFF]|$)"
    r"|[\xC2-\xDF][\x80-\xBF]{2}|[\xE0-\xEF][\x80-\xBF]{3}|[\xF0-\xF4][\x80-\xBF]{4}"
)
"""A line with bytes that are not UTF-8, for ripgrep."""


@dataclass(frozen=True)
class MatchedLine:
    number: int
    text: str
    matches: bool


@dataclass
class FileMatches:
    path: str
    """Relative to the root, with `/`."""
    lines: list[MatchedLine] = field(default_factory=list[MatchedLine])
    text_of: str = ""
    """Whose text it is, where it is not the one on disk: "unsaved in the editor", "draft"."""

    is_utf_8: bool = True
    """Whether all lines that were found are."""
    is_cut: bool = False
    """Whether binary data ends what was searched of it."""

    @property
    def matches(self) -> int:
        return sum(line.matches for line in self.lines)


@dataclass(frozen=True)
class SearchResult:
    files: list[FileMatches]
    """In path order."""
    complete: bool
    """False when the search was stopped because it found too much."""
    big: list[FileMatches] = field(default_factory=list[FileMatches])
    """Files left out for their size, whose matching lines are not shown or not known."""
    undecoded: list[FileMatches] = field(default_factory=list[FileMatches])
    """Files in older encodings that were only searched as if they were UTF-8."""


def ripgrep_options(query: SearchQuery) -> list[str]:
    """The options that make ripgrep write the format that `parse` reads."""
    return [
        *("--null", "--no-heading", "--line-number", "--with-filename", "--color=never", "--crlf", "--no-messages"),
        f"--max-columns={_COLUMNS}",
        "--max-columns-preview",
        f"--max-count={_PER_FILE}",
        f"--context={query.context}",
        "--ignore-case" if query.ignore_case else "--case-sensitive",
        *(("--fixed-strings",) if query.fixed else ()),
        f"--regexp={query.pattern}",
    ]


def scan_input(query: SearchQuery, data: bytes, *, text: bool = False, not_utf_8: bool = False) -> bytes:
    """The input of `grep_worker.py`: paths, each ended by NUL, or a `text` to search. `not_utf_8`: paths, of which
    those that are not UTF-8 are sought."""
    options = {
        "pattern": query.pattern,
        "fixed": query.fixed,
        "ignoreCase": query.ignore_case,
        "context": query.context,
        "maxColumns": _COLUMNS,
        "perFile": _PER_FILE,
        "text": text,
        "notUtf8": not_utf_8,
    }
    return json.dumps(options).encode() + b"\n" + data


def checked(code: int, out: bytes, err: bytes) -> bytes:
    """The output. `ToolError` when the expression is wrong."""
    if code not in (0, 1) and err.strip():
        fault = " ".join(err.decode("utf-8", "replace").split())[:500]
        raise ToolError(f"The pattern is not valid: {fault}. Correct it, or set fixed to true to search literal text.")
    return out


def parse(out: bytes) -> list[FileMatches]:
    """In the order they were found."""
    files: dict[bytes, FileMatches] = {}
    for match in _LINE.finditer(out):
        name = match[1]
        if name is None:
            continue
        file = files.get(name)
        if file is None:
            path = name_text(name).removeprefix("./")
            file = files[name] = FileMatches(path)
        text = match[4].decode("utf-8", "replace").removesuffix("\r").removeprefix("\ufeff")
        file.is_utf_8 = file.is_utf_8 and "\ufffd" not in text
        file.lines.append(MatchedLine(int(match[2]), text, match[3] == b":"))
    for match in _CUT.finditer(out):
        if (file := files.get(match[1])) is not None:
            file.is_cut = True
    return list(files.values())


def name_text(name: bytes) -> str:
    """A file name as JSON and people can have it. One that is no UTF-8 names no file in this form."""
    return name.decode("utf-8", "replace")
