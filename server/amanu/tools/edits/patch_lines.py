"""What both forms of a patch are read into, and how the lines of a change are read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from amanu.core.tool import ToolError

Mark = Literal[" ", "-", "+"]


@dataclass(frozen=True)
class PatchHunk:
    """Lines that stand together in the file, and what becomes of them."""

    line: int
    """Of the patch, 1-based, where it begins."""
    lines: tuple[tuple[Mark, str], ...]
    """Without line ends."""
    headings: tuple[str, ...] = ()
    """Lines of the file above the hunk, from the outermost to the innermost."""
    start: int | None = None
    """Its first line in the file as the patch says, 1-based. Only a hint; `headings` then too."""
    at_end: bool = False
    """It ends where the file ends."""
    bare_before: bool = False
    """The patch says that the file's last line had no line end,"""
    bare_after: bool = False
    """and that it has none afterwards."""

    @property
    def changes(self) -> bool:
        return any(mark != " " for mark, _ in self.lines)

    def side(self, mark: Literal["-", "+"]) -> list[str]:
        """The lines before ("-") or after ("+")."""
        return [text for sign, text in self.lines if sign in (" ", mark)]


@dataclass(frozen=True)
class FilePatch:
    kind: Literal["update", "add", "delete"]
    path: str
    line: int
    """Of the patch, 1-based, where it begins."""
    hunks: tuple[PatchHunk, ...] = ()
    """Of a file that is added: one, of lines with "+" alone, or none. Of a deleted one: what it held, if that is
    told."""
    new_path: str | None = None


@dataclass
class PatchReader:
    lines: Sequence[str]
    index: int
    end: int

    @property
    def line(self) -> str | None:
        """The one to be read; None at the end."""
        return self.lines[self.index] if self.index < self.end else None

    def ahead(self, count: int) -> str:
        return self.lines[self.index + count] if self.index + count < self.end else ""

    def fault(self, why: str) -> ToolError:
        line = self.line
        fault = "The patch ends too early" if line is None else f"Line {self.index + 1} of the patch, {line[:200]!r}"
        return ToolError(f"{fault}: {why} Nothing was changed.")


_MARKER = re.compile(
    r"\*\*\*\s*(begin patch|end patch|end of file|(?:update file|add file|delete file|move to)\s*:)\s*(.*?)\s*",
    re.IGNORECASE,
)
FILES: Mapping[str, Literal["update", "add", "delete"]] = {
    "update file": "update",
    "add file": "add",
    "delete file": "delete",
}


def marker(line: str) -> tuple[str, str] | None:
    """(which mark, the path that follows)."""
    match = _MARKER.fullmatch(line) if line.startswith("***") else None
    return None if match is None else (match[1].lower().rstrip(": \t"), match[2])


_NUMBERS = re.compile(r"@@+\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@+\s?(.*)")


def read_hunks(reader: PatchReader, ends: Callable[[PatchReader], bool]) -> tuple[PatchHunk, ...]:
    """All of a file; `ends` says where it is over."""
    hunks_read: list[PatchHunk] = []
    while (line := reader.line) is not None and not ends(reader):
        if not line:
            reader.index += 1  # before a change nothing hangs on it
            continue
        hunks_read.append(_hunk(reader, ends))
    return tuple(hunks_read)


def _hunk(reader: PatchReader, ends: Callable[[PatchReader], bool]) -> PatchHunk:
    first = reader.index + 1
    headings: list[str] = []
    start: int | None = None
    while (line := reader.line) is not None and line.startswith("@@"):
        if (match := _NUMBERS.fullmatch(line)) is not None:
            start, heading = int(match[1]), match[2].strip()
        else:
            heading = line[2:].strip().removesuffix("@@").strip()
        if heading and heading.strip(". "):
            headings.append(heading)
        reader.index += 1
    lines: list[tuple[Mark, str]] = []
    written = 0  # lines up to the last one that is not wholly empty: those after it are between two hunks
    bare = {" ": False, "-": False, "+": False}
    at_end = False
    while (line := reader.line) is not None and not line.startswith("@@") and not ends(reader):
        if (marker(line) or ("",))[0] == "end of file":
            at_end = True
            reader.index += 1
            break
        mark, text = line[:1] or " ", line[1:]
        if mark == "\\" and lines:
            bare[lines[-1][0]] = True
        elif mark in (" ", "-", "+"):
            lines.append((mark, text))
            written = len(lines) if line else written
        elif mark == "\t":  # a blank context line mark was lost before a tab: nothing else begins so
            lines.append((" ", line))
            written = len(lines)
        else:
            raise reader.fault("a line of a hunk must begin with ' ' (unchanged), '-' (removed) or '+' (added).")
        reader.index += 1
    if not written:
        raise reader.fault("the hunk before it has no lines.")
    return PatchHunk(
        first,
        tuple(lines[:written]),
        tuple(headings),
        start,
        at_end or any(bare.values()),
        bare["-"] or bare[" "],
        bare["+"] or bare[" "],
    )
