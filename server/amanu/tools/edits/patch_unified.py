"""Unified diffs, as git writes them and models remember them."""

import re

from amanu.tools.edits.patch_lines import FilePatch, PatchReader, marker, read_hunks

NOTHING = "/dev/null"
_EXTENDED = re.compile(
    r"(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|similarity index|"
    r"dissimilarity index|index|GIT binary patch|Binary files)\b ?(.*)"
)


def parse_unified(reader: PatchReader) -> list[FilePatch]:
    files: list[FilePatch] = []
    while (line := reader.line) is not None:
        if line.startswith("diff --git ") or _names_files(reader):
            files.append(_file_patch(reader))
        elif line.startswith(("@@", "+", "-")):
            raise reader.fault("no file was named before this hunk.")
        else:
            reader.index += 1  # what is said around a diff: "Index: …", "diff -u …", prose
    return files


def _ends_file(reader: PatchReader) -> bool:
    line = reader.line or ""
    return line.startswith("diff --git ") or _names_files(reader) or (marker(line) or ("",))[0] == "end patch"


def _names_files(reader: PatchReader) -> bool:
    """Here are `---` and `+++` of a file, no lines that are removed and added."""
    line = reader.line or ""
    if not line.startswith("--- ") or not reader.ahead(1).startswith("+++ "):
        return False
    return reader.ahead(2).startswith("@@") or NOTHING in (path_of(line), path_of(reader.ahead(1)))


def _file_patch(reader: PatchReader) -> FilePatch:
    first = reader.index
    line = reader.lines[first]
    headers: dict[str, str] = {}
    names: tuple[str, str] | None = None
    if line.startswith("diff --git "):
        names = _git_names(line.removeprefix("diff --git "))
        reader.index += 1
        while (match := _EXTENDED.fullmatch(reader.line or "")) is not None:
            headers[match[1]] = match[2]
            _refuse_extended(reader, match[1], match[2])
            reader.index += 1
    if _names_files(reader) or ((reader.line or "").startswith("--- ") and reader.ahead(1).startswith("+++ ")):
        names = _without_prefix(path_of(reader.lines[reader.index]), path_of(reader.lines[reader.index + 1]))
        reader.index += 2
    changes = read_hunks(reader, _ends_file)
    section_start = PatchReader(reader.lines, first, reader.end)
    if "rename from" in headers and "rename to" in headers:
        return FilePatch(
            "update", _unquoted(headers["rename from"]), first + 1, changes, _unquoted(headers["rename to"])
        )
    if names is None:
        raise section_start.fault("it names no file.")
    old_name, new_name = names
    if old_name == NOTHING or "new file mode" in headers:
        if any(mark != "+" for hunk in changes for mark, _ in hunk.lines) or len(changes) > 1:
            raise section_start.fault("a new file must be one hunk in which every line begins with '+'.")
        return FilePatch("add", new_name, first + 1, changes)
    if new_name == NOTHING or "deleted file mode" in headers:
        return FilePatch("delete", old_name, first + 1, changes)
    if old_name != new_name:
        raise section_start.fault(
            f"it names two files, {old_name} and {new_name}. For a rename, add 'rename from …' and 'rename to …'."
        )
    if not changes:
        raise section_start.fault(f"the section for {old_name} has no changes.")
    return FilePatch("update", old_name, first + 1, changes)


def _refuse_extended(reader: PatchReader, operation: str, value: str) -> None:
    if operation in ("old mode", "new mode") or (operation == "new file mode" and value != "100644"):
        raise reader.fault("permission bits and links cannot be changed by a patch; leave this out and use a command.")
    if operation in ("copy from", "copy to"):
        raise reader.fault("copies are not supported; add the new file with all its lines.")
    if operation in ("GIT binary patch", "Binary files"):
        raise reader.fault("only text can be changed by a patch.")


def path_of(line: str) -> str:
    """Of a `---` or `+++` line; a time may follow after a tab."""
    return _unquoted(line[4:].split("\t")[0].strip())


def _git_names(names: str) -> tuple[str, str] | None:
    """Both names of a `diff --git` line. They may hold blanks: then the two are the same."""
    quoted = re.fullmatch(r'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S+)', names)
    if quoted is not None:
        return _without_prefix(_unquoted(quoted[1]), _unquoted(quoted[2]))
    half = len(names) // 2
    old_name, new_name = _without_prefix(names[:half], names[half + 1 :])
    return (old_name, new_name) if old_name == new_name else None


def _without_prefix(old_name: str, new_name: str) -> tuple[str, str]:
    """git's `a/` and `b/` are no folders."""
    if old_name.startswith("a/") and (new_name.startswith("b/") or new_name == NOTHING):
        old_name = old_name[2:]
        return old_name, new_name if new_name == NOTHING else new_name[2:]
    if old_name == NOTHING and new_name.startswith("b/"):
        new_name = new_name[2:]
    return old_name, new_name


def _unquoted(name: str) -> str:
    """A name as git quotes it where it holds odd characters: "caf\\303\\251"."""
    if len(name) < 2 or not (name[0] == name[-1] == '"'):
        return name
    try:
        return name[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        return name[1:-1]
