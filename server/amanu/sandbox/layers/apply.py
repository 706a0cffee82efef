"""Bring files that were taken out of a layer into the workspace: each batch as a whole or not at all, also when the
daemon is killed in the middle (see `redo.py`), and on the disk when that is done. Everything here blocks."""

import contextlib
import filecmp
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.sandbox.layers.layer import LayerError, LayerRoot, explained
from amanu.sandbox.layers.transfer import copy, make_harmless, place
from amanu.system.untrusted_files import FOLDER, TEMPORARY, opened_folder, status, sync, sync_folder

Identity = tuple[int, int]
"""Inode, and ctime in nanoseconds."""


class ApplyError(Exception):
    """A batch was not applied: nothing of it is in the workspace."""


class WorkspaceChanged(ApplyError):
    """What is to be replaced is something else by now."""


class Busy(ApplyError):
    """Somebody else has the batch's lock."""


class NotWritten(ApplyError):
    """The disk refused. `str()` says why, and what to do."""


@dataclass(frozen=True)
class Move:
    """A path of the workspace that becomes another file or link."""

    root: LayerRoot
    name: str
    """Relative to the root."""
    below: Identity | None
    """What the workspace had there; None for nothing."""
    stored: Path | None
    """What comes there, outside the layer's roots; None: nothing, it is deleted."""

    @property
    def path(self) -> Path:
        return self.root.path / self.name

    def is_unchanged(self) -> bool:
        """Whether the workspace has there what it had."""
        try:
            found = self.path.lstat()
        except OSError:
            return self.below is None
        return self.below == (found.st_ino, found.st_ctime_ns)


@dataclass(frozen=True)
class Batch:
    """Moves that belong together, in their order."""

    token: str
    """Of the names that are ours for a while: the same after a kill, so that they are found."""
    moves: tuple[Move, ...]
    lock: Path | None = None
    """To be made before, and removed at the end: git's, for its files."""

    def check(self) -> None:
        """Raise `ApplyError` if it could not be applied now because of somebody else."""
        if self.lock is not None and os.path.lexists(self.lock):
            raise Busy
        if not all(move.is_unchanged() for move in self.moves):
            raise WorkspaceChanged

    def apply(self) -> None:
        """Make all moves; those that a killed daemon has made are made. Raises `ApplyError`."""
        try:
            with ExitStack() as stack:
                if self.lock is not None:
                    stack.enter_context(_locked(self.lock, self.token))
                self._apply()
        except (OSError, LayerError) as error:
            raise NotWritten(explained(error)) from None
        finally:
            self._clean()

    def _apply(self) -> None:
        todo = [move for move in self.moves if not _is_made(move)]
        if not all(move.is_unchanged() for move in todo):
            raise WorkspaceChanged
        made: list[Move] = []
        try:
            for move in todo:
                self._stage(move)
            for move in todo:
                self._make(move)
                made.append(move)
        except BaseException:
            for move in reversed(self.moves):
                self._undo(move, is_made=move in made)
            raise

    def _stage(self, move: Move) -> None:
        """Do all that needs room. What remains is to rename, which needs some for new names alone."""
        with opened_parent(move.root, move.name, make=move.stored is not None) as (folder, name):
            if len(self.moves) > 1 and move.below is not None:
                copy(name, folder, self._former(move), folder)
                sync(self._former(move), folder)
            if move.stored is not None and move.stored.lstat().st_dev != os.fstat(folder).st_dev:
                with opened_folder(move.stored.parent) as source:
                    make_harmless(move.stored.name, source)
                    copy(move.stored.name, source, self._staged(move), folder)
                sync(self._staged(move), folder)

    def _make(self, move: Move) -> None:
        staged = self._staged(move)
        with opened_parent(move.root, move.name) as (folder, name):
            if not move.is_unchanged():  # staging may take seconds, and the user saves meanwhile
                raise WorkspaceChanged
            if move.stored is None:
                os.unlink(name, dir_fd=folder)
            elif status(staged, folder) is not None:
                os.rename(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
                with contextlib.suppress(OSError):
                    os.fsync(folder)  # what is stored tells whether the move was made
                with contextlib.suppress(OSError):
                    move.stored.unlink()
            else:
                with opened_folder(move.stored.parent) as source:
                    place(move.stored.name, source, name, folder, staged, status(name, folder))

    def _undo(self, move: Move, *, is_made: bool) -> None:
        """Put back what was there, if the move was made now or before a kill."""
        if not is_made and os.path.lexists(move.path if move.stored is None else move.stored):
            return
        with contextlib.suppress(OSError, LayerError), opened_parent(move.root, move.name) as (folder, name):
            if move.below is None:
                os.unlink(name, dir_fd=folder)
            else:
                os.rename(self._former(move), name, src_dir_fd=folder, dst_dir_fd=folder)

    def _clean(self) -> None:
        """Remove what was ours for a while, and have all of it on the disk, before the note of it goes."""
        for move in self.moves:
            with contextlib.suppress(OSError, LayerError), opened_parent(move.root, move.name) as (folder, _):
                for name in (self._former(move), self._staged(move)):
                    if status(name, folder) is not None:
                        os.unlink(name, dir_fd=folder)
        for move in {move.path.parent: move for move in self.moves}.values():
            with contextlib.suppress(OSError, LayerError), opened_parent(move.root, move.name) as (folder, _):
                os.fsync(folder)  # some file systems cannot
        if self.lock is not None:
            with contextlib.suppress(OSError):
                sync_folder(self.lock.parent)

    def _former(self, move: Move) -> str:
        """The name of a copy of what the workspace had, beside it."""
        return f".{self.token}-{self.moves.index(move)}-former{TEMPORARY}"

    def _staged(self, move: Move) -> str:
        """The name of a copy of what comes there, beside it: where it is stored on another file system."""
        return f".{self.token}-{self.moves.index(move)}{TEMPORARY}"


@contextmanager
def _locked(lock: Path, token: str) -> Generator[None]:
    """A link, which comes to be with its content: a lock that a killed daemon left is known as ours. Raises `Busy`,
    `OSError`."""
    content = f"amanu {token}"
    try:
        if not _leads_to(lock, content):
            lock.symlink_to(content)
    except FileExistsError:
        raise Busy from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()


def _leads_to(lock: Path, content: str) -> bool:
    try:
        return str(lock.readlink()) == content
    except OSError:
        return False


def _is_made(move: Move) -> bool:
    """Whether a move has been made, before a kill."""
    if move.stored is None:
        return not os.path.lexists(move.path)
    if not os.path.lexists(move.stored):
        return True
    return not move.is_unchanged() and _is_same(move.stored, move.path)


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.readlink() == other.readlink()
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


@contextmanager
def opened_parent(root: LayerRoot, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
    """The opened folder of the workspace that holds the relative path, and the last part of the path. No link is
    followed. `make`: make the folders that are missing."""
    with root.opened() as folders, ExitStack() as stack:
        assert folders.below is not None
        *parents, name = path.split("/")
        folder = folders.below
        for parent in parents:
            if make and status(parent, folder) is None:
                os.mkdir(parent, 0o755, dir_fd=folder)
                with contextlib.suppress(OSError):
                    os.fsync(folder)
            folder = os.open(parent, FOLDER, dir_fd=folder)
            stack.callback(os.close, folder)
        yield folder, name
