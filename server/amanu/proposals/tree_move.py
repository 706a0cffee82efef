"""The move of a whole folder into the workspace, or back out of it: by one rename, or, between file systems, by a copy
that is renamed. Wherever a kill interrupts it, one of the two places has all of it. Everything here blocks."""

import contextlib
import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from amanu.sandbox.layers.copying import copy_folder
from amanu.storage.errors import sync_file_system
from amanu.system.untrusted_files import opened_folder, remove, status
from amanu.workspace.disk import BaseChanged, temporary_name
from amanu.workspace.disk_changes import TREE, StagedChange, Staging, folders_above


@dataclass(frozen=True)
class TreeMove:
    """A folder that comes into the workspace, or leaves it; see `DiskChange`."""

    path: Path
    stored: Path
    """Its place outside the workspace."""
    comes_in: bool
    is_whole: Callable[[Path], bool]
    """Whether the folder at that path is the one that was looked at."""

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        """See `DiskChange`."""
        with (
            folders_above(staging.guard, self.path) if self.comes_in else contextlib.nullcontext(),
            staging.guard.listing(self.path.parent) as folder,
            opened_folder(self.stored.parent) as store,
        ):
            move = _Moving(self, folder, store)
            try:
                move.stage()
                yield move
            finally:
                move.close()


@dataclass
class _Moving:
    _change: TreeMove
    _folder: int
    _store: int
    _is_made: bool = False
    _is_one_disk: bool = False
    """Whether one rename moves it."""
    _token: str = field(default_factory=lambda: token_hex(8))
    _ours: str = ""
    """A temporary name beside the folder."""

    @property
    def path(self) -> Path:
        return self._change.path

    @property
    def order(self) -> tuple[int, int]:
        return TREE, 0

    @property
    def _part(self) -> str:
        """A temporary name in the store."""
        return f".tmp-{self._token}"

    def stage(self) -> None:
        self._check()
        self._ours = temporary_name(self.path.name)
        self._is_one_disk = self._can_rename()
        name, stored = self.path.name, self._change.stored
        if not self._change.comes_in:
            remove(stored.name, self._store)  # whatever a copy into the workspace left of it
        if self._is_one_disk:
            return
        if self._change.comes_in:
            copy_folder(stored.name, self._store, self._ours, self._folder)
            sync_file_system(self.path.parent)
        else:
            copy_folder(name, self._folder, self._part, self._store)
            sync_file_system(stored.parent)
            os.rename(self._part, stored.name, src_dir_fd=self._store, dst_dir_fd=self._store)

    def _can_rename(self) -> bool:
        """Find out by trying: nothing else tells two mounts of one file system apart."""
        os.mkdir(self._ours, dir_fd=self._folder)
        try:
            os.rename(self._ours, self._part, src_dir_fd=self._folder, dst_dir_fd=self._store)
        except OSError as error:
            os.rmdir(self._ours, dir_fd=self._folder)
            if error.errno != errno.EXDEV:
                raise
            return False
        os.rmdir(self._part, dir_fd=self._store)
        return True

    def make(self) -> None:
        self._check()  # copying took a while; and a rename would replace an empty folder
        name, stored = self.path.name, self._change.stored.name
        if self._change.comes_in:
            source, source_folder = (stored, self._store) if self._is_one_disk else (self._ours, self._folder)
            os.rename(source, name, src_dir_fd=source_folder, dst_dir_fd=self._folder)
        else:
            target, target_folder = (stored, self._store) if self._is_one_disk else (self._ours, self._folder)
            os.rename(name, target, src_dir_fd=self._folder, dst_dir_fd=target_folder)
            moved = self._change.stored if self._is_one_disk else self.path.with_name(self._ours)
            if not self._change.is_whole(moved):  # the user has saved something there
                os.rename(target, name, src_dir_fd=target_folder, dst_dir_fd=self._folder)
                raise BaseChanged(self.path)
        self._is_made = True
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(self._store)

    def take_back(self) -> None:
        name, stored = self.path.name, self._change.stored.name
        other, other_folder = (stored, self._store) if self._is_one_disk else (self._ours, self._folder)
        if self._change.comes_in:
            os.rename(name, other, src_dir_fd=self._folder, dst_dir_fd=other_folder)
        else:
            os.rename(other, name, src_dir_fd=other_folder, dst_dir_fd=self._folder)
        self._is_made = False

    def close(self) -> None:
        """Remove the copy, or the folder that was copied, so that one place has it."""
        with contextlib.suppress(OSError):
            remove(self._ours or self._part, self._folder)
        if not self._is_one_disk and self._is_made == self._change.comes_in:
            with contextlib.suppress(OSError):
                remove(self._change.stored.name, self._store)

    def _check(self) -> None:
        if (status(self.path.name, self._folder) is None) != self._change.comes_in:
            raise BaseChanged(self.path)
