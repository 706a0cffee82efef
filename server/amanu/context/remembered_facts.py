"""What the agent was asked to remember: one fact per line, in a section of a memory file that the user may also edit.

    ## Remembered

    - Run the tests with `make check`.

Only the lines of the fact that is added or struck change; all else stays as it is, to the byte. In a list that the
user nested, a fact is an item with everything indented below it.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.context.fenced_code import outside_fences
from amanu.context.memory_files import MAX_FILE, NAMES
from amanu.context.memory_format import mentions
from amanu.core.tool import ToolError
from amanu.text.display import visible
from amanu.workspace.text_file import line_end, split_lines

HEADING = "## Remembered"
MAX_FACT = 500
"""Characters of a fact: every later session is told all of them."""

_HEADING = re.compile(r" {0,3}##[ \t]++Remembered[ \t]*+#*+[ \t]*+$", re.IGNORECASE)
_NEXT_SECTION = re.compile(r" {0,3}#{1,2}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_BULLET = re.compile(r" {0,1}[-*+][ \t]+(?=\S)")
_MARKERS = re.compile(r"(?:(?:[-*+>]|#{1,6}|\d+[.)])[ \t]+)+")
_OTHER_BLOCK = re.compile(r" {0,3}(?:[-*+>|<#`~=_]|\d+[.)])")
"""What begins something else below a list item, unless it is indented."""


@dataclass(frozen=True)
class Fact:
    """A fact that is in a file."""

    start: int
    end: int
    """Its lines: `start` to `end`, which is excluded."""
    text: str
    """On one line, safe to show."""


def project_file(root: Path) -> Path:
    """The memory file of a project that facts go to. Blocking.

    A project that has one, under whatever name, keeps to it: its people look there, and so do their other tools, which
    may know no other name. Only a project without any gets an AGENTS.md, the common name."""
    return next((root / name for name in NAMES if os.path.lexists(root / name)), root / NAMES[0])


def one_fact(text: str) -> str:
    """What the model wants remembered, as one line without a hidden character that is nothing but a list item. Raises
    `ToolError` for what is none."""
    fact = visible(" ".join(text.split()))
    fact = fact[match.end() :] if (match := _MARKERS.match(fact)) is not None else fact
    if not fact.strip("-*+>#_`~= "):
        raise ToolError("The fact is empty. Say in one sentence what to remember.")
    if len(fact) > MAX_FACT:
        raise ToolError(
            f"The fact is too long; at most {MAX_FACT} characters can be remembered. Say it in one or two sentences."
        )
    if named := mentions(fact):
        raise ToolError(f"@{named[0][0]} would import a file into memory. Leave out the @.")
    return fact


def facts(text: str) -> list[Fact]:
    """The facts of a memory file, in its order."""
    lines = split_lines(text)
    found: list[Fact] = []
    for start, end in _sections(lines):
        found += _items(lines, start, end)
    return found


def with_fact(text: str, fact: str) -> str:
    """The text with a fact added to its section, or with a new section. Raises `ToolError` when it has that fact, can
    take no more, or would make an import of it."""
    _require_room(text)
    known = facts(text)
    if any(item.text == fact for item in known):
        raise ToolError("That is already remembered.")
    lines = split_lines(text)
    newline = line_end(text) or "\n"
    section = next(_sections(lines), None)
    if known:
        at, added = known[-1].end, [f"- {fact}"]
    elif section is not None:
        at, added = section[0], ["", f"- {fact}"]
    else:
        if _in_fence(lines):
            raise ToolError("The file ends in a code block that is not closed. Ask the user to close it.")
        at, added = len(lines), ["", HEADING, "", f"- {fact}"]
        if not lines or not lines[-1].strip():
            added = added[1:]
    before, after = "".join(lines[:at]), "".join(lines[at:])
    if before and not before.endswith(("\n", "\r")):
        before += newline
    if section is not None and not known and after.strip() and after[0] not in "\r\n":
        added.append("")
    result = before + "".join(f"{line}{newline}" for line in added) + after
    _require_room(result)
    imported = set(mentions(text))
    if named := [each for each in mentions(result) if each not in imported]:  # a backtick may pair with an earlier one
        raise ToolError(
            f"With what the file already says, @{named[0][0]} would import a file into memory. Say it without @ and `."
        )
    if all(item.text != fact for item in facts(result)):
        raise ToolError("The fact would not be a list item of its own there. Ask the user to add it themselves.")
    return result


def without_fact(text: str, fact: Fact) -> str:
    """The text without the lines of a fact that `facts` found in it."""
    lines = split_lines(text)
    return "".join([*lines[: fact.start], *lines[fact.end :]])


def _require_room(text: str) -> None:
    """Raises `ToolError` when models do not read all of a file with that text."""
    if len(text.encode("utf-8", "replace")) > MAX_FILE:
        raise ToolError(
            f"The file is full: only the first {MAX_FILE // 1024} KiB of a memory file are read. "
            "Ask the user to shorten it."
        )


def _sections(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(First line after the heading, first line of what follows) of each section."""
    start: int | None = None
    for index, line in outside_fences(lines):
        underlined = index + 1 < len(lines) and _UNDERLINE.match(_bare(lines[index + 1])) and _is_paragraph(line)
        if start is not None and (_NEXT_SECTION.match(line) or underlined):
            yield start, index
            start = None
        if _HEADING.match(line):
            start = index + 1
    if start is not None:
        yield start, len(lines)


def _items(lines: Sequence[str], start: int, end: int) -> list[Fact]:
    """The top-level list items between two lines."""
    starts = [start + index for index, line in outside_fences(lines[start:end]) if _BULLET.match(line)]
    return [_item(lines, item, following) for item, following in itertools.pairwise([*starts, end])]


def _item(lines: Sequence[str], start: int, limit: int) -> Fact:
    """The item that begins on that line: the lines that are indented below it belong to it, and those that go on
    without a blank line."""
    end = index = start + 1
    while index < limit:
        line = _bare(lines[index])
        if not line.strip():
            index += 1
            continue
        if not line.startswith(("  ", "\t")) and (index > end or _OTHER_BLOCK.match(line)):
            break
        index += 1
        end = index
    words = " ".join("".join(lines[start:end]).split())
    return Fact(start, end, visible(words)[2:])


def _in_fence(lines: Sequence[str]) -> bool:
    """Whether what would be added at the end is in fenced code."""
    return not any(index == len(lines) for index, _ in outside_fences([*lines, "x"]))


def _is_paragraph(line: str) -> bool:
    return bool(line.strip()) and not line.startswith((" ", "\t", "#")) and not _BULLET.match(line)


def _bare(line: str) -> str:
    return line.rstrip("\r\n")
