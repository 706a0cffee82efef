"""Files on disk, read through directory handles, and the errors of reading and writing them. Blocking: call it in a
thread."""

import contextlib
import errno
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.system.untrusted_files import remove
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.text_file import MAX_FILE

TEMPORARY = ".amanu-tmp"
"""The ending of temporary names in the workspace."""
_OURS = re.compile(rf"\.(?P<name>.+)\.(?:(?P<process>\d+)-)?[0-9a-f]+{re.escape(TEMPORARY)}", re.DOTALL)
_MOST_BYTES = 100


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
    names: int = 1
    """The number of its hard links."""


def read(guard: PathGuard, path: Path) -> StoredFile | None:
    """The file on disk; None if there is none. Raises `ToolError` if it cannot be read, or is too big."""
    try:
        with guard.file(path) as handle:
            status = os.fstat(handle)
            if status.st_size > MAX_FILE:
                raise ToolError(
                    f"{path.name} has {status.st_size / 1e6:.0f} MB; files above {MAX_FILE // 2**20} MiB are not "
                    "read. Use grep, or a command that prints the part you need."
                )
            return StoredFile(read_all(handle), stat.S_IMODE(status.st_mode), status.st_nlink)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(failure_message("read", path, error)) from None


def temporary_name(name: str) -> str:
    """A new name beside that one, for a moment. It says whose it is: see `remove_temporary_files`."""
    return f".{_shortened(name)}.{os.getpid()}-{secrets.token_hex(6)}{TEMPORARY}"


def remove_temporary_files(guard: PathGuard, path: Path) -> None:
    """Remove the temporary files and folders that a killed daemon left for that path: beside it, or in a folder
    above."""
    for above in path.parents:
        with contextlib.suppress(OSError, ToolError), guard.listing(above) as folder:
            for name in os.listdir(folder):  # noqa: PTH208 (of a handle)
                found = _OURS.fullmatch(name)
                if found and found["name"] == _shortened(path.name) and not _is_running(found["process"]):
                    remove(name, folder)


def read_only_message(path: Path) -> str:
    return f"{path} is read-only. It was not changed; ask the user to make it writable."


def _shortened(name: str) -> str:
    """So much of the name that there is room for more."""
    return os.fsencode(name)[:_MOST_BYTES].decode("utf-8", "ignore")


def _is_running(process: str | None) -> bool:
    if process is None:  # an older Amanu did not say
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    try:  # one that has ended may still be waited for
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True


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


def read_all(handle: int) -> bytes:
    parts: list[bytes] = []
    # Nearly always in one piece, which need not be copied once more.
    while part := os.read(handle, max(1 << 16, os.fstat(handle).st_size + 1)):
        parts.append(part)
    return b"".join(parts)
