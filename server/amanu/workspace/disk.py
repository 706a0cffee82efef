"""Files on disk, read and replaced through directory handles. Blocking: call it in a thread.

A file is replaced by a whole new one (temporary file in the same folder, fsync, rename), so that a crash leaves
the old bytes or the new ones. Before the rename the bytes to be replaced are hashed once more under their
handle; if they are not the expected ones nothing is written and `BaseChanged` is raised.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.text_file import MAX_FILE

_TEMPORARY = ".amanu-tmp"


class BaseChanged(Exception):
    """The file is not what the change was computed from."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} changed")
        self.path = path


class NotWritten(ToolError):
    """A file could not be written; the message says why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path


@dataclass(frozen=True)
class StoredFile:
    """Bytes of a file, and the permission bits it has."""

    data: bytes
    mode: int


@dataclass(frozen=True)
class Replacement:
    """`data` (None: no file) instead of the bytes `expected` (None: no file)."""

    path: Path
    expected: bytes | None
    data: bytes | None
    mode: int | None = None
    """Permission bits of a new file; None: what the umask leaves."""
    like: Path | None = None
    """A new file gets owner, mode and extended attributes of that one."""


def read(guard: PathGuard, path: Path) -> StoredFile | None:
    """What is on disk, None if nothing is. `ToolError` for what cannot be a text file, or is too big."""
    try:
        with guard.file(path) as handle:
            status = os.fstat(handle)
            if status.st_size > MAX_FILE:
                raise ToolError(
                    f"{path.name} has {status.st_size / 1e6:.0f} MB; files above {MAX_FILE // 2**20} MiB are not "
                    "read. Use grep, or a command that prints the part you need."
                )
            return StoredFile(_read_all(handle), stat.S_IMODE(status.st_mode))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(failure_message("read", path, error)) from None


def replace(guard: PathGuard, replacements: Sequence[Replacement]) -> None:
    """Make all of them, or none: everything is written beside its target first, and what was already renamed
    is put back when a later one fails. Raises `BaseChanged` and `NotWritten`."""
    committed: list[tuple[Replacement, StoredFile | None]] = []
    staged: list[_Staged] = []
    current_path = Path()
    try:
        for item in replacements:
            current_path = item.path
            staged.append(_stage(guard, item))
        for item in sorted(staged, key=_room):
            current_path = item.replacement.path
            committed.append((item.replacement, _commit(item)))
    except BaseException as error:
        for replacement, previous in reversed(committed):
            _put_back(guard, replacement, previous)
        if isinstance(error, ToolError):
            raise NotWritten(current_path, str(error)) from None
        raise
    finally:
        for item in staged:
            item.drop()


def remove_temporary_files(guard: PathGuard, path: Path) -> None:
    """Remove temporary files that a killed daemon left beside that file."""
    with contextlib.suppress(OSError, ToolError), guard.listing(path.parent) as folder:
        for name in os.listdir(folder):  # noqa: PTH208 (of a handle)
            if name.startswith(f".{path.name[:100]}.") and name.endswith(_TEMPORARY):
                os.unlink(name, dir_fd=folder)


def failure_message(verb: str, path: Path, error: OSError) -> str:
    """A sentence for an `OSError` of a file."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            why = "permission denied"
        case errno.ELOOP:
            why = "a symbolic link there is broken or leads outside the workspace"
        case errno.ENOTDIR:
            why = "a part of its path is a file, not a folder"
        case errno.ENOSPC | errno.EDQUOT:
            why = "the disk is full. Free some space, then try again"
        case errno.EROFS:
            why = "the file system is read-only"
        case errno.ENAMETOOLONG:
            why = "the name is too long"
        case _:
            why = os.strerror(error.errno) if error.errno else str(error)
    return f"Could not {verb} {path}: {why}."


@dataclass
class _Staged:
    replacement: Replacement
    stack: contextlib.ExitStack
    folder: int
    target: int | None
    """Handle of the file to be replaced."""
    temporary: str | None = None
    in_place: bool = False

    def drop(self) -> None:
        if self.temporary is not None:
            for _ in range(2):  # the first time may have failed just now, on the way here
                with contextlib.suppress(OSError):
                    os.unlink(self.temporary, dir_fd=self.folder)
            self.temporary = None
        self.stack.close()


def _room(staged: _Staged) -> int:
    """Where it stands in the order: what may still need room first, for taking back a replaced file needs some, too."""
    if staged.target is None:
        return 0
    return 1 if staged.in_place else 2 if staged.replacement.data is not None else 3


def _stage(guard: PathGuard, replacement: Replacement) -> _Staged:
    path = replacement.path
    stack = contextlib.ExitStack()
    try:
        folder = stack.enter_context(guard.folder(path.parent, create=replacement.expected is None))
        staged = _Staged(replacement, stack, folder, _target(guard, replacement, stack))
        _check(staged)
        if replacement.data is not None:
            _write_beside(guard, staged, replacement.data)
        return staged
    except FileNotFoundError:
        stack.close()
        raise BaseChanged(path) from None
    except OSError as error:
        stack.close()
        raise ToolError(failure_message("write", path, error)) from None
    except BaseException:
        stack.close()
        raise


def _target(guard: PathGuard, replacement: Replacement, stack: contextlib.ExitStack) -> int | None:
    try:
        return stack.enter_context(guard.file(replacement.path))
    except FileNotFoundError:
        return None


def _check(staged: _Staged) -> None:
    """The bytes there now are the expected ones, read through the handle of the very file that has the name."""
    replacement = staged.replacement
    if staged.target is None or replacement.expected is None:
        if (staged.target is None) != (replacement.expected is None):
            raise BaseChanged(replacement.path)
        return
    os.lseek(staged.target, 0, os.SEEK_SET)
    if _read_all(staged.target) != replacement.expected:
        raise BaseChanged(replacement.path)
    status = os.fstat(staged.target)
    try:
        named = os.stat(replacement.path.name, dir_fd=staged.folder, follow_symlinks=False)
    except FileNotFoundError:
        raise BaseChanged(replacement.path) from None
    if (status.st_dev, status.st_ino) != (named.st_dev, named.st_ino):
        raise BaseChanged(replacement.path)


def _write_beside(guard: PathGuard, staged: _Staged, data: bytes) -> None:
    replacement = staged.replacement
    path = replacement.path
    name = f".{path.name[:100]}.{secrets.token_hex(6)}{_TEMPORARY}"
    status = None if staged.target is None else os.fstat(staged.target)
    if status is not None and not status.st_mode & 0o222:
        raise ToolError(f"{path} is read-only. It was not changed; ask the user to make it writable.")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # A new file gets 0666 less the umask, as any editor would make it; a replaced one keeps what it had.
    handle = os.open(name, flags, 0o666 if status is None else 0o600, dir_fd=staged.folder)
    staged.temporary = name
    try:
        _write_all(handle, data)
        if status is not None:
            staged.in_place = status.st_nlink > 1 or not _copy_attributes(handle, status, staged.target)
        elif replacement.like is not None:
            with guard.file(replacement.like) as source:
                _copy_attributes(handle, os.fstat(source), source)
        elif replacement.mode is not None:
            os.fchmod(handle, replacement.mode)
        os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=staged.folder)
        raise
    finally:
        os.close(handle)


def _copy_attributes(handle: int, status: os.stat_result, source: int | None) -> bool:
    """Give a new file the owner, mode and extended attributes of the one it replaces. False if it cannot have
    its owner: then the old file must be written in place."""
    current = os.fstat(handle)
    if (current.st_uid, current.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(handle, status.st_uid, status.st_gid)
        except OSError:
            return False
    os.fchmod(handle, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr") and source is not None:
        with contextlib.suppress(OSError):
            for name in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(source, name))
    return True


def _commit(staged: _Staged) -> StoredFile | None:
    """Returns what was replaced."""
    replacement, name = staged.replacement, staged.replacement.path.name
    try:
        _check(staged)
        previous = None
        if staged.target is not None and replacement.expected is not None:
            previous = StoredFile(replacement.expected, stat.S_IMODE(os.fstat(staged.target).st_mode))
        if replacement.data is None:
            os.unlink(name, dir_fd=staged.folder)
        elif staged.in_place:
            _write_in_place(staged, replacement.data)
        elif staged.temporary is not None:
            if staged.target is None:
                _name_new(staged.temporary, name, staged.folder)
            else:
                os.rename(staged.temporary, name, src_dir_fd=staged.folder, dst_dir_fd=staged.folder)
                staged.temporary = None
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder handle; the file is synced
            _sync_folder(staged.folder)
        return previous
    except FileExistsError:
        raise BaseChanged(replacement.path) from None
    except OSError as error:
        raise ToolError(failure_message("write", replacement.path, error)) from None


def _name_new(temporary: str, name: str, folder: int) -> None:
    """Give a new file its name only if nothing has it: `link` refuses where `rename` would overwrite."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        os.close(handle)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_in_place(staged: _Staged, data: bytes) -> None:
    """For a file with several names, or an owner we cannot give: the same inode gets the new bytes."""
    handle = os.open(staged.replacement.path.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=staged.folder)
    try:
        if staged.target is None or os.fstat(handle).st_ino != os.fstat(staged.target).st_ino:
            raise BaseChanged(staged.replacement.path)
        previous = _read_all(handle)
        os.lseek(handle, 0, os.SEEK_SET)
        try:
            _write_all(handle, data)
            os.ftruncate(handle, len(data))
            os.fsync(handle)
        except OSError:
            with contextlib.suppress(OSError):  # where that fails too, the pre-image has the old bytes
                os.lseek(handle, 0, os.SEEK_SET)
                _write_all(handle, previous)
                os.ftruncate(handle, len(previous))
            raise
    finally:
        os.close(handle)


def _put_back(guard: PathGuard, replacement: Replacement, previous: StoredFile | None) -> None:
    """Reverse one replacement; if somebody has written since, theirs stays."""
    data, mode = (None, None) if previous is None else (previous.data, previous.mode)
    with contextlib.suppress(BaseChanged, ToolError, OSError):
        staged = _stage(guard, Replacement(replacement.path, replacement.data, data, mode))
        try:
            _commit(staged)
        finally:
            staged.drop()


def _sync_folder(folder: int) -> None:
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_all(handle: int) -> bytes:
    parts: list[bytes] = []
    # Nearly always in one piece, which need not be copied once more.
    while part := os.read(handle, max(1 << 16, os.fstat(handle).st_size + 1)):
        parts.append(part)
    return b"".join(parts)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
