"""What goes wrong with a disk, said so that a user can act on it."""

import ctypes
import errno
import os
import sqlite3
from pathlib import Path

from amanu_protocol.errors import AmanuError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_HANDLE = (errno.EMFILE, errno.ENFILE)
_OF_ONE_DATABASE = 8
"""Open files at most: the database, its log and index of the log, the folder, twice over while it is made anew."""
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


def is_damage(error: Exception) -> bool:
    """The file is not what we wrote: broken pages, not a database, or tables that are missing."""
    name: str = getattr(error, "sqlite_errorname", "") if isinstance(error, sqlite3.Error) else ""
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")) or name == "SQLITE_ERROR"


def is_full(error: BaseException) -> bool:
    """The disk, or what the user may use of it, has no room."""
    return isinstance(error, OSError) and error.errno in _FULL


def storage_error(error: Exception, folder: Path) -> AmanuError:
    """The failure of SQLite or of the system, as the error a client sees. `folder`: where it happened."""
    name: str = getattr(error, "sqlite_errorname", "") if isinstance(error, sqlite3.Error) else ""
    number = error.errno if isinstance(error, OSError) else None
    # SQLite calls the lack of room for its shared-memory file an I/O error.
    if name == "SQLITE_FULL" or number in _FULL or (name.startswith("SQLITE_IOERR") and _no_room(folder)):
        message = f"The disk is full: Amanu cannot save this session in {folder}."
        hint = "Free some space and try again; what could not be saved is kept in memory until then."
    elif number in _NO_HANDLE or (name.startswith("SQLITE_CANTOPEN") and _no_handle()):
        message = (
            f"Too many open files: the system does not let Amanu open another one, and it needs files in {folder}."
        )
        hint = "Close sessions and editors you do not need, or raise the limit (ulimit -n), then try again."
    elif name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")) or number in _NOT_ALLOWED:
        message = f"Amanu is not allowed to write in {folder}."
        hint = "Check who owns the folder and that its file system is not read-only, then try again."
    elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        message = f"Another program keeps Amanu's files in {folder} locked."
        hint = "Close it and try again."
    elif is_damage(error):
        message = f"Amanu's files in {folder} are damaged."
        hint = "Close the session and open it again: everything readable is kept."
    else:
        reason = os.strerror(number) if number is not None else str(error)
        message = f"Amanu could not use its files in {folder}: {reason}."
        hint = "Check the disk and try again; what could not be saved is kept in memory until then."
    return AmanuError("storageError", message, hint=hint)


def _no_room(folder: Path) -> bool:
    """Less than SQLite needs to start writing: a page and 32 KB of shared memory, with some to spare."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 128 * 1024


def _no_handle() -> bool:
    """SQLite does not say why it could not open a file, and has let go by now of those it could."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_OF_ONE_DATABASE))
    except OSError as error:
        return error.errno in _NO_HANDLE
    finally:
        for handle in opened:
            os.close(handle)
    return False


def sync_file_system(folder: Path) -> None:
    """Make everything written to the file system of that folder durable; for many files this is much faster than
    syncing each. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names created or renamed in a folder durable. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
