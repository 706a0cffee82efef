"""The text of a patch → which files it changes and how. Two forms: `*** Begin Patch`, and unified diffs as git writes
them.

Models write both from memory, so what is not needed is not asked for: line numbers and counts may be wrong, marks at
the beginning and end may be missing. (Hence no library: those count lines, and refuse what does not add up.) What a
line of the patch means is never guessed.
"""

import re
from collections.abc import Sequence
from typing import Literal

from amanu.core.tool import ToolError
from amanu.tools.edits.patch_lines import FILES, FilePatch, Mark, PatchHunk, PatchReader, marker, read_hunks
from amanu.tools.edits.patch_unified import NOTHING, parse_unified, path_of


def parse_patch(patch: str) -> list[FilePatch]:
    """The files in the patch's order. Linear. Raises `ToolError` naming the line that is wrong."""
    lines = [line.removesuffix("\r") for line in patch.split("\n")]
    first, last = _unwrapped(lines)
    own_format = any((marked := marker(line)) and marked[0] in FILES for line in lines[first:last])
    reader = PatchReader(lines, first, last)
    files = _own_format(reader) if own_format else parse_unified(reader)
    if not files:
        raise ToolError(
            "The patch names no file. Write '*** Begin Patch', then '*** Update File: path', '*** Add File: path' or "
            "'*** Delete File: path', or a unified diff with '--- a/path' and '+++ b/path'. Nothing was changed."
        )
    return files


def named_file(line: str) -> tuple[Literal["update", "add", "delete"], str] | None:
    """(what happens to it, path) of the file a line of a patch names; for who looks at a patch that is not whole yet,
    so of a unified diff no more than that the file is changed."""
    if (marked := marker(line)) is not None:
        return (FILES[marked[0]], marked[1]) if marked[0] in FILES and marked[1] else None
    if not line.startswith(("--- ", "+++ ")) or path_of(line) in ("", NOTHING):
        return None
    path = path_of(line)
    return "update", path[2:] if path.startswith("a/" if line[0] == "-" else "b/") else path


def _unwrapped(lines: Sequence[str]) -> tuple[int, int]:
    """Without blank lines, a code fence or a here-document around all of it: its first line, and the one after it."""
    first, last = 0, len(lines)
    while True:
        while first < last and not lines[first].strip():
            first += 1
        while first < last and not lines[last - 1].strip():
            last -= 1
        if last - first < 2 or not _OPENS.fullmatch(lines[first].strip()):
            return first, last
        closes = lines[last - 1].strip()
        first += 1
        if closes in ("```", "EOF", "PATCH"):
            last -= 1


_OPENS = re.compile(r"```\w*|(?:apply_patch\s+)?<<-?\s*['\"]?(?:EOF|PATCH)['\"]?")


def _own_format(reader: PatchReader) -> list[FilePatch]:
    files: list[FilePatch] = []
    while (line := reader.line) is not None:
        marked = marker(line)
        if marked is not None and marked[0] in FILES:
            files.append(_own_file(reader, marked[0], marked[1]))
        elif not line.strip() or (marked is not None and marked[0] in ("begin patch", "end patch")):
            reader.index += 1
        else:
            raise reader.fault("expected '*** Update File: path', '*** Add File: path', '*** Delete File: path' or "
                               "'*** End Patch'.")  # fmt: skip
    return files


def _own_file(reader: PatchReader, kind: str, path: str) -> FilePatch:
    first = reader.index + 1
    if not path:
        raise reader.fault("the path is missing.")
    reader.index += 1
    if kind == "delete file":
        return FilePatch("delete", path, first)
    if kind == "add file":
        return FilePatch("add", path, first, _added(reader))
    moved = marker(reader.line or "")
    new_path = None
    if moved is not None and moved[0] == "move to":
        new_path = moved[1]
        if not new_path:
            raise reader.fault("the path is missing.")
        reader.index += 1
    changes = read_hunks(reader, _ends_file)
    if not changes and new_path is None:
        raise reader.fault(f"the section for {path} has no changes.")
    return FilePatch("update", path, first, changes, new_path)


def _ends_file(reader: PatchReader) -> bool:
    marked = marker(reader.line or "")
    return marked is not None and marked[0] != "end of file"


def _added(reader: PatchReader) -> tuple[PatchHunk, ...]:
    first = reader.index + 1
    lines: list[tuple[Mark, str]] = []
    while (line := reader.line) is not None and marker(line) is None:
        if line and not line.startswith("+"):
            raise reader.fault("every line of a new file must begin with '+'.")
        lines.append(("+", line[1:]))
        reader.index += 1
        if not line and all(not text for text in _next_text_line(reader)):
            lines.pop()
            break
    while reader.line == "":
        reader.index += 1
    return (PatchHunk(first, tuple(lines)),) if lines else ()


def _next_text_line(reader: PatchReader) -> Sequence[str]:
    index = reader.index
    while index < reader.end and marker(reader.lines[index]) is None:
        if reader.lines[index]:
            return reader.lines[index : index + 1]
        index += 1
    return ()
