"""The changes that a decision makes to what is no text, compared with the workspace as it is now."""

import asyncio
import contextlib
import copy
import errno
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amanu.core.tool import Subject, ToolError
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, FILE_MADE
from amanu.proposals.rows import NOT_KEPT, LiveRow, RowChange, RowKey, RowStep
from amanu.proposals.text_plan import target_made
from amanu.proposals.tree_move import TreeMove
from amanu.storage.file_store import Damaged, FileStore
from amanu.system.folder_list import differing_paths, list_folder, listed_paths
from amanu.text.display import file_list, one_line
from amanu.workspace import disk
from amanu.workspace.disk_changes import (
    COMMITTED,
    DiskChange,
    ExecutableBits,
    FolderRemoval,
    NewFolder,
    StagedChange,
    Staging,
)
from amanu.workspace.git.apply import DoesNotFit, Prepared, fault, is_begun, is_done, prepared, release, was_made
from amanu.workspace.git.change import RepositoryChange
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.replacement import Identity, Replacement
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import RowVersion

Standing = Literal["before", "after", "between", "other"]
"""The state of the workspace: before a change, after it, in the middle of it, or something else."""

_TYPED = "The file has unsaved changes in an editor. Save or undo them there, then try again."
DENIED = "A rule denies this change."
_LOST = "Amanu's copy of this file is missing or damaged. Ask for the change again."
_LOST_TREE = "Amanu's copy of this folder is missing or damaged. Ask for the change again."
_LOST_COMMIT = "Amanu's copy of this change to the repository is missing or damaged. Ask for the change again."
_DENIED_IN_IT = "A rule denies something in this folder."
_NO_UNDO = "Amanu cannot undo this change."
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


GoneTexts = Mapping[Path, Path | None]
"""Path of a text file that is removed or moved away → the path it is moved to; None if it is removed."""


@dataclass(frozen=True)
class RowPlan:
    """A row that is `accepted` or `undoing`, and the changes that carry it out."""

    row: LiveRow
    fault: str = ""
    """Why it does not fit, as a sentence; "" if it does."""
    changes: Sequence[DiskChange] = ()


class RowPlanner:
    """Plans one session's rows. `denied` picks the subjects that a rule denies, whatever the mode; `repository_lock`
    keeps other sessions from changing a repository; `published` returns the commits of a change if any of them was
    pushed, and None if it cannot tell."""

    def __init__(
        self,
        workspace: Workspace,
        store: FileStore,
        denied: Callable[[Iterable[Subject]], Sequence[Subject]],
        repository_lock: Callable[[Path], AbstractAsyncContextManager[None]],
        published: Callable[[RepositoryChange], Awaitable[Collection[str] | None]],
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._denied = denied
        self._repository_lock = repository_lock
        self._published = published
        self._assumed: Mapping[RowKey, RowVersion | None] = {}

    def assuming(self, versions: Mapping[RowKey, RowVersion | None]) -> "RowPlanner":
        """A planner for a workspace with these versions; for keys of the kind "mode", only their bits count."""
        other = copy.copy(self)
        other._assumed = versions
        return other

    async def faults(self, rows: Sequence[LiveRow], gone: GoneTexts) -> Mapping[str, str]:
        """Row id → why it does not fit the workspace as it is now, as a sentence; only rows that do not fit. `gone`:
        text files that are removed or moved together with these rows."""
        return {plan.row.row_id: plan.fault for plan in await self.plans(rows, gone) if plan.fault}

    async def plans(self, rows: Sequence[LiveRow], gone: GoneTexts) -> list[RowPlan]:
        """The plan of each row; `gone` as in `faults`."""
        plans = [self._unless_typed(plan) for plan in await asyncio.to_thread(self._plans, rows, gone)]
        undone = [
            plan for plan in plans if not plan.fault and plan.row.state == "undoing" and plan.row.change.kind == "git"
        ]
        faults = {plan.row.row_id: await self._published_fault(plan.row) for plan in undone}
        return [replace(plan, fault=plan.fault or faults.get(plan.row.row_id, "")) for plan in plans]

    @asynccontextmanager
    async def exclusive(self, rows: Sequence[LiveRow]) -> AsyncGenerator[None]:
        """A context in which no other session changes the repositories that these rows change."""
        roots = {row.change.path for row in rows if row.change.kind == "git"}
        async with AsyncExitStack() as stack:
            for root in sorted(roots):
                await stack.enter_async_context(self._repository_lock(root))
            yield

    def _plans(self, rows: Sequence[LiveRow], gone: GoneTexts) -> list[RowPlan]:
        removed = {*gone, *(step.path for row in rows for step in row.steps if step.new is None)}
        plans = [self._plan(row, gone) for row in rows]
        return [RowPlan(plan.row, plan.fault or _left_in(plan.row, removed), plan.changes) for plan in plans]

    def is_denied(self, path: Path, *, deletes: bool) -> bool:
        """Whether a rule denies writing or deleting what is at that path."""
        if self._workspace.guard.is_admitted(path):
            return False
        name, tool = self._workspace.relative(path), "delete_file" if deletes else "write_file"
        return bool(self._denied(Subject(tool, "write", text) for text in (name, f"{name}/x")))

    def standing(self, row: LiveRow) -> Standing:
        """The state of the workspace, as far as the row is about it. Blocking."""
        if row.change.kind == "git":
            return self._standing_of_repository(row)
        try:
            found: set[Standing] = {self._standing(row, step) for step in row.steps}
        except (OSError, ToolError):
            return "other"
        return found.pop() if len(found) == 1 else "other" if "other" in found else "between"

    def changes_left(self, row: LiveRow) -> list[DiskChange]:
        """The changes that a killed daemon has not made. Blocking."""
        return [self._change(row, step) for step in row.steps if self._standing(row, step) == "before"]

    def file_in_tree(self, tree: RowChange, path: Path) -> disk.StoredFile | None:
        """The file of a new folder, from the store; None if the folder is in the workspace by now. Raises `ToolError`.
        Blocks."""
        assert tree.after is not None
        kept_at = self._store.path(tree.after.file_id)
        found = disk.read(PathGuard([tree.path], kept_at=[kept_at]), path)
        if found is None and kept_at.is_dir():
            name, folder = map(self._workspace.display_path, (path, tree.path))
            raise ToolError(f"There is no file {name} in the drafted new folder {folder}.", "Use a command to list it.")
        return found

    def repository_change(self, row: LiveRow) -> RepositoryChange:
        """The change that a row of a repository stands for. Raises `ToolError`. Blocking."""
        after, undoes = row.change.after, row.state == "undoing"
        if after is None:  # an older Amanu kept nothing
            raise ToolError(_NO_UNDO if undoes else NOT_KEPT)
        try:
            return RepositoryChange.decode(self._store.read(after.file_id))
        except (Damaged, ValueError):
            raise ToolError(_LOST_COMMIT) from None

    @contextmanager
    def prepared(self, row: LiveRow) -> Generator[Prepared]:
        """See `workspace.git.apply.prepared`. Raises `ToolError`. Blocking."""
        change = self.repository_change(row)
        try:
            with prepared(change, self._store, undo=row.state == "undoing") as ready:
                yield ready
        except DoesNotFit as error:
            raise ToolError(str(error)) from None
        except OSError as error:
            raise ToolError(disk.failure_message("change", row.change.path / ".git", error)) from None

    def _repository_fault(self, row: LiveRow) -> str:
        try:
            change, undoes = self.repository_change(row), row.state == "undoing"
        except ToolError as error:
            return str(error)
        if not undoes and any(self.is_denied(path, deletes=False) for path in change.paths):
            return DENIED
        if not undoes and not all(map(self._store.has, change.objects.values())):
            return _LOST_COMMIT
        return fault(change, undo=undoes)

    def _unless_typed(self, plan: RowPlan) -> RowPlan:
        """The plan, with a fault if it would replace a file in which somebody has typed."""
        paths: Sequence[Path] = [] if plan.row.change.kind in ("git", "mode", "folder") else plan.row.change.paths
        typed = any(buffer.typed for path in paths for _, buffer in self._workspace.overlay.documents(path))
        return replace(plan, fault=_TYPED) if typed and not plan.fault else plan

    async def _published_fault(self, row: LiveRow) -> str:
        change = await asyncio.to_thread(self.repository_change, row)
        commits = await self._published(change)
        if commits is None:
            return "Git cannot tell whether this was pushed. Try again."
        return await asyncio.to_thread(fault, change, undo=True, published=commits) if commits else ""

    def _standing_of_repository(self, row: LiveRow) -> Standing:
        try:
            change, undoes = self.repository_change(row), row.state == "undoing"
        except ToolError:
            return "other"
        if is_done(change, undo=undoes):
            return "after"
        if fault(change, undo=undoes):
            return "after" if not undoes and was_made(change) else "other"
        return "between" if is_begun(change, undo=undoes) else "before"

    def release(self, row: LiveRow) -> None:
        """Remove what a killed daemon has prepared in a repository. Blocking."""
        with contextlib.suppress(ToolError, OSError):
            release(self.repository_change(row), undo=row.state == "undoing")

    def _plan(self, row: LiveRow, gone: GoneTexts) -> RowPlan:
        change = row.change
        if change.kind == "git":
            return RowPlan(row, self._repository_fault(row))
        changes: list[DiskChange] = []
        for step in row.steps:
            if row.state == "undoing" and change.kind == "mode" and step.new is None and _goes(step.path, gone):
                moved = gone.get(step.path)  # the bits go with the file
                changes += [] if moved is None else [replace(_bits(change, step), path=moved)]
                continue
            fault, identity = self._look(row, step)
            if fault:
                is_taken = change.new_path is not None and fault == FILE_MADE
                return RowPlan(row, target_made(self._workspace, step.path) if is_taken else fault)
            changes.append(self._change(row, step, identity))
        return RowPlan(row, "", changes)

    def _look(self, row: LiveRow, step: RowStep) -> tuple[str, Identity | None]:
        """The reason why that step does not fit, "" if it does; and the identity of the file that it replaces."""
        path, old, new = step
        if row.state != "undoing" and self.is_denied(path, deletes=new is None):
            return DENIED, None
        is_bits = row.change.kind == "mode"
        words = ("mode", "path") if is_bits else ("path",)
        if key := next(((word, path) for word in words if (word, path) in self._assumed), None):
            return ("" if _is_same(self._assumed[key], old, is_bits) else FILE_CHANGED), None
        if is_bits:
            return ("" if old is None else _mode_fault(path, old)), None
        if (above := _obstacle(path)) is not None:
            return f"{one_line(self._workspace.display_path(above))} is no folder now.", None
        if row.change.is_tree:
            return self._tree_fault(row), None
        if new is not None and new.kind == "folder":
            return ("" if _is_folder(path) or not os.path.lexists(path) else FILE_MADE), None
        if new is not None and new.file_id and not self._store.is_whole(new.file_id):
            return (_NO_UNDO if row.state == "undoing" else _LOST), None
        return self._difference(row.change, path, old)

    def _tree_fault(self, row: LiveRow) -> str:
        change = row.change
        assert change.after is not None
        file_id, is_there = change.after.file_id, os.path.lexists(change.path)
        if row.state == "undoing":
            return FILE_GONE if not is_there else "" if self._has_tree(change) else self._changed_in(change)
        if is_there:
            return FILE_MADE
        try:
            names = [
                f"{self._workspace.relative(change.path)}/{path}" for path in listed_paths(self._store.listed(file_id))
            ]
        except Damaged:
            return _LOST_TREE
        if self._denied(Subject("write_file", "write", name) for name in names):
            return _DENIED_IN_IT
        return "" if self._store.is_whole(file_id) else _LOST_TREE

    def _changed_in(self, tree: RowChange) -> str:
        """A sentence that says what has changed in a folder since it was put there."""
        assert tree.after is not None
        if not _is_folder(tree.path):
            return FILE_CHANGED
        try:
            paths = differing_paths(self._store.listed(tree.after.file_id), list_folder(tree.path).encode())
        except (Damaged, OSError):
            return FILE_CHANGED
        return f"Changed in this folder since: {file_list(paths)}."

    def _has_tree(self, change: RowChange, folder: Path | None = None) -> bool:
        """Whether that folder (None: the one in the workspace) is the new one, with all that is in it."""
        folder = folder or change.path
        if change.after is None or not _is_folder(folder):
            return False
        try:
            return self._store.is_listed(change.after.file_id, list_folder(folder))
        except OSError:
            return False

    def _difference(self, change: RowChange, path: Path, expected: RowVersion | None) -> tuple[str, Identity | None]:
        """The reason why the workspace does not have there what is expected, "" if it does; and the identity of what it
        has."""
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return ("" if expected is None else FILE_GONE), None
        except OSError as error:
            return f"{error.strerror}.", None
        if expected is None:
            return FILE_MADE, None
        identity = found.st_ino, found.st_ctime_ns  # before it is read: a save in between makes another one
        if path == change.path and change.identity == identity and expected == change.before:
            return "", identity
        return ("" if self._has(path, expected) else FILE_CHANGED), identity

    def _has(self, path: Path, version: RowVersion | None) -> bool:
        """Whether the workspace has that version there; permission bits do not count."""
        if version is None:
            return not os.path.lexists(path)
        if version.kind == "folder":
            return _is_folder(path)
        try:
            with self._workspace.guard.folder(path.parent) as folder:
                return _content(version, self._store).is_at(path.name, folder)
        except (OSError, ToolError):
            return False

    def _standing(self, row: LiveRow, step: RowStep) -> Standing:
        path, old, new = step
        change = row.change
        if change.kind == "mode":
            if not os.path.lexists(path):
                return "after" if new is None else "before"
            is_set = bool(path.stat().st_mode & 0o111)
            return "after" if new is not None and is_set == new.executable else "before"
        if change.is_tree:
            is_there, is_in = os.path.lexists(path), self._has_tree(change)
            if row.state == "undoing":
                return "before" if is_in else "other" if is_there else "after"
            return "after" if is_in else "other" if is_there else "before"
        return "after" if self._has(path, new) else "before" if self._has(path, old) else "other"

    def _change(self, row: LiveRow, step: RowStep, identity: Identity | None = None) -> DiskChange:
        path, old, new = step
        change = row.change
        if change.kind == "mode":
            return _bits(change, step)
        if change.is_tree and change.after is not None:
            stored, comes_in = self._store.path(change.after.file_id), row.state != "undoing"
            return TreeMove(path, stored, comes_in, lambda folder: self._has_tree(change, folder))
        if new is not None and new.kind == "folder":
            return NewFolder(path)
        if old is not None and old.kind == "folder":
            return FolderRemoval(path)
        before, after = (None if each is None else _content(each, self._store) for each in (old, new))
        is_mode_kept = old is not None and new is not None and old.mode == new.mode
        mode = None if new is None or is_mode_kept else new.mode
        return Replacement(path, before, after, mode, identity=identity)


@dataclass(frozen=True)
class Commit:
    """The prepared change of a repository; see `DiskChange`. It comes last, since commits need their files."""

    path: Path
    ready: Prepared
    order: tuple[int, int] = (COMMITTED, 0)

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        yield self

    def make(self) -> None:
        self.ready.commit()

    def take_back(self) -> None:
        self.ready.take_back()


@dataclass(frozen=True)
class StoredContent:
    """A file of the session's file store; see `Content`."""

    file_id: str
    mode: int
    store: FileStore

    def is_at(self, name: str, folder: int) -> bool:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return False
        handle = os.open(name, _FILE, dir_fd=folder)
        try:
            return self.store.is_same(self.file_id, handle)
        finally:
            os.close(handle)

    def make(self, name: str, folder: int) -> None:
        handle = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
        try:
            self.store.write(self.file_id, handle)
            os.fchmod(handle, self.mode)
            os.fsync(handle)
        except Damaged:
            raise ToolError(_LOST) from None
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Link:
    """A symbolic link; see `Content`."""

    target: str

    def is_at(self, name: str, folder: int) -> bool:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return stat.S_ISLNK(found.st_mode) and os.readlink(name, dir_fd=folder) == self.target

    def make(self, name: str, folder: int) -> None:
        os.symlink(self.target, name, dir_fd=folder)


def folders_made_for(rows: Iterable[LiveRow]) -> list[Path]:
    """The folders that were made for rows that are undone, innermost first. They may hold other things by now."""
    undone = [(row.change.paths[-1], row.change.after) for row in rows]
    folders = {above for path, after in undone if after is not None for above in [*path.parents][: after.made_above]}
    return sorted(folders, key=lambda path: -len(path.parts))


def _content(version: RowVersion, store: FileStore) -> StoredContent | Link:
    if version.kind == "link":
        return Link(version.target)
    return StoredContent(version.file_id, version.mode & 0o777 or 0o644, store)


def _is_same(one: RowVersion | None, other: RowVersion | None, is_bits: bool) -> bool:
    """Whether both have the same content or, if `is_bits`, the same executable bits."""
    if one is None or other is None:
        return one is other
    if is_bits:
        return one.executable == other.executable
    return (one.kind, one.file_id, one.target) == (other.kind, other.file_id, other.target)


def _goes(path: Path, gone: GoneTexts) -> bool:
    return path in gone or not os.path.lexists(path)


def _bits(change: RowChange, step: RowStep) -> ExecutableBits:
    """The change that sets the bits of the step. If the file was made together with them, undo takes them from it."""
    return ExecutableBits(step.path, not change.is_executable if step.new is None else step.new.executable)


def _mode_fault(path: Path, old: RowVersion) -> str:
    try:
        found = path.lstat()
    except OSError:
        return FILE_GONE
    same = stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111) == old.executable
    return "" if same else FILE_CHANGED


def _left_in(row: LiveRow, removed: Collection[Path]) -> str:
    """Why the folder that the row removes cannot be removed along with `removed`; "" if it can."""
    old, new = row.sides
    if old is None or old.kind != "folder" or new is not None or row.change.is_tree:
        return ""
    with contextlib.suppress(OSError), os.scandir(row.change.path) as entries:
        if any(Path(entry.path) not in removed for entry in entries):
            return f"{os.strerror(errno.ENOTEMPTY)}."
    return ""


def _obstacle(path: Path) -> Path | None:
    """The file or link that stands where a folder above the path would be; None for none."""
    return next((above for above in path.parents if os.path.lexists(above) and not _is_folder(above)), None)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
