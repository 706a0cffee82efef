"""Unified diffs, as git writes them and models remember them."""

import re

from amanu.tools.edits.patch_lines import FilePatch, Reader, hunks, marker

NOTHING = "/dev/null"
_EXTENDED = re.compile(
    r"(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|similarity index|"
    r"dissimilarity index|index|GIT binary patch|Binary files)\b ?(.*)"
)


def unified(reader: Reader) -> list[FilePatch]:
    files: list[FilePatch] = []
    while (line := reader.line) is not None:
        if line.startswith("diff --git ") or _names_files(reader):
            files.append(_section(reader))
        elif line.startswith(("@@", "+", "-")):
            raise reader.wrong("a change, but no file was named before it.")
        else:
            reader.at += 1  # what is said around a diff: "Index: …", "diff -u …", prose
    return files


def _ends_file(reader: Reader) -> bool:
    line = reader.line or ""
    return line.startswith("diff --git ") or _names_files(reader) or (marker(line) or ("",))[0] == "end patch"


def _names_files(reader: Reader) -> bool:
    """Here are `---` and `+++` of a file, no lines that are removed and added."""
    line = reader.line or ""
    if not line.startswith("--- ") or not reader.ahead(1).startswith("+++ "):
        return False
    return reader.ahead(2).startswith("@@") or NOTHING in (path_of(line), path_of(reader.ahead(1)))


def _section(reader: Reader) -> FilePatch:
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
        names = _without_prefix(path_of(reader.lines[reader.at]), path_of(reader.lines[reader.at + 1]))
        reader.at += 2
    changes = hunks(reader, _ends_file)
    begun = Reader(reader.lines, first, reader.end)
    if "rename from" in said and "rename to" in said:
        return FilePatch("update", _plain(said["rename from"]), first + 1, changes, _plain(said["rename to"]))
    if names is None:
        raise begun.wrong("no file can be read from it.")
    old, new = names
    if old == NOTHING or "new file mode" in said:
        if any(mark != "+" for hunk in changes for mark, _ in hunk.lines) or len(changes) > 1:
            raise begun.wrong("every line of a new file begins with '+', in one hunk.")
        return FilePatch("add", new, first + 1, changes)
    if new == NOTHING or "deleted file mode" in said:
        return FilePatch("delete", old, first + 1, changes)
    if old != new:
        raise begun.wrong(f"it names two files, {old} and {new}. A rename says so: 'rename from …', 'rename to …'.")
    if not changes:
        raise begun.wrong(f"there is no change of {old} after it.")
    return FilePatch("update", old, first + 1, changes)


def _refuse_extended(reader: Reader, what: str, value: str) -> None:
    if what in ("old mode", "new mode") or (what == "new file mode" and value != "100644"):
        raise reader.wrong("permission bits and links cannot be changed by a patch; leave this out and use a command.")
    if what in ("copy from", "copy to"):
        raise reader.wrong("copies are not supported; add the new file with all its lines.")
    if what in ("GIT binary patch", "Binary files"):
        raise reader.wrong("only text can be changed by a patch.")


def path_of(line: str) -> str:
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
    if old.startswith("a/") and (new.startswith("b/") or new == NOTHING):
        old = old[2:]
        return old, new if new == NOTHING else new[2:]
    if old == NOTHING and new.startswith("b/"):
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
