"""What a command in a layer changed, read back and taken out of the layer."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.proposals.model import FileEdit
from amanu.proposals.rows import RowChange, RowKey
from amanu.sandbox.layers.changes import Change, Changes, read_changes
from amanu.sandbox.layers.layer import Layer, LayerRoot
from amanu.system.untrusted_files import opened_file, opened_folder
from amanu.tools.shell.git_changes import GitChanges, read_git
from amanu.tools.shell.taken_files import TakenFile, TakenFolder, identity
from amanu.tools.shell.tracked_folders import tracked_folders
from amanu.workspace.encodings import decode
from amanu.workspace.ignore import IgnoredPaths
from amanu.workspace.outer_rules import outer_rules
from amanu.workspace.text_file import FileText

MAX_CHANGES = 200
"""Changed paths of one command; nobody reviews more."""
EXECUTABLE = 0o111
TOO_LARGE = "file too large to show"
OTHER_ENCODING = "file in another encoding"
DROPPED = (
    "Not kept: {names}. Pipes, sockets and devices are removed when the command that made them has ended: make them in "
    "the command that uses them."
)
MAX_BYTES = 8 << 20
"""Of all changed text of one command: what can be shown and compared without anybody noticing."""


@dataclass(frozen=True)
class LayerChanges:
    """What one command changed."""

    edits: Sequence[FileEdit] = ()
    rows: Sequence[RowChange] = ()
    """Changes that no hunk shows; without those that are drafted already."""
    gone: Sequence[RowKey] = ()
    """Keys of the drafted rows that the command has undone."""
    seen: Mapping[RowKey, str] = field(default_factory=dict[RowKey, str])
    """Key → digest, of the rows that were drafted when the command started."""
    denied: Sequence[Path] = ()
    """Files whose executable bits the command changed although a rule denies it: the bits stay as they are."""
    unstored: Sequence[Path] = ()
    """Files for which the disk has no room: the command's version is not kept."""
    dropped: Sequence[Path] = ()
    """Pipes, sockets and devices: no workspace gets them from a command."""
    ignored: Sequence[Path] = ()
    """Topmost ignored files and folders that the layer has."""
    ignored_before: Collection[Path] = ()
    """The files that it had before the command."""
    conflicts: Sequence[Path] = ()
    """Changed in the workspace as well meanwhile: the command's version is not taken."""
    git: GitChanges = field(default_factory=GitChanges)
    refused: str = ""
    """Why not all of it can be decided on afterwards, as a clause: "it changed git's own config"; "" when it can."""
    begun: int = 0
    """When the command started, in nanoseconds as file systems note it."""
    need: SandboxRequirements = field(default_factory=SandboxRequirements)
    """The access it was run with."""
    asked_again: bool = False
    """The user said yes to other changes: since then the repository has changed, and so has what the command does."""

    @property
    def needs_decision(self) -> bool:
        """Whether there is something to decide."""
        return bool(self.edits or self.rows or self.git.needs_decision)

    @property
    def paths(self) -> Sequence[Path]:
        """All that a decision is about, but for git's own files."""
        texts = [path for edit in self.edits for path in (edit.base.path, edit.new_path) if path is not None]
        return list(dict.fromkeys([*texts, *(path for row in self.rows for path in row.paths)]))


@dataclass(frozen=True)
class NewText:
    """A file of text, as it is now."""

    file: TakenFile
    text: str | None
    """None: deleted."""
    encoding: str = ""
    mode: int = 0


@dataclass
class FoundChanges:
    """As `LayerChanges`, before it is compared with what the user sees."""

    folder: TakenFolder
    begun: int
    texts: dict[Path, NewText] = field(default_factory=dict[Path, NewText])
    files: list[TakenFile] = field(default_factory=list[TakenFile])
    folders: list[Path] = field(default_factory=list[Path])
    trees: list[TakenFile] = field(default_factory=list[TakenFile])
    """New folders with all that is in them."""
    drafted_trees: list[Path] = field(default_factory=list[Path])
    """The drafted folders that were in the layer when the command started and are still there."""
    emptied: list[Path] = field(default_factory=list[Path])
    dropped: list[Path] = field(default_factory=list[Path])
    ignored: list[Path] = field(default_factory=list[Path])
    conflicts: list[Path] = field(default_factory=list[Path])
    paths: list[Path] = field(default_factory=list[Path])
    """What is still to be taken out of the layer."""
    same: list[Path] = field(default_factory=list[Path])
    """Paths that are the same in layer and workspace: the layer would hide what the user changes there."""
    git: GitChanges = field(default_factory=GitChanges)
    refused: str = ""
    is_complete: bool = True
    """False: there is more in the layer."""
    bytes: int = 0


@dataclass(frozen=True)
class LaidIn:
    """Paths that were put into the layer before the command."""

    texts: Mapping[Path, FileText | None]
    """None: it was deleted."""
    rows: Collection[Path] = ()
    trees: Collection[Path] = ()


def read_layer(layer: Layer, laid: LaidIn, found: FoundChanges) -> None:
    """Find what is in the layer, and what the command has removed or undone of the texts laid in there, and take files
    out of it. Raises `LayerError`, `OSError`. Blocking."""
    with layer.locked():
        for root in layer.roots:
            _RootReading(root, laid, found).run()
    laid_in = laid.texts
    seen = frozenset(found.paths)
    for path, file in laid_in.items() if found.is_complete else ():
        root, name = layer.place(path)
        if path in seen:
            continue
        if os.path.lexists(path):
            _RootReading(root, laid, found).read_same(path, name)
        elif file is not None:
            # It was there for the command.
            found.texts[path] = NewText(TakenFile(root, name, None, None), None)
    found.paths += laid_in


class _RootReading:
    def __init__(self, root: LayerRoot, laid: LaidIn, found: FoundChanges) -> None:
        self._root = root
        self._laid_in = laid.texts
        self._trees = laid.trees
        self._above_laid_in = {folder for path in (*laid.texts, *laid.rows) for folder in path.parents}
        self._found = found

    def run(self) -> None:
        found, changes = self._found, self._changes()
        found.same += (self._root.path / path for path in changes.same)
        if not changes.complete:
            found.is_complete = False
            found.refused = f"it changed more than {MAX_CHANGES} files"
        filled = {change.path.rpartition("/")[0] for change in changes.found if change.kind != "special"}
        for change in changes.found:
            path = self._root.path / change.path
            if change.kind == "pruned":
                (found.drafted_trees if path in self._trees else found.ignored).append(path)
            elif change.kind == "tree":
                found.trees.append(TakenFile(self._root, change.path, None, found.folder.take(self._root, change.path)))
            elif change.path != ".":
                found.paths.append(path)
                self._read(change, path, is_empty=change.path not in filled)

    def read_same(self, path: Path, name: str) -> None:
        """Read a laid-in text that is no change any more: the command has made it equal to the workspace's."""
        below = path.lstat()
        with contextlib.suppress(OSError):
            mode = (self._root.upper / name).lstat().st_mode
            if stat.S_ISREG(mode) and stat.S_ISREG(below.st_mode):
                self._read_file(path, Change(name, "file", stat.S_IMODE(mode), below))

    def _changes(self) -> Changes:
        with self._root.opened() as opened:
            assert opened.below is not None
            below = opened.below
            ignored = IgnoredPaths(below, outer_rules(self._root.path).rules)

            def prune(path: str, is_folder: bool) -> bool:
                if is_folder and self._root.path / path in self._trees:
                    return True
                if path.startswith(".git/") or protected.is_guarded(path) or not ignored.hides(path, is_folder):
                    return False
                if is_folder:
                    return path not in tracked_folders(self._root.path)
                return not os.path.lexists(self._root.path / path)  # git may track a file it would ignore

            return read_changes(self._root, limit=MAX_CHANGES, prune=prune, may_be_tree=self._may_be_tree)

    def _may_be_tree(self, path: str) -> bool:
        return ".git" not in path.split("/") and self._root.path / path not in self._above_laid_in

    def _read(self, change: Change, path: Path, *, is_empty: bool) -> None:
        found, below = self._found, change.below
        parts = change.path.split("/")
        if any("\ud800" <= letter <= "\udfff" for letter in change.path):
            found.refused = "it changed a file whose name is not UTF-8"
        elif parts[0] == ".git" and len(parts) > 1:
            read_git(self._root, change, found.begun, found.git, found.folder)
        elif ".git" in parts:
            if change.kind != "folder" or below is None:
                found.git.refused = change.path
        elif below is not None and below.st_ctime_ns >= found.begun and path not in self._laid_in:
            found.conflicts.append(path)
        elif change.kind != "deleted" and _replaces_kind(change):
            found.refused = f"it replaced {change.path} by something of another kind"
        elif change.kind == "folder":
            if below is None and is_empty:
                found.folders.append(path)
        elif change.kind == "special":
            found.dropped.append(path)
        elif change.kind == "deleted":
            self._read_deletion(change.path)
        elif change.kind == "symlink":
            stored = found.folder.take(self._root, change.path)
            found.files.append(TakenFile(self._root, change.path, identity(change), stored))
        elif change.kind == "file":
            self._read_file(path, change)

    def _read_file(self, path: Path, change: Change) -> None:
        found = self._found
        stored = found.folder.take(self._root, change.path)
        size = stored.lstat().st_size
        what = TOO_LARGE if size > MAX_BYTES else ""
        taken = TakenFile(self._root, change.path, identity(change), stored, what)
        if change.below is not None and not stat.S_ISREG(change.below.st_mode):
            found.files.append(taken)
            return
        try:
            if size > MAX_BYTES:
                raise ToolError("It is too big.")
            text, encoding = decode(_content(stored), path)
        except (ToolError, OSError):
            found.files.append(taken)
            return
        found.bytes += size
        if found.bytes > MAX_BYTES:
            found.refused = f"it changed more than {MAX_BYTES >> 20} MB of text"
            return
        found.texts[path] = NewText(taken, text, encoding, change.mode)

    def _read_deletion(self, name: str) -> None:
        """A folder is deleted with all that was in it, each file by itself."""
        found = self._found
        for path in _files_in(self._root.path / name):
            if ".git" in path.parts[len(self._root.path.parts) :]:
                found.refused = "it deleted a repository"
                return
            status = path.lstat()
            inner = path.relative_to(self._root.path).as_posix()
            if len(found.texts) + len(found.files) > MAX_CHANGES:
                found.refused = f"it changed more than {MAX_CHANGES} files"
                return
            if stat.S_ISDIR(status.st_mode):
                found.emptied.append(path)
            elif status.st_ctime_ns >= found.begun:
                found.conflicts.append(path)
            elif stat.S_ISREG(status.st_mode):
                below = (status.st_ino, status.st_ctime_ns)
                found.texts[path] = NewText(TakenFile(self._root, inner, below, None), None)
            else:
                below = (status.st_ino, status.st_ctime_ns)
                found.files.append(TakenFile(self._root, inner, below, None))


def _replaces_kind(change: Change) -> bool:
    """Whether a folder takes the place of a file, or a file of a folder."""
    return change.below is not None and stat.S_ISDIR(change.below.st_mode) != (change.kind == "folder")


def _files_in(path: Path) -> Iterator[Path]:
    """That path, and all below it where it is a folder, the innermost first."""
    if path.is_dir() and not path.is_symlink():
        for folder, folders, names in os.walk(path, topdown=False):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            yield from (Path(folder, name) for name in (*names, *links))
            yield Path(folder)
    else:
        yield path


def _content(path: Path) -> bytes:
    with opened_folder(path.parent) as folder, opened_file(path.name, folder) as file:
        return b"".join(iter(lambda: os.read(file, 1 << 20), b""))
