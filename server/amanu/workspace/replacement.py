"""The replacement of a file or link on disk, through directory handles. Blocking: call it in a thread.

A file is replaced by a whole new one (temporary file in the same folder, fsync, rename), so that a crash leaves the old
content or the new; only a file with several names, or an owner that we cannot set, is written in place.
"""

import contextlib
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from amanu.core.tool import ToolError
from amanu.system.untrusted_files import status
from amanu.workspace.disk import BaseChanged, read_all, read_only_message, temporary_name
from amanu.workspace.disk_changes import IN_PLACE, NEW, REMOVED, REPLACED, StagedChange, Staging, folders_above
from amanu.workspace.path_guard import PathGuard

Identity = tuple[int, int]
"""Inode, and ctime in nanoseconds."""


class Content(Protocol):
    """Content of a file or link, not held in memory."""

    def is_at(self, name: str, folder: int) -> bool:
        """Whether exactly this content has that name in the folder. Raises `OSError`."""
        ...

    def make(self, name: str, folder: int) -> None:
        """Make it durably under that name, which is free. Raises `ToolError`, `OSError`."""
        ...


@dataclass(frozen=True)
class Replacement:
    """Puts a file or link with the content `data` in place of one with the content `expected`; None: there is none."""

    path: Path
    expected: bytes | Content | None
    data: bytes | Content | None
    mode: int | None = None
    """Permission bits of a new file; None: 0666 less the umask."""
    like: Path | None = None
    """The file from which a new file gets its owner, mode and extended attributes."""
    identity: Identity | None = None
    """The identity of the file that was found to have the expected content; None: compare the content."""

    @contextmanager
    def staged(self, staging: Staging) -> Generator[StagedChange]:
        """See `DiskChange`."""
        with ExitStack() as stack:
            try:
                if self.expected is None:
                    stack.enter_context(folders_above(staging.guard, self.path))
                folder = stack.enter_context(staging.guard.folder(self.path.parent))
                kept_in = folder
                if self.data is None and (to_stay := staging.folder_to_stay(self.path)) != self.path.parent:
                    kept_in = stack.enter_context(staging.guard.folder(to_stay))
            except FileNotFoundError:
                raise BaseChanged(self.path) from None
            staged = _Replacing(self, staging.guard, folder, kept_in)
            stack.callback(staged.close)
            staged.stage(is_single=staging.is_single)
            yield staged


class _Replacing:
    def __init__(self, change: Replacement, guard: PathGuard, folder: int, kept_in: int) -> None:
        self._change = change
        self._guard = guard
        self._folder = folder
        self._kept_in = kept_in
        """The folder in which `_former` is."""
        self._stack = ExitStack()
        self._target: int | None = None
        """A handle on the file to be replaced, if its content is compared in memory."""
        self._new: str | None = None
        """The temporary name of the new file."""
        self._former: str | None = None
        """The temporary name of the file that was replaced or removed."""
        self._found: os.stat_result | None = None
        """The file to be replaced, as it was when its content was looked at."""
        self._in_place = False
        self._made: tuple[int, ...] | None = None
        """The value of `_content` once the change is made."""

    @property
    def path(self) -> Path:
        return self._change.path

    @property
    def order(self) -> tuple[int, int]:
        change = self._change
        if change.expected is None:
            return NEW, 0
        return (IN_PLACE if self._in_place else REPLACED if change.data is not None else REMOVED), 0

    @property
    def _name(self) -> str:
        return self._change.path.name

    def stage(self, *, is_single: bool) -> None:
        change = self._change
        if isinstance(change.expected, bytes):
            with contextlib.suppress(FileNotFoundError):
                self._target = self._stack.enter_context(self._guard.file(change.path))
        self._found = status(self._name, self._folder)
        self._check()
        if change.data is not None:
            self._write_beside(change.data)
        if change.expected is not None and change.data is not None and not is_single and not self._in_place:
            self._keep_former()

    def make(self) -> None:
        self._check_again()
        if self._change.data is None:
            self._remove()
        elif self._in_place:
            assert isinstance(self._change.data, bytes)
            self._write_in_place(self._change.data)
        elif self._new is not None:
            self._name_new(self._new)
        self._made = _content(status(self._name, self._folder))

    def take_back(self) -> None:
        if _content(status(self._name, self._folder)) != self._made:
            return
        if self._in_place:
            assert isinstance(self._change.expected, bytes)
            self._write_in_place(self._change.expected)
        elif self._former is not None:
            os.rename(self._former, self._name, src_dir_fd=self._kept_in, dst_dir_fd=self._folder)
            self._former = None
        elif self._change.expected is None:
            os.unlink(self._name, dir_fd=self._folder)
        else:
            self._write_beside(self._change.expected)
            if self._new is not None:
                self._name_new(self._new)

    def close(self) -> None:
        for name, folder in ((self._new, self._folder), (self._former, self._kept_in)):
            for _ in range(2 if name is not None else 0):  # the first time may have failed just now, on the way here
                with contextlib.suppress(OSError):
                    os.unlink(str(name), dir_fd=folder)
        self._stack.close()

    def _check(self) -> None:
        """Raise `BaseChanged` unless the expected content is there. Bytes are read through a handle on the very
        file that has the name."""
        change, found = self._change, self._found
        if (found is None) != (change.expected is None):
            raise BaseChanged(change.path)
        if found is None:
            return
        if isinstance(change.expected, bytes):
            self._check_bytes(change.expected)
        elif change.expected is not None and change.identity != (found.st_ino, found.st_ctime_ns):
            try:
                is_same = change.expected.is_at(self._name, self._folder)
            except OSError:
                is_same = False
            if not is_same:
                raise BaseChanged(change.path)

    def _check_bytes(self, expected: bytes) -> None:
        if self._target is None:
            raise BaseChanged(self._change.path)
        os.lseek(self._target, 0, os.SEEK_SET)
        if read_all(self._target) != expected:
            raise BaseChanged(self._change.path)
        opened, named = os.fstat(self._target), status(self._name, self._folder)
        if named is None or (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino):
            raise BaseChanged(self._change.path)

    def _check_again(self) -> None:
        """Raise `BaseChanged` if the file has changed since: staging may take seconds, and the user may save it."""
        with self._guard.folder(self.path.parent) as folder:
            if not os.path.samestat(os.fstat(folder), os.fstat(self._folder)):
                raise BaseChanged(self.path)
        now = status(self._name, self._folder)
        if isinstance(self._change.expected, bytes):
            self._check_bytes(self._change.expected)
        elif _written(now) != _written(self._found):
            raise BaseChanged(self._change.path)

    def _keep_former(self) -> None:
        """Give what is there a second name, from which it can be put back without needing room."""
        self._check_again()
        former = self._temporary_name()
        try:
            os.link(self._name, former, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            raise BaseChanged(self._change.path) from None
        except OSError:  # a file system without hard links, or no more of them
            _copy(self._name, former, self._folder)
        self._former = former
        if self._target is None:
            found = status(self._name, self._folder)
            if _content(found) != _content(self._found):
                raise BaseChanged(self._change.path)
            self._found = found  # a new name makes a new ctime

    def _write_beside(self, data: bytes | Content) -> None:
        self._new = self._temporary_name()
        if not isinstance(data, bytes):
            data.make(self._new, self._folder)
            self._keep_attributes(self._new)
            return
        change = self._change
        former = None if self._target is None else os.fstat(self._target)
        if former is not None and not former.st_mode & 0o222:
            self._new = None
            raise ToolError(read_only_message(change.path))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # A new file gets 0666 less the umask, as any editor would make it; a replaced one keeps what it had.
        handle = os.open(self._new, flags, 0o666 if former is None else 0o600, dir_fd=self._folder)
        try:
            _write_all(handle, data)
            if former is not None:
                self._in_place = former.st_nlink > 1 or not _copy_attributes(handle, former, self._target)
            elif change.like is not None:
                with self._guard.file(change.like) as source:
                    _copy_attributes(handle, os.fstat(source), source)
            elif change.mode is not None:
                os.fchmod(handle, change.mode)
            os.fsync(handle)
        finally:
            os.close(handle)

    def _remove(self) -> None:
        former = self._temporary_name()
        try:
            os.rename(self._name, former, src_dir_fd=self._folder, dst_dir_fd=self._kept_in)
            self._former = former
        except OSError:  # even a name may need room, and deleting the file may make some
            os.unlink(self._name, dir_fd=self._folder)

    def _keep_attributes(self, new: str) -> None:
        """Give a new file the attributes of the file that it replaces, unless its mode was given."""
        found = status(self._name, self._folder)  # None if a deletion is being taken back
        is_file = found is not None and stat.S_ISREG(found.st_mode)
        if not is_file or self._change.mode is not None or not stat.S_ISREG(_mode(new, self._folder)):
            return
        with self._guard.file(self.path) as source:
            handle = os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                _copy_attributes(handle, os.fstat(source), source)
            finally:
                os.close(handle)

    def _name_new(self, new: str) -> None:
        if self._change.expected is None:
            try:  # `link` refuses where `rename` would overwrite
                os.link(new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
                return
            except FileExistsError:
                raise BaseChanged(self._change.path) from None
            except OSError:  # a file system without hard links
                self._reserve_name()
        os.rename(new, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._new = None

    def _reserve_name(self) -> None:
        try:
            os.close(os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=self._folder))
        except FileExistsError:
            raise BaseChanged(self._change.path) from None

    def _write_in_place(self, data: bytes) -> None:
        """Write the bytes into the same inode: the file has several names, or an owner that we cannot set."""
        handle = os.open(self._name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            if self._target is None or os.fstat(handle).st_ino != os.fstat(self._target).st_ino:
                raise BaseChanged(self._change.path)
            previous = read_all(handle)
            try:
                _rewrite(handle, data)
                os.fsync(handle)
            except OSError:
                with contextlib.suppress(OSError):  # if that fails, too, the pre-image has the old bytes
                    _rewrite(handle, previous)
                raise
        finally:
            os.close(handle)

    def _temporary_name(self) -> str:
        return temporary_name(self._name)


def _written(found: os.stat_result | None) -> tuple[int, ...] | None:
    """A value that changes if the file is changed, or replaced by another one."""
    return None if found is None else (found.st_dev, found.st_ino, found.st_ctime_ns)


def _content(found: os.stat_result | None) -> tuple[int, ...] | None:
    """A value that changes if the file is written or replaced by another one, but not for a new mode or second name."""
    return None if found is None else (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _mode(name: str, folder: int) -> int:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode


def _copy(name: str, new_name: str, folder: int) -> None:
    """Copy a file or link to a new name beside it."""
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.symlink(os.readlink(name, dir_fd=folder), new_name, dir_fd=folder)
        return
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(new_name, flags, 0o600, dir_fd=folder)
        try:
            while part := os.read(source, 1 << 20):
                _write_all(target, part)
            _copy_attributes(target, os.fstat(source), source)
            os.fsync(target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_attributes(handle: int, found: os.stat_result, source: int | None) -> bool:
    """Give a new file the owner, mode and extended attributes of the one it replaces. Returns False if it cannot have
    that owner; the old file must then be written in place."""
    current = os.fstat(handle)
    if (current.st_uid, current.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.fchown(handle, found.st_uid, found.st_gid)
        except OSError:
            return False
    os.fchmod(handle, stat.S_IMODE(found.st_mode))
    if hasattr(os, "listxattr") and source is not None:
        with contextlib.suppress(OSError):
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(source, name))
    return True


def _rewrite(handle: int, data: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    _write_all(handle, data)
    os.ftruncate(handle, len(data))


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
