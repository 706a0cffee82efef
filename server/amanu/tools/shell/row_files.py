"""Brings rows into the workspace, and takes them back: each row by itself, as a whole or not at all, even if the
daemon is killed in the middle (see `sandbox/layers/redo.py`)."""

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from amanu.core.tool import Subject
from amanu.proposals.apply import target_made
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, FILE_MADE
from amanu.proposals.rows import LiveRow, RowChange, RowStep
from amanu.sandbox.layers.apply import ApplyError, Batch, WorkspaceChanged
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import set_executable
from amanu.sandbox.layers.trees import TreeMove
from amanu.sandbox.sandbox import Sandbox
from amanu.storage.file_store import Damaged, FileStore
from amanu.system.folder_list import list_folder, listed_paths
from amanu.text.amounts import plural
from amanu.text.display import all_files, file_list, one_line
from amanu.tools.shell.git_changes import GitChanges, apply_git, git_batches, git_fault
from amanu.tools.shell.held_files import HeldFile, HeldFolder
from amanu.tools.shell.layer_contents import make_folders, remove_folders
from amanu.tools.shell.row_changes import put_version, version_at
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Line, RowVersion

_DENIED = "A rule denies this change."
_LOST = "Amanu's copy of this file is missing or damaged. Ask for the change again."
_LOST_TREE = "Amanu's copy of this folder is missing or damaged. Ask for the change again."
_DENIED_IN_IT = "A rule denies something in this folder."
_NO_UNDO = "Amanu cannot undo this change."


@dataclass(frozen=True)
class GitRow:
    """Changes of repositories; each repository is changed as a whole or not at all."""

    changes: GitChanges
    folder: HeldFolder

    @property
    def committed(self) -> Collection[Path]:
        return self.changes.paths

    def batches(self) -> list[Batch]:
        return git_batches(self.changes, self.folder)


def git_row(changes: GitChanges, folder: HeldFolder) -> RowChange:
    texts = [*changes.commits]
    texts += [f"Files committed: {all_files(changes.committed)}"] if changes.committed else []
    texts += changes.moves
    title = plural(len(changes.commits), "commit") if changes.commits else "the git repository changes"
    lines = [Line(tone="warning", text=text) for text in texts]
    return RowChange("git", changes.files[0].root.path, None, None, title, lines, git=GitRow(changes, folder))


class StoredRows:
    """Brings one session's rows into the workspace, and takes them back. `denied` picks the subjects that a rule
    denies, whatever the mode."""

    def __init__(
        self,
        workspace: Workspace,
        sandbox: Sandbox,
        store: FileStore,
        denied: Callable[[Iterable[Subject]], Sequence[Subject]],
    ) -> None:
        self._workspace = workspace
        self._sandbox = sandbox
        self._store = store
        self._denied = denied

    async def faults(self, rows: Sequence[LiveRow], gone: Collection[Path] = ()) -> Mapping[str, str]:
        """See `RowFiles`."""
        removed = {*gone, *(step.path for row in rows for step in row.steps if step.new is None)}

        def look() -> dict[str, str]:
            found = {row.row_id: self._look(row).fault or self._damage(row) or _left_in(row, removed) for row in rows}
            return {row_id: fault for row_id, fault in found.items() if fault}

        return await asyncio.to_thread(look)

    async def carry_out(self, rows: Sequence[LiveRow]) -> Mapping[str, str]:
        """See `RowFiles`."""
        return await asyncio.to_thread(self._carry_out, rows)

    async def is_done(self, row: LiveRow) -> bool:
        """See `RowFiles`."""
        await self._sandbox.proved()  # by then, what a killed daemon left half done is finished
        return row.change.kind != "git" and await asyncio.to_thread(self._is_done, row)

    @asynccontextmanager
    async def exclusive(self, rows: Sequence[LiveRow]) -> AsyncGenerator[None]:
        """See `RowFiles`."""
        parts = [row.change.git for row in rows]
        roots = {file.root.path for part in parts if isinstance(part, GitRow) for file in part.changes.files}
        async with AsyncExitStack() as stack:
            for root in sorted(roots):
                await stack.enter_async_context(self._sandbox.repository_lock(root))
            yield

    def _look(self, row: LiveRow) -> "_Look":
        """The workspace at the row's paths, and why the row cannot be carried out there now. Blocking."""
        change = row.change
        if isinstance(change.git, GitRow) and row.state != "undoing":
            return _Look(git_fault(change.git.batches()))
        if change.kind == "git":
            return _Look(_NO_UNDO)
        found: dict[Path, tuple[int, int]] = {}
        for step in row.steps:
            look = self._look_at(row, step)
            if look.fault:
                is_taken = change.new_path is not None and look.fault == FILE_MADE
                return _Look(target_made(self._workspace, step.path)) if is_taken else look
            found |= look.identities
        return _Look("", found)

    def _look_at(self, row: LiveRow, step: RowStep) -> "_Look":
        path, old, new = step
        if row.state != "undoing" and self._denied(self._writes(path, deletes=new is None)):
            return _Look(_DENIED)
        if row.change.kind == "mode":
            is_undone_with_text = row.state == "undoing" and new is None and not os.path.lexists(path)
            return _Look("" if old is None or is_undone_with_text else self._mode_fault(path, old))
        if (above := _obstacle(path)) is not None:
            return _Look(f"{one_line(self._workspace.display_path(above))} is no folder now.")
        if new is not None and new.kind == "file" and not self._store.has(new.file_id):
            return _Look(_NO_UNDO if row.state == "undoing" else _LOST)
        if row.change.is_tree:
            return self._look_at_tree(row.change, is_undone=row.state == "undoing")
        if new is not None and new.kind == "folder":
            is_free = _is_folder(path) or not os.path.lexists(path)
            return _Look("" if is_free else FILE_MADE)
        return self._difference(row.change, path, old)

    def _look_at_tree(self, change: RowChange, *, is_undone: bool) -> "_Look":
        assert change.after is not None
        file_id, is_there = change.after.file_id, os.path.lexists(change.path)
        if is_undone:
            return _Look(FILE_GONE if not is_there else "" if self._has_tree(change) else FILE_CHANGED)
        if is_there:
            return _Look(FILE_MADE)
        try:
            names = [
                f"{self._workspace.relative(change.path)}/{path}" for path in listed_paths(self._store.listed(file_id))
            ]
        except Damaged:
            return _Look(_LOST_TREE)
        if self._denied(Subject("write_file", "write", name) for name in names):
            return _Look(_DENIED_IN_IT)
        return _Look("" if self._store.has(file_id) else _LOST_TREE)

    def _has_tree(self, change: RowChange) -> bool:
        """Whether the workspace has that new folder, with all that is in it."""
        if change.after is None or not _is_folder(change.path):
            return False
        try:
            return self._store.is_listed(change.after.file_id, list_folder(change.path))
        except OSError:
            return False

    def _damage(self, row: LiveRow) -> str:
        """Why what is kept for the row is not what it was; "" if it is. Blocking."""
        _, new = row.sides
        if new is None or not new.file_id or row.change.kind == "mode" or self._store.is_whole(new.file_id):
            return ""
        return _LOST_TREE if new.kind == "folder" else _LOST

    def _mode_fault(self, path: Path, old: RowVersion) -> str:
        try:
            found = path.lstat()
        except OSError:
            return FILE_GONE
        same = stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111) == old.executable
        return "" if same else FILE_CHANGED

    def _difference(self, change: RowChange, path: Path, expected: RowVersion | None) -> "_Look":
        """The workspace at the path; a fault if it does not have there what is expected."""
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return _Look("" if expected is None else FILE_GONE)
        except OSError as error:
            return _Look(f"{error.strerror}.")
        if expected is None:
            return _Look(FILE_MADE)
        identity = found.st_ino, found.st_ctime_ns  # before it is read: a save in between makes another one
        if path == change.path and change.identity == identity and expected == change.before:
            return _Look("", {path: identity})
        return _Look("" if _is_same(version_at(path), expected) else FILE_CHANGED, {path: identity})

    def _is_done(self, row: LiveRow) -> bool:
        with contextlib.suppress(OSError):
            if row.change.kind == "mode":
                (_, new), found = row.sides, version_at(row.change.path)
                return found is not None and new is not None and found.executable == new.executable
            if row.change.is_tree and row.state != "undoing":
                return self._has_tree(row.change)
            return all(_is_same(version_at(step.path), step.new) for step in row.steps)
        return False

    def _carry_out(self, rows: Sequence[LiveRow]) -> dict[str, str]:
        looks = {row.row_id: self._look(row) for row in rows}
        faults = {row_id: look.fault for row_id, look in looks.items() if look.fault}
        rows = [row for row in rows if row.row_id not in faults]
        try:
            layer = self._sandbox.create_layer([self._workspace.guard.real(root) for root in self._workspace.roots])
        except (LayerError, OSError) as error:
            return faults | {row.row_id: explained(error) for row in rows}
        try:
            return faults | self._apply(rows, layer, looks)
        except (LayerError, OSError) as error:
            return faults | {row.row_id: explained(error) for row in rows}
        finally:
            with contextlib.suppress(LayerError, OSError):
                layer.remove()

    def _apply(self, rows: Sequence[LiveRow], layer: Layer, looks: Mapping[str, "_Look"]) -> dict[str, str]:
        faults: dict[str, str] = {}
        folder = HeldFolder(layer.folder / "held" / token_hex(8))
        moves: list[tuple[LiveRow, Batch]] = []
        made: dict[Path, LiveRow] = {}
        removed: dict[Path, LiveRow] = {}
        bits: dict[Path, LiveRow] = {}
        parts: list[tuple[LiveRow, GitRow]] = []
        trees: list[tuple[LiveRow, TreeMove]] = []
        for row in rows:
            change, (old, new) = row.change, row.sides
            if isinstance(change.git, GitRow):
                parts.append((row, change.git))
            elif change.kind == "mode":
                bits |= {change.path: row} if os.path.lexists(change.path) else {}
            elif change.is_tree:
                if fault := self._damage(row):
                    faults[row.row_id] = fault
                else:
                    trees.append((row, self._tree_move(row, layer)))
            elif new is not None and new.kind == "folder":
                made[change.path] = row
            elif old is not None and old.kind == "folder":
                removed[change.path] = row
            else:
                try:
                    found = looks[row.row_id].identities
                    steps = [self._move(step, layer, folder, found.get(step.path)) for step in row.steps]
                    moves.append((row, folder.batch(steps)))
                except Damaged:
                    faults[row.row_id] = _NO_UNDO if row.state == "undoing" else _LOST
        faults |= {made[path].row_id: why for path, why in make_folders([*made]).items()}
        batches = [(row, batch) for row, part in parts for batch in part.batches()]
        executable = {path: _sets(row) for path, row in bits.items()}
        all_batches, tree_moves = [batch for _, batch in (*moves, *batches)], [move for _, move in trees]
        with noted(layer.folder, all_batches, executable=executable, trees=tree_moves):
            unset = set_executable(layer, executable) if executable else {}
            faults |= {bits[path].row_id: explained(error) for path, error in unset.items()}
            for row, batch in (*trees, *moves):
                try:
                    batch.apply()
                except WorkspaceChanged:
                    faults[row.row_id] = FILE_MADE if row.change.is_tree else FILE_CHANGED
                except ApplyError as error:
                    faults[row.row_id] = str(error)
            missing = {path for row in rows if row.row_id in faults for path in row.change.paths}
            for row, part in parts:
                if lost := missing.intersection(part.committed):
                    names = file_list([self._workspace.display_path(path) for path in sorted(lost)])
                    faults[row.row_id] = f"This needs what could not be applied: {names}."
            for row, batch in batches:
                if row.row_id not in faults and (fault := apply_git(batch)):
                    faults[row.row_id] = fault
        innermost_first = sorted(removed, key=lambda path: -len(path.parts))
        faults |= {removed[path].row_id: why for path, why in remove_folders(innermost_first).items()}
        remove_folders(_made_above([row for row in rows if row.row_id not in faults]))
        return faults

    def _move(self, step: RowStep, layer: Layer, folder: HeldFolder, found: tuple[int, int] | None) -> HeldFile:
        """The move that carries the step out. `found`: inode and ctime of what is there. Raises `OSError`,
        `Damaged`."""
        root, name = layer.place(step.path)
        stored = None if step.new is None else put_version(step.new, folder, self._store)
        return HeldFile(root, name, found, stored)

    def _tree_move(self, row: LiveRow, layer: Layer) -> TreeMove:
        assert row.change.after is not None
        root, name = layer.place(row.change.path)
        stored = self._store.path(row.change.after.file_id)
        return TreeMove(root, name, stored, row.state != "undoing", token_hex(8))

    def _writes(self, path: Path, *, deletes: bool) -> list[Subject]:
        name, tool = self._workspace.relative(path), "delete_file" if deletes else "write_file"
        return [Subject(tool, "write", text) for text in (name, f"{name}/x")]


@dataclass(frozen=True)
class _Look:
    """The workspace at a row's paths."""

    fault: str = ""
    """Why the row does not fit; "" if it does."""
    identities: Mapping[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])
    """Inode and ctime of what is there, by path."""


def _left_in(row: LiveRow, removed: Collection[Path]) -> str:
    """Why the folder that the row removes cannot be removed along with `removed`; "" if it can."""
    old, new = row.sides
    if old is None or old.kind != "folder" or new is not None or row.change.is_tree:
        return ""
    with contextlib.suppress(OSError), os.scandir(row.change.path) as entries:
        if any(Path(entry.path) not in removed for entry in entries):
            return f"{os.strerror(errno.ENOTEMPTY)}."
    return ""


def _made_above(rows: Iterable[LiveRow]) -> list[Path]:
    """The folders that were made for rows that are undone, innermost first. They may hold other things by now."""
    undone = [(row.change.paths[-1], row.change.after) for row in rows if row.state == "undoing"]
    folders = {above for path, after in undone if after is not None for above in [*path.parents][: after.made_above]}
    return sorted(folders, key=lambda path: -len(path.parts))


def _obstacle(path: Path) -> Path | None:
    """The file or link that stands where a folder above the path would be; None for none."""
    return next((above for above in path.parents if os.path.lexists(above) and not _is_folder(above)), None)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _sets(row: LiveRow) -> bool:
    _, new = row.sides
    return new is not None and new.executable


def _is_same(found: RowVersion | None, expected: RowVersion | None) -> bool:
    """Whether both are the same but for permission bits."""
    if found is None or expected is None:
        return found is expected
    left, right = (_without_mode(each) for each in (found, expected))
    return left == right and (found.kind != "file" or bool(found.file_id))


def _without_mode(version: RowVersion) -> RowVersion:
    return version.model_copy(update={"mode": 0, "picture": None, "media_type": "", "made_above": 0})
