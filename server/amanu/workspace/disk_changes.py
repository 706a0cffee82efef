"""Changes to files on disk, through directory handles: all of them are made, or none. Blocking: call it in a thread.

Right before it is made, each change looks once more at what it replaces. If that is not as expected, `BaseChanged` is
raised, and everything made so far is taken back.
"""

import contextlib
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from amanu.core.tool import ToolError
from amanu.system.untrusted_files import status
from amanu.workspace.disk import BaseChanged, NotWritten, failure_message
from amanu.workspace.path_guard import PathGuard

NEW, IN_PLACE, TREE, REPLACED, MODE, REMOVED, FOLDER_REMOVED, COMMITTED = range(8)
"""The order in which changes are made: what may still need room first, then what only renames or removes."""


class StagedChange(Protocol):
    """A change that is ready to be made."""

    @property
    def path(self) -> Path: ...

    @property
    def order(self) -> tuple[int, int]: ...

    def make(self) -> None:
        """Make it. Raises `BaseChanged`, `OSError`."""
        ...

    def take_back(self) -> None:
        """Take it back after it was made; if somebody has changed the path since, theirs stays. Raises `OSError`."""
        ...


class DiskChange(Protocol):
    """A change at one path."""

    @property
    def path(self) -> Path: ...

    def staged(self, staging: "Staging") -> AbstractContextManager[StagedChange]:
        """A context in which all that needs room or takes time is done. Nothing is changed yet, but temporary names and
        new folders may be seen; they are removed at its end, unless the change is made. Raises `BaseChanged`,
        `ToolError`, `OSError`."""
        ...


@dataclass(frozen=True)
class Staging:
    """The changes that are staged together."""

    guard: PathGuard
    changes: Sequence[DiskChange]

    @property
    def is_single(self) -> bool:
        """Whether no other change could fail after this one."""
        return len(self.changes) == 1

    def folder_to_stay(self, path: Path) -> Path:
        """The innermost folder above the path that none of the changes removes."""
        removed = {change.path for change in self.changes if isinstance(change, FolderRemoval)}
        return next(folder for folder in path.parents if folder not in removed)


def make_all(guard: PathGuard, changes: Sequence[DiskChange]) -> None:
    """Make all of them, or none; they are durable when this returns. Raises `BaseChanged`, `NotWritten`."""
    folders = {path.parent for change in changes for path in (change.path, *_missing_above(change.path))}
    staging = Staging(guard, changes)
    with ExitStack() as stack:
        staged: list[StagedChange] = []
        for change in changes:
            with _failing_at(change.path):
                staged.append(stack.enter_context(change.staged(staging)))
        made: list[StagedChange] = []
        try:
            for each in sorted(staged, key=lambda each: each.order):
                with _failing_at(each.path):
                    each.make()
                made.append(each)
        except BaseException:
            for each in reversed(made):
                with contextlib.suppress(OSError, ToolError):
                    each.take_back()
            raise
    for folder in folders:
        with contextlib.suppress(OSError, ToolError), guard.listing(folder) as handle:
            os.fsync(handle)  # some file systems cannot sync a folder; the files are synced


@contextmanager
def _failing_at(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise NotWritten(path, failure_message("write", path, error)) from None
    except ToolError as error:
        raise NotWritten(path, str(error)) from None


@dataclass(frozen=True)
class NewFolder:
    """A new folder. One that is there already is left as it is."""

    path: Path

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        """See `DiskChange`."""
        with folders_above(staging.guard, self.path), staging.guard.folder(self.path.parent) as folder:
            yield _FolderMaking(self.path, folder)


@dataclass
class _FolderMaking:
    path: Path
    _folder: int
    _is_made: bool = False

    @property
    def order(self) -> tuple[int, int]:
        return NEW, len(self.path.parts)

    def make(self) -> None:
        found = status(self.path.name, self._folder)
        if found is None:
            os.mkdir(self.path.name, dir_fd=self._folder)
            self._is_made = True
        elif not stat.S_ISDIR(found.st_mode):
            raise BaseChanged(self.path)

    def take_back(self) -> None:
        if self._is_made:
            os.rmdir(self.path.name, dir_fd=self._folder)


@dataclass(frozen=True)
class FolderRemoval:
    """The removal of a folder, which must be empty by then."""

    path: Path

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        """See `DiskChange`."""
        try:
            with staging.guard.folder(self.path.parent) as folder:
                yield _FolderRemoving(self.path, folder)
        except FileNotFoundError:
            raise BaseChanged(self.path) from None


@dataclass
class _FolderRemoving:
    path: Path
    _folder: int
    _mode: int = 0

    @property
    def order(self) -> tuple[int, int]:
        return FOLDER_REMOVED, -len(self.path.parts)

    def make(self) -> None:
        found = status(self.path.name, self._folder)
        if found is None:
            raise BaseChanged(self.path)
        self._mode = stat.S_IMODE(found.st_mode)
        os.rmdir(self.path.name, dir_fd=self._folder)

    def take_back(self) -> None:
        os.mkdir(self.path.name, dir_fd=self._folder)
        os.chmod(self.path.name, self._mode, dir_fd=self._folder)


@dataclass(frozen=True)
class ExecutableBits:
    """A change of a file's executable bits."""

    path: Path
    is_set: bool

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        """See `DiskChange`."""
        others = [change for change in staging.changes if change.path == self.path and change is not self]
        found = None if others else _inode(staging.guard, self.path)
        yield _BitsChanging(self, staging.guard, found)


@dataclass
class _BitsChanging:
    _change: ExecutableBits
    _guard: PathGuard
    _inode: int | None
    """The file's; None: it is replaced along with this."""
    _former: tuple[int, int] | None = field(default=None)
    """Inode and mode."""
    order: tuple[int, int] = (MODE, 0)

    @property
    def path(self) -> Path:
        return self._change.path

    def make(self) -> None:
        with self._file() as file:
            found = os.fstat(file)
            if self._inode not in (None, found.st_ino):
                raise BaseChanged(self.path)
            mode = stat.S_IMODE(found.st_mode)
            os.fchmod(file, with_executable(mode, is_set=self._change.is_set))
            self._former = found.st_ino, mode
            with contextlib.suppress(OSError):  # they need no room, so a full disk has them all the same
                os.fsync(file)

    def take_back(self) -> None:
        with self._file() as file:
            if self._former is not None and os.fstat(file).st_ino == self._former[0]:
                os.fchmod(file, self._former[1])

    @contextmanager
    def _file(self) -> Generator[int]:
        try:
            with self._guard.file(self._change.path) as file:
                yield file
        except FileNotFoundError:
            raise BaseChanged(self._change.path) from None


def remove_empty_folders(guard: PathGuard, folders: Sequence[Path]) -> None:
    """Remove the empty ones of these folders, in this order."""
    for folder in folders:
        with contextlib.suppress(OSError, ToolError), guard.folder(folder.parent) as above:
            os.rmdir(folder.name, dir_fd=above)


def with_executable(mode: int, *, is_set: bool) -> int:
    """The permission bits with which whoever may read may execute, or, if not `is_set`, nobody may."""
    return mode | (mode & 0o444) >> 2 if is_set else mode & ~0o111


@contextmanager
def folders_above(guard: PathGuard, path: Path) -> Generator[None]:
    """A context in which the folders above the path exist; those made for it that are empty at its end are removed."""
    missing = _missing_above(path)
    try:
        with guard.folder(path.parent, create=True):
            pass
        yield
    finally:
        remove_empty_folders(guard, missing)


def _missing_above(path: Path) -> list[Path]:
    return [folder for folder in path.parents if not os.path.lexists(folder)]


def _inode(guard: PathGuard, path: Path) -> int:
    try:
        with guard.file(path) as file:
            return os.fstat(file).st_ino
    except FileNotFoundError:
        raise BaseChanged(path) from None
