"""Makes a row of a new folder with all that is in it, which is decided as a whole, and keeps it in the session's file
store. Everything here blocks."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.transfer import leads_out, strip_all
from amanu.storage.file_store import FileStore
from amanu.system.folder_list import Entry, list_folder
from amanu.text.amounts import byte_count
from amanu.text.display import one_line, unbroken, visible
from amanu.tools.shell.row_changes import MAX_STORE
from amanu.tools.shell.taken_files import TakenFile
from amanu_protocol.items import Line, RowVersion

LEADS_OUT = "Links that lead out of the workspace: "
NOT_UTF8 = "it changed a file whose name is not UTF-8"
_EXECUTABLE = "Can be executed: "
_AT_TOP = "Contains: "
_GUARDED = "it made {path}, which programs obey or which may hold secrets"
_NAMED = 20
_NAMED_AT_TOP = 10


class TreeRefused(Exception):
    """The folder cannot be decided on as a whole. `str()` says why, as a clause."""


def tree_row(
    tree: TakenFile,
    store: FileStore,
    named: Callable[[Path, Iterable[str]], Sequence[str]],
    dropped: list[Path],
) -> RowChange:
    """The row of a folder that was taken out of a layer. `named`: a folder and the paths in it → those, the folder
    included, that a rule of the user's denies or asks about. `dropped` gets the pipes, sockets and devices in it.
    Raises `TreeRefused`, `OSError`."""
    assert tree.stored is not None
    listing = list_folder(tree.stored, tidy=True)
    dropped += (tree.path / each for each in listing.dropped)
    if protected.is_guarded(tree.name):
        raise TreeRefused(_GUARDED.format(path=one_line(tree.name)))
    if listing.is_linked:
        raise TreeRefused(f"it made hard links to files in {one_line(tree.name)}")
    for entry in (Entry("", "folder", 0, 0, False, ""), *listing.entries):
        if refusal := _refusal(f"{tree.name}/{entry.path}".rstrip("/"), entry.kind):
            raise TreeRefused(refusal)
    if guarded := named(tree.path, (entry.path for entry in listing.entries)):
        raise TreeRefused(f"it made {one_line(guarded[0])}, which a rule denies or asks about")
    if listing.size > MAX_STORE - store.size():
        raise TreeRefused(f"it made a folder of {byte_count(listing.size)}, more than the session can keep")
    files = sum(entry.kind != "folder" for entry in listing.entries)
    title = f"new folder, {files:,} file{'' if files == 1 else 's'}, {byte_count(listing.size)}"
    lines = _lines(tree, listing.entries)
    strip_all(tree.stored)
    after = RowVersion(kind="folder", size=listing.size, file_id=store.add_folder(tree.stored, listing))
    return RowChange("folder", tree.path, None, after, title, lines)


def has_links_out(row: RowChange) -> bool:
    """Whether a link in a new folder leads out of the workspace."""
    return row.is_tree and any(line.text.startswith(LEADS_OUT) for line in row.lines)


def _refusal(path: str, kind: str) -> str:
    """Why a folder that holds this path cannot be decided on as a whole; "" if it can. Only the last part of the path
    is judged: the folders above it are paths of their own."""
    folder, _, name = path.rpartition("/")
    if name.isascii() and name.isprintable():
        pass
    elif any("\ud800" <= letter <= "\udfff" for letter in name):
        return NOT_UTF8
    elif "\n" in name or visible(name) != name:
        return "it made a file whose name contains invisible characters"
    if kind == "deep":
        return "it made folders that are nested too deep"
    if name.casefold() == ".git":
        return f"it made a repository in {one_line(folder)}"
    is_guarded = protected.is_protected(name, folder.rpartition("/")[2])
    if is_guarded or (protected.may_be_secret(name) and protected.is_secret(path)):
        return _GUARDED.format(path=one_line(path))
    return ""


def _lines(tree: TakenFile, entries: Sequence[Entry]) -> list[Line]:
    """The lines for the user: what can be executed, which links lead out, and what is at its top."""
    root = tree.root.path
    executable = [entry.path for entry in entries if entry.executable]
    out = [
        f"{entry.path} → {entry.target}"
        for entry in entries
        if entry.kind == "link" and leads_out(tree.path / entry.path, entry.target, root)
    ]
    top = [f"{entry.path}/" if entry.kind == "folder" else entry.path for entry in entries if "/" not in entry.path]
    return [
        *([Line(tone="warning", text=f"{_EXECUTABLE}{_some(executable, _NAMED)}")] if executable else []),
        *([Line(tone="warning", text=f"{LEADS_OUT}{_some(out, _NAMED)}")] if out else []),
        Line(tone="plain", text=f"{_AT_TOP}{_some(top, _NAMED_AT_TOP)}"),
    ]


def _some(names: Sequence[str], count: int) -> str:
    shown = [unbroken(name) for name in islice(names, count)]
    return ", ".join(shown) + (f" and {len(names) - count:,} more" if len(names) > count else "")
