"""Open and remove what commands have left in a layer: files of any kind, with any mode, at any depth. Nothing is opened
before its type is known, and no symbolic link is followed. Everything here blocks."""

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a folder, and nothing else."""
TEMPORARY = ".amanu-tmp"
"""How names end that are in the workspace for a moment."""
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opens a file, and waits for nobody where it is a pipe."""
_PATH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_folder(name: str | os.PathLike[str], dir_fd: int | None = None) -> Generator[int]:
    """A descriptor of a folder of ours, in which we may list, make and remove. Where its mode forbids that, the mode is
    another one until the context is left. Raises `OSError`."""
    with _permitted(name, dir_fd, os.O_DIRECTORY, 0o700):
        handle = os.open(name, FOLDER, dir_fd=dir_fd)
        try:
            yield handle
        finally:
            os.close(handle)


@contextmanager
def opened_file(name: str, dir_fd: int) -> Generator[int]:
    """A descriptor of a regular file of ours, to read from. Raises `OSError`, also for anything else."""
    if not stat.S_ISREG(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        raise OSError(f"{name!r} is not a regular file")
    with _permitted(name, dir_fd, 0, 0o400):
        handle = os.open(name, FILE, dir_fd=dir_fd)
        try:
            yield handle
        finally:
            os.close(handle)


def sync(name: str, dir_fd: int) -> None:
    """Have the content of a regular file of ours on the disk; anything else has none. Raises `OSError`."""
    if stat.S_ISREG(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
        with opened_file(name, dir_fd) as file:
            os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder of ours on the disk, as far as its file system can. Raises `OSError`."""
    with opened_folder(folder) as handle, suppress(OSError):
        os.fsync(handle)


def status(name: str, dir_fd: int | None) -> os.stat_result | None:
    """What `lstat` says. None when nothing is there, and where there is no folder (`dir_fd` is None)."""
    if dir_fd is None:
        return None
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def remove(name: str, dir_fd: int) -> None:
    """Remove whatever has that name; nothing is fine, too. Raises `OSError`."""
    found = status(name, dir_fd)
    if found is None:
        return
    if stat.S_ISDIR(found.st_mode):
        _empty(name, dir_fd)
        os.rmdir(name, dir_fd=dir_fd)
    else:
        os.unlink(name, dir_fd=dir_fd)


def _empty(name: str, dir_fd: int) -> None:
    """Remove what is in a folder. Each folder in it is first moved to its top: no depth of folders ends this early."""
    with ExitStack() as stack:
        top = stack.enter_context(opened_folder(name, dir_fd))
        mark, count, todo = token_hex(8), 0, ["."]
        while todo:
            current = todo.pop()
            with opened_folder(current, top) as folder:
                for entry in list(os.scandir(folder)):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.name, dir_fd=folder)
                        continue
                    count += 1
                    todo.append(f"{mark}-{count}")
                    with opened_folder(entry.name, folder):  # to be moved, a folder must be writable
                        os.rename(entry.name, todo[-1], src_dir_fd=folder, dst_dir_fd=top)
            if current != ".":
                os.rmdir(current, dir_fd=top)


@contextmanager
def _permitted(name: str | os.PathLike[str], dir_fd: int | None, flags: int, mode: int) -> Generator[None]:
    """While the context is open, the owner has at least the rights in `mode`."""
    with ExitStack() as stack:
        handle = os.open(name, _PATH | flags, dir_fd=dir_fd)  # needs no right to the file itself
        try:
            present = stat.S_IMODE(os.fstat(handle).st_mode)
            if present & mode != mode:
                path = f"/proc/self/fd/{stack.enter_context(_kept(handle))}"  # for chmod it would have to be readable
                os.chmod(path, present | mode)  # noqa: PTH101
                stack.callback(os.chmod, path, present)
        finally:
            os.close(handle)
        yield


@contextmanager
def _kept(handle: int) -> Generator[int]:
    """A copy of the descriptor."""
    copy = os.dup(handle)
    try:
        yield copy
    finally:
        os.close(copy)
