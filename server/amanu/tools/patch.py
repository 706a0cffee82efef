"""The text of a patch → which files it changes and how. Two forms: `*** Begin Patch`, and unified diffs as git writes
them.

Models write both from memory, so what is not needed is not asked for: line numbers and counts may be wrong, marks at
the beginning and end may be missing. (Hence no library: those count lines, and refuse what does not add up.) What a
line of the patch means is never guessed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from amanu.tools.base import ToolError

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
        return [text for each, text in self.lines if each in (" ", mark)]


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


def parse(patch: str) -> list[FilePatch]:
    """The files in the patch's order. Linear. Raises `ToolError` naming the line that is wrong."""
    lines = [line.removesuffix("\r") for line in patch.split("\n")]
    first, last = _unwrapped(lines)
    own = any((found := _marker(line)) and found[0] in _FILES for line in lines[first:last])
    reader = _Reader(lines, first, last)
    files = _own(reader) if own else _unified(reader)
    if not files:
        raise ToolError(
            "The patch names no file. Write '*** Begin Patch', then '*** Update File: path', '*** Add File: path' or "
            "'*** Delete File: path', or a unified diff with '--- a/path' and '+++ b/path'. Nothing was changed."
        )
    return files


def named(line: str) -> tuple[Literal["update", "add", "delete"], str] | None:
    """(what happens to it, path) of the file a line of a patch names; for who looks at a patch that is not whole yet,
    so of a unified diff no more than that the file is changed."""
    if (found := _marker(line)) is not None:
        return (_FILES[found[0]], found[1]) if found[0] in _FILES and found[1] else None
    if not line.startswith(("--- ", "+++ ")) or _path(line) in ("", _NOTHING):
        return None
    path = _path(line)
    return "update", path[2:] if path.startswith("a/" if line[0] == "-" else "b/") else path


@dataclass
class _Reader:
    lines: Sequence[str]
    at: int
    end: int

    @property
    def line(self) -> str | None:
        """The one to be read; None at the end."""
        return self.lines[self.at] if self.at < self.end else None

    def ahead(self, count: int) -> str:
        return self.lines[self.at + count] if self.at + count < self.end else ""

    def wrong(self, why: str) -> ToolError:
        line = self.line
        said = "The patch ends too early" if line is None else f"Line {self.at + 1} of the patch, {line[:200]!r}"
        return ToolError(f"{said}: {why} Nothing was changed.")


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

# *** Begin Patch -----------------------------------------------------------------------------------

_MARKER = re.compile(
    r"\*\*\*\s*(begin patch|end patch|end of file|(?:update file|add file|delete file|move to)\s*:)\s*(.*?)\s*",
    re.IGNORECASE,
)
_FILES: Mapping[str, Literal["update", "add", "delete"]] = {
    "update file": "update",
    "add file": "add",
    "delete file": "delete",
}


def _marker(line: str) -> tuple[str, str] | None:
    """(which mark, the path that follows)."""
    found = _MARKER.fullmatch(line) if line.startswith("***") else None
    return None if found is None else (found[1].lower().rstrip(": \t"), found[2])


def _own(reader: _Reader) -> list[FilePatch]:
    files: list[FilePatch] = []
    while (line := reader.line) is not None:
        found = _marker(line)
        if found is not None and found[0] in _FILES:
            files.append(_own_file(reader, found[0], found[1]))
        elif not line.strip() or (found is not None and found[0] in ("begin patch", "end patch")):
            reader.at += 1
        else:
            raise reader.wrong("here one of '*** Update File: path', '*** Add File: path', '*** Delete File: path' or "
                               "'*** End Patch' is due.")  # fmt: skip
    return files


def _own_file(reader: _Reader, kind: str, path: str) -> FilePatch:
    first = reader.at + 1
    if not path:
        raise reader.wrong("the path is missing.")
    reader.at += 1
    if kind == "delete file":
        return FilePatch("delete", path, first)
    if kind == "add file":
        return FilePatch("add", path, first, _added(reader))
    moved = _marker(reader.line or "")
    new_path = None
    if moved is not None and moved[0] == "move to":
        new_path = moved[1]
        if not new_path:
            raise reader.wrong("the path is missing.")
        reader.at += 1
    hunks = _hunks(reader, own=True)
    if not hunks and new_path is None:
        raise reader.wrong(f"there is no change of {path} before it.")
    return FilePatch("update", path, first, hunks, new_path)


def _added(reader: _Reader) -> tuple[PatchHunk, ...]:
    first = reader.at + 1
    lines: list[tuple[Mark, str]] = []
    while (line := reader.line) is not None and _marker(line) is None:
        if line and not line.startswith("+"):
            raise reader.wrong("every line of a new file begins with '+'.")
        lines.append(("+", line[1:]))
        reader.at += 1
        if not line and all(not each for each in _until_marker(reader)):
            lines.pop()
            break
    while reader.line == "":
        reader.at += 1
    return (PatchHunk(first, tuple(lines)),) if lines else ()


def _until_marker(reader: _Reader) -> Sequence[str]:
    at = reader.at
    while at < reader.end and _marker(reader.lines[at]) is None:
        if reader.lines[at]:
            return reader.lines[at : at + 1]
        at += 1
    return ()


# Hunks ---------------------------------------------------------------------------------------------

_NUMBERS = re.compile(r"@@+\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@+\s?(.*)")


def _hunks(reader: _Reader, *, own: bool) -> tuple[PatchHunk, ...]:
    """All up to what begins another file."""
    hunks: list[PatchHunk] = []
    while (line := reader.line) is not None and not _ends_file(reader, own):
        if not line:
            reader.at += 1  # before a change nothing hangs on it
            continue
        hunks.append(_hunk(reader, own=own))
    return tuple(hunks)


def _ends_file(reader: _Reader, own: bool) -> bool:
    line = reader.line or ""
    if own:
        found = _marker(line)
        return found is not None and found[0] != "end of file"
    return line.startswith("diff --git ") or _names_files(reader) or (_marker(line) or ("",))[0] == "end patch"


def _hunk(reader: _Reader, *, own: bool) -> PatchHunk:
    first = reader.at + 1
    headings: list[str] = []
    start: int | None = None
    while (line := reader.line) is not None and line.startswith("@@"):
        if (found := _NUMBERS.fullmatch(line)) is not None:
            start, heading = int(found[1]), found[2].strip()
        else:
            heading = line[2:].strip().removesuffix("@@").strip()
        if heading and heading.strip(". "):
            headings.append(heading)
        reader.at += 1
    lines: list[tuple[Mark, str]] = []
    written = 0  # lines up to the last one that is not wholly empty: those after it are between two hunks
    bare = {" ": False, "-": False, "+": False}
    at_end = False
    while (line := reader.line) is not None and not line.startswith("@@") and not _ends_file(reader, own):
        if own and _marker(line) is not None:
            at_end = True
            reader.at += 1
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
            raise reader.wrong("a line of a change begins with ' ' (it stays), '-' (it goes) or '+' (it comes).")
        reader.at += 1
    if not written:
        raise reader.wrong("there are no lines of a change before it.")
    return PatchHunk(
        first,
        tuple(lines[:written]),
        tuple(headings),
        start,
        at_end or any(bare.values()),
        bare["-"] or bare[" "],
        bare["+"] or bare[" "],
    )


# Unified diffs -------------------------------------------------------------------------------------

_NOTHING = "/dev/null"
_EXTENDED = re.compile(
    r"(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|similarity index|"
    r"dissimilarity index|index|GIT binary patch|Binary files)\b ?(.*)"
)


def _unified(reader: _Reader) -> list[FilePatch]:
    files: list[FilePatch] = []
    while (line := reader.line) is not None:
        if line.startswith("diff --git ") or _names_files(reader):
            files.append(_section(reader))
        elif line.startswith(("@@", "+", "-")):
            raise reader.wrong("a change, but no file was named before it.")
        else:
            reader.at += 1  # what is said around a diff: "Index: …", "diff -u …", prose
    return files


def _names_files(reader: _Reader) -> bool:
    """Here are `---` and `+++` of a file, no lines that are removed and added."""
    line = reader.line or ""
    if not line.startswith("--- ") or not reader.ahead(1).startswith("+++ "):
        return False
    return reader.ahead(2).startswith("@@") or _NOTHING in (_path(line), _path(reader.ahead(1)))


def _section(reader: _Reader) -> FilePatch:
    first = reader.at
    line = reader.lines[first]
    said: dict[str, str] = {}
    names: tuple[str, str] | None = None
    if line.startswith("diff --git "):
        names = _git_names(line.removeprefix("diff --git "))
        reader.at += 1
        while (found := _EXTENDED.fullmatch(reader.line or "")) is not None:
            said[found[1]] = found[2]
            _refuse_extended(reader, found[1], found[2])
            reader.at += 1
    if _names_files(reader) or ((reader.line or "").startswith("--- ") and reader.ahead(1).startswith("+++ ")):
        names = _without_prefix(_path(reader.lines[reader.at]), _path(reader.lines[reader.at + 1]))
        reader.at += 2
    hunks = _hunks(reader, own=False)
    begun = _Reader(reader.lines, first, reader.end)
    if "rename from" in said and "rename to" in said:
        return FilePatch("update", _plain(said["rename from"]), first + 1, hunks, _plain(said["rename to"]))
    if names is None:
        raise begun.wrong("no file can be read from it.")
    old, new = names
    if old == _NOTHING or "new file mode" in said:
        if any(mark != "+" for hunk in hunks for mark, _ in hunk.lines) or len(hunks) > 1:
            raise begun.wrong("every line of a new file begins with '+', in one hunk.")
        return FilePatch("add", new, first + 1, hunks)
    if new == _NOTHING or "deleted file mode" in said:
        return FilePatch("delete", old, first + 1, hunks)
    if old != new:
        raise begun.wrong(f"it names two files, {old} and {new}. A rename says so: 'rename from …', 'rename to …'.")
    if not hunks:
        raise begun.wrong(f"there is no change of {old} after it.")
    return FilePatch("update", old, first + 1, hunks)


def _refuse_extended(reader: _Reader, what: str, value: str) -> None:
    if what in ("old mode", "new mode") or (what == "new file mode" and value != "100644"):
        raise reader.wrong("permission bits and links cannot be changed by a patch; leave this out and use a command.")
    if what in ("copy from", "copy to"):
        raise reader.wrong("copies are not supported; add the new file with all its lines.")
    if what in ("GIT binary patch", "Binary files"):
        raise reader.wrong("only text can be changed by a patch.")


def _path(line: str) -> str:
    """Of a `---` or `+++` line; a time may follow after a tab."""
    return _plain(line[4:].split("\t")[0].strip())


def _git_names(rest: str) -> tuple[str, str] | None:
    """Both names of a `diff --git` line. They may hold blanks: then the two are the same."""
    quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)', rest)
    if quoted is not None:
        return _without_prefix(_plain(quoted[1]), _plain(quoted[2]))
    half = len(rest) // 2
    old, new = _without_prefix(rest[:half], rest[half + 1 :])
    return (old, new) if old == new else None


def _without_prefix(old: str, new: str) -> tuple[str, str]:
    """git's `a/` and `b/` are no folders."""
    if old.startswith("a/") and (new.startswith("b/") or new == _NOTHING):
        old = old[2:]
        return old, new if new == _NOTHING else new[2:]
    if old == _NOTHING and new.startswith("b/"):
        new = new[2:]
    return old, new


def _plain(name: str) -> str:
    """A name as git quotes it where it holds odd characters: "caf\\303\\251"."""
    if len(name) < 2 or not (name[0] == name[-1] == '"'):
        return name
    try:
        return name[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        return name[1:-1]
