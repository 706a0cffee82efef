"""Ends a daemon, or refuses what it asks of the disk, at the n-th change that it makes to files in some folders.

Python imports this as it starts, where this folder is in PYTHONPATH. `AMANU_FILE_FAULT` is JSON of the parameters of
`FileFaults`. Changes are counted while the file `armed` exists. `at`: a pattern for a change and its path, instead of a
number. `how`: "kill"; "full", from then on every change that needs room fails, until `armed` is gone; "refused", only
that one fails.
"""

import errno
import json
import os
import re
import signal
import sqlite3
import sys
import threading
from typing import Any

_GROWS = ("open", "os.rename", "os.mkdir", "os.link", "os.symlink", "os.setxattr", "mknod", "write", "fsync", "commit")
"""The changes that a full disk refuses."""
_PATHS: dict[str, tuple[int, int | None]] = {
    # Where an event of Python has the path that changes, and the descriptor of the folder this is in.
    "open": (0, None),
    "os.rename": (1, 3),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.mkdir": (0, 2),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
    "os.chmod": (0, 2),
    "os.setxattr": (0, None),
    "os.removexattr": (0, None),
    "os.truncate": (0, None),
    "os.utime": (0, 3),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_FOLDERS = threading.local()


class FileFaults:
    def __init__(self, how: str, nth: int, armed: str, folders: list[str], log: str, at: str = "") -> None:
        self._how, self._nth, self._armed, self._folders = how, nth, armed, folders
        self._at = re.compile(at or "^$")
        self._count = 0
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._write, self._fsync, self._open, self._mknod = os.write, os.fsync, os.open, os.mknod

    def install(self) -> None:
        os.write, os.fsync, os.open, os.mknod = self.write, self.fsync, self.open, self.mknod
        sqlite3.connect = self.connected()
        sys.addaudithook(self.audit)

    def connected(self) -> Any:
        """`sqlite3.connect`, whose connections count what they commit."""
        connect, faults = sqlite3.connect, self

        def counted(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
            path = os.fsdecode(database).removeprefix("file://").partition("?")[0]

            class Counted(sqlite3.Connection):
                def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                    if sql == "COMMIT":
                        faults._step("commit", path, None)
                    return super().execute(sql, *parameters)

            return connect(database, *arguments, factory=Counted, **options)

        return counted

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        place = _PATHS.get(event)
        if place is None or (event == "open" and not arguments[2] & _WRITES):
            return
        at, folder_at = place
        folder = arguments[folder_at] if folder_at is not None else getattr(_FOLDERS, "opened", None)
        self._step(event, arguments[at], folder)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        _FOLDERS.opened = dir_fd  # the event does not say
        try:
            return self._open(path, flags, mode, dir_fd=dir_fd)
        finally:
            _FOLDERS.opened = None

    def write(self, handle: int, data: Any) -> int:
        self._step("write", handle, None, lambda: self._write(handle, memoryview(data)[: len(data) // 2]))
        return self._write(handle, data)

    def fsync(self, handle: int) -> None:
        self._step("fsync", handle, None)
        self._fsync(handle)

    def mknod(self, path: Any, mode: int = 0o600, device: int = 0, *, dir_fd: int | None = None) -> None:
        self._step("mknod", path, dir_fd)
        self._mknod(path, mode, device, dir_fd=dir_fd)

    def _step(self, event: str, path: Any, folder: int | None, half: Any = None) -> None:
        """Count a change that is about to be made, and fail if it is the one. `half`: makes a part of it."""
        if not os.access(self._armed, os.F_OK):
            return
        name = _resolved(path, folder)
        if not any(name.startswith(f"{folder}/") for folder in self._folders):
            return
        if self._how != "kill" and event not in _GROWS:
            return
        if self._how == "full" and event == "os.rename" and os.path.lexists(name):
            return  # a name that is there needs no room
        self._count += 1
        self._write(self._log, f"{self._count} {event} {name!r}\n".encode())
        if not self._nth and self._at.search(f"{event} {name}"):
            self._nth = self._count
        if not self._nth or self._count < self._nth or (self._how == "refused" and self._count > self._nth):
            return
        if half is not None:
            half()
        if self._how == "full" and event == "commit":
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        if self._how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        if self._how == "refused":
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)
        os.kill(os.getpid(), signal.SIGKILL)


def _resolved(path: Any, folder: int | None) -> str:
    """The path, also of an opened file and of what is named through a descriptor."""
    if isinstance(path, int):
        return _link(path)
    name = os.fsdecode(path)
    if name.startswith("/proc/self/fd/"):
        handle, _, rest = name.removeprefix("/proc/self/fd/").partition("/")
        return f"{_link(int(handle))}/{rest}"
    if not name.startswith("/") and folder is not None and folder >= 0:
        return f"{_link(folder)}/{name}"
    return name


def _link(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 (quick: nothing is imported)
    except OSError:
        return ""


if "amanu.daemon.main" in sys.orig_argv and "AMANU_FILE_FAULT" in os.environ:
    FileFaults(**json.loads(os.environ["AMANU_FILE_FAULT"])).install()
