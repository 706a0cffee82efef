"""One command in a session's layer: what it finds there, and what it changed."""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.core.place import Place
from amanu.core.tool import CallContext, Subject, ToolError
from amanu.proposals.model import FileEdit
from amanu.proposals.proposals import Proposals
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.layer import Layer
from amanu.storage.file_store import FileStore
from amanu.system.folder_list import list_folder
from amanu.tools.shell.git_changes import describe
from amanu.tools.shell.layer_changes import (
    EXECUTABLE,
    MAX_CHANGES,
    OTHER_ENCODING,
    TOO_LARGE,
    FoundChanges,
    LaidIn,
    LayerChanges,
    NewText,
    read_layer,
)
from amanu.tools.shell.layer_contents import drop, put_back
from amanu.tools.shell.renames import renamed_edits, split_renames, with_renames
from amanu.tools.shell.row_changes import bit_rows, file_rows, folder_rows
from amanu.tools.shell.row_trees import TreeRefused, tree_row
from amanu.tools.shell.taken_files import TakenFile, TakenFolder
from amanu.workspace.encodings import decode_as, encode, is_guess, same_bytes
from amanu.workspace.git.refs import RepositoryLook
from amanu.workspace.replacement import Identity
from amanu.workspace.text_file import FileText

_TICK = 0.002
_MOST_TOUCHED = 2_000


@dataclass(frozen=True)
class Filled:
    """A drafted row, as a layer has it."""

    digest: str
    content: tuple[int, int, int, int] | None
    """The value of `content()` for it; None for a deletion or a folder."""
    tree: str = ""
    """The id of a folder with all that is in it; "" for anything else."""


@dataclass(frozen=True)
class View:
    """What a command finds in the layer."""

    laid_in: dict[Path, FileText | None]
    """None: it was deleted."""
    drafted: Sequence[RowChange]
    """The drafted changes besides text; a rename as its two parts."""
    renames: Sequence[RowChange]
    """The drafted renames of what is not text."""
    filled: dict[Path, Filled]
    """Path → the drafted row that the layer has there; kept up to date with the layer."""
    touched: dict[Path, Identity]
    """Path of a file that is the same in layer and workspace, but for its times → the identity of the workspace's file;
    likewise kept up to date."""
    ignored: Collection[Path]
    """Paths that earlier commands left in the layer and that git ignores."""
    place: Place


class LayeredRun:
    """One command in the layer."""

    def __init__(self, layer: Layer, proposals: Proposals, store: FileStore, view: View, call: CallContext) -> None:
        self.folder = layer.folder
        self.changes: LayerChanges | None = None
        """What `read` returned."""
        self.is_clean = True
        """Whether nothing is left in the layer but what is ignored or drafted."""
        self.layer = layer
        self._proposals = proposals
        self._store = store
        self.place = view.place
        self._view = view
        self._laid_in = view.laid_in
        self._call = call
        self.taken = TakenFolder(layer.folder)
        """The folder of the files taken out; to be removed once the changes are described."""
        self._begun = _tick()

    def forget(self) -> None:
        """Nobody reads what it changes; the layer is of no further use."""
        self.changes = LayerChanges()
        self.is_clean = False

    async def describe_git(
        self, changes: LayerChanges, looks: Mapping[Path, RepositoryLook | None], *, adds: bool
    ) -> None:
        """See `describe`."""
        await asyncio.to_thread(describe, changes.git, looks, self._store, adds=adds)

    async def read(self) -> LayerChanges:
        """The command's changes, once it has ended. They are taken out of the layer. What git ignores stays there, and
        so does what was drafted and is unchanged. Raises `LayerError`, `OSError`."""
        found = FoundChanges(self.taken, self._begun)
        try:
            filled = self._view.filled
            trees = {path for path, each in filled.items() if each.tree}
            await asyncio.to_thread(read_layer, self.layer, LaidIn(self._laid_in, [*filled], trees), found)
            changes, executable = await self._compared(found)
            drafts = frozenset(path for path in found.paths if self._proposals.drafts.has(path))
            self.changes = await asyncio.to_thread(self._with_rows, changes, found, executable, drafts)
        except BaseException:
            self.is_clean = False
            raise
        self.is_clean = found.is_complete
        return self.changes

    def _with_rows(
        self, changes: LayerChanges, found: FoundChanges, executable: Mapping[Path, bool], drafts: Collection[Path]
    ) -> LayerChanges:
        """The changes, with those that no hunk shows and that are not drafted already. `drafts`: the files with drafted
        text. Blocking."""
        filled, drafted = self._view.filled, {row.key: row for row in self._view.drafted}
        same = [file for file in found.files if file.path in filled and filled[file.path].content == _content(file)]
        same_trees = self._take_changed_trees(found)
        trees, refused = ([], changes.refused) if changes.refused else self._tree_rows(found)
        left = [path for path in found.paths if path not in found.folders or path not in filled]
        drop(self.layer, [*left, *self._dropped(found.same)])
        put_back(self.layer, same)
        kept = {*(file.path for file in same), *same_trees, *(path for path in filled if path in found.folders)}
        for path in [path for path in filled if path not in kept]:
            del filled[path]
        stored, unstored = file_rows([file for file in found.files if file not in same], self._store)
        deletes = any(row.kind == "deletion" for row in stored) or any(edit.text is None for edit in changes.edits)
        if unstored and (changes.git.needs_decision or deletes):  # what is deleted may be all that is in the new file
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rows = [
            *stored,
            *bit_rows(executable),
            *folder_rows(found.folders, found.emptied),
            *trees,
        ]
        there = {row.key for row in rows} | {("path", path) for path in kept}
        unread = {*changes.conflicts, *unstored}
        gone = [key for key in drafted if key not in there and key[1] not in unread]
        fresh = [row for row in rows if row.key not in drafted or drafted[row.key].after != row.after]
        split, left = split_renames(self._view.renames, {*gone, *(row.key for row in fresh)})
        known = drafted.keys() - {part.key for row in split for part in row.parts}
        rows = with_renames(
            [*fresh, *left],
            lambda row: row.key not in known and row.path not in drafts and not self._is_guarded(row.path),
        )
        # a rename has the key of its deletion; the key of its new file names no row to drop
        gone = [key for key in gone if not any(key == row.parts[1].key for row in split)]
        seen = {key: row.digest for key, row in drafted.items()}
        return replace(changes, rows=rows, gone=gone, seen=seen, unstored=unstored, refused=refused)

    def _dropped(self, same: Sequence[Path]) -> Sequence[Path]:
        """The paths among these that need not stay in the layer. A file stays until somebody changes it in the
        workspace, since the next command may look at its times; but if there are too many, none stays, since each is
        compared again after each command."""
        folders = [path for path in same if os.path.isdir(self._upper(path))]  # noqa: PTH112 (often)
        files = {*same}.difference(folders)
        self._view.touched.clear()
        if len(files) > _MOST_TOUCHED:
            return same
        for path in files:
            with contextlib.suppress(OSError):  # it has just been deleted
                found = path.lstat()
                self._view.touched[path] = found.st_ino, found.st_ctime_ns
        return [*folders, *(path for path in files if path not in self._view.touched)]

    def _upper(self, path: Path) -> Path:
        root, name = self.layer.place(path)
        return root.upper / name

    def _is_guarded(self, path: Path) -> bool:
        return protected.is_guarded(self.layer.place(path)[1])

    def _take_changed_trees(self, found: FoundChanges) -> list[Path]:
        """Take the drafted trees that the command has changed out of the layer. Returns those that it left alone."""
        same: list[Path] = []
        for path in found.drafted_trees:
            root, name = self.layer.place(path)
            listing = list_folder(root.upper / name, tidy=True)
            found.dropped += (path / each for each in listing.dropped)
            if listing.changed < self._begun and self._store.is_listed(self._view.filled[path].tree, listing):
                same.append(path)
            else:
                found.trees.append(TakenFile(root, name, None, found.folder.take(root, name)))
        return same

    def _tree_rows(self, found: FoundChanges) -> tuple[list[RowChange], str]:
        """The rows of the new folders; and why they cannot be decided on as a whole, "" if they can."""
        if found.trees and found.git.files:  # a commit could not tell that it needs them
            return [], f"it changed the repository and more than {MAX_CHANGES} files"
        try:
            return [tree_row(tree, self._store, self._guarded, found.dropped) for tree in found.trees], ""
        except TreeRefused as refusal:
            return [], str(refusal)

    def _guarded(self, folder: Path, paths: Iterable[str]) -> list[str]:
        """See `tree_row`."""
        top = self._proposals.relative(folder)
        names = chain([top], (f"{top}/{path}" for path in paths))
        subjects = self._call.guarded(Subject("write_file", "write", name) for name in names)
        return [subject.text for subject in subjects]

    async def _base(self, path: Path) -> FileText:
        """What the command's version of the file is compared with."""
        if self.place.finds == "saved":
            return await self._proposals.text_without_edits(path)
        return await self._proposals.text_for_command(self._call, path)

    async def _compared(self, found: FoundChanges) -> tuple[LayerChanges, Mapping[Path, bool]]:
        """The changes to text files, compared with what the user sees now, and to their executable bits. Adds to
        `found` the files that turn out not to be text."""
        edits: list[FileEdit] = []
        moved = [*found.conflicts]
        executable: dict[Path, bool] = {}
        refused = found.refused
        for path, new in found.texts.items():
            if self.place.finds == "saved" and self._proposals.drafts.has(path):
                refused = refused or f"it changed {self._proposals.relative(path)}, which has an open draft"
                continue
            try:
                base = await self._base(path)
            except ToolError:  # what it was is no text
                found.files.append(new.file)
                continue
            laid = self._laid_in.get(path)
            if path in self._laid_in and base.text != ("" if laid is None else laid.text):
                if new.text != (None if laid is None else laid.text):
                    moved.append(path)
                    continue
                new = replace(new, text=base.text if base.exists or base.from_buffer else None)  # it left it alone
            text, taken = self._text(path, new, base, found)
            if taken is not None:
                found.files.append(taken)
                continue
            if new.text is not None and bool(new.mode & EXECUTABLE) != bool((base.mode or 0) & EXECUTABLE):
                executable[path] = bool(new.mode & EXECUTABLE)
                if protected.is_guarded(new.file.name):
                    refused = refused or f"it changed whether {new.file.name} is executable"
            is_new = not (base.exists or base.from_buffer)
            if is_new:  # the command has chosen its encoding
                base = replace(base, encoding=new.encoding)
            if text != (None if is_new else base.text):
                edits.append(FileEdit(base, text))
        edits, executable = await self._renamed(edits, executable, found)
        denied = self._denied(list(executable))
        changes = LayerChanges(
            edits,
            denied=denied,
            dropped=found.dropped,
            ignored=found.ignored,
            ignored_before=self._view.ignored,
            conflicts=moved,
            git=found.git,
            refused=refused,
            begun=self._begun,
        )
        return changes, {path: is_set for path, is_set in executable.items() if path not in denied}

    def _text(
        self, path: Path, new: NewText, base: FileText, found: FoundChanges
    ) -> tuple[str | None, TakenFile | None]:
        """The text that the file gets, in the encoding of `base`; or the file, if it is to be a row."""
        text = new.text
        if text is None:
            return None, new.file if self._is_moved_whole(path, base, found) else None
        if (base.exists or base.from_buffer) and new.encoding != base.encoding:
            is_other = not is_guess(new.encoding) and not same_bytes(new.encoding, base.encoding)
            read = None if is_other else decode_as(encode(text, new.encoding), base.encoding)
            text = read[0] if read is not None and read[1] == base.encoding else None
        return text, replace(new.file, what=OTHER_ENCODING) if text is None else None

    def _is_moved_whole(self, path: Path, base: FileText, found: FoundChanges) -> bool:
        """Whether the deletion of this text is to be a row: its rename as a file too large to show is drafted, or
        possible."""
        if (filled := self._view.filled.get(path)) is not None:
            return filled.content is None
        if base.unsaved or path in self._laid_in:
            return False
        made = [file.stored for file in found.files if file.what == TOO_LARGE and file.below is None]
        sizes = {stored.lstat().st_size for stored in made if stored is not None}
        with contextlib.suppress(OSError):
            return bool(sizes) and path.lstat().st_size in sizes
        return False

    async def _renamed(
        self, edits: Sequence[FileEdit], executable: Mapping[Path, bool], found: FoundChanges
    ) -> tuple[list[FileEdit], dict[Path, bool]]:
        """The edits, with renames; and the executable bits, without those of renamed files."""
        eligible = {edit.base.path for edit in edits if self._is_renamable(edit)}
        renamed = await asyncio.to_thread(renamed_edits, edits, found.texts, lambda edit: edit.base.path in eligible)
        moved = {edit.new_path for edit in renamed}
        return renamed, {path: is_set for path, is_set in executable.items() if path not in moved}

    def _is_renamable(self, edit: FileEdit) -> bool:
        """Whether the file is deleted or made in a way that a rename can stand for."""
        base, pending = edit.base, self._proposals.pending(self._call, edit.base.path)
        if self._is_guarded(base.path):
            return False
        if edit.text is not None:
            return not base.exists and not base.from_buffer and pending is None
        return not base.unsaved and (pending is None or pending.change != "create")

    def _denied(self, paths: Sequence[Path]) -> Sequence[Path]:
        """The paths that a rule denies the call to write."""
        writes = {path: Subject("write_file", "write", self._proposals.relative(path)) for path in paths}
        forbidden = {subject.text for subject in self._call.denied(writes.values())}
        return [path for path, subject in writes.items() if subject.text in forbidden]


def _tick() -> int:
    """The time in nanoseconds as file systems note it: what changes from now on is noted as later than what was changed
    before."""
    clock = getattr(time, "CLOCK_REALTIME_COARSE", 5)  # Linux's number of it
    begun = time.clock_gettime_ns(clock)
    while (now := time.clock_gettime_ns(clock)) == begun:
        time.sleep(_TICK)
    return now


def _content(file: TakenFile) -> tuple[int, int, int, int] | None:
    return None if file.stored is None else content(file.stored)


def content(path: Path) -> tuple[int, int, int, int]:
    """A value that differs when the file is replaced or changed, but not when it is moved."""
    status = path.lstat()
    return status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode
