"""A session folder belongs to one daemon at a time: whoever holds the lock on its `lease` file.

The lock is `flock`: the kernel drops it when the process dies, however it dies. The file also says who holds
it (process id and boot id), so that others can be told, and can see that a holder is gone without taking the
lock themselves.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from amanu_protocol.errors import AmanuError

NAME = "lease"


@dataclass
class Lease:
    """Held until `release` or the end of the process."""

    descriptor: int

    def release(self) -> None:
        """Give it up. Releasing twice is harmless."""
        if self.descriptor >= 0:
            os.ftruncate(self.descriptor, 0)
            # Explicitly: a child that is being started has a copy of the descriptor until it executes its program.
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            os.close(self.descriptor)
            self.descriptor = -1


def take(folder: Path) -> Lease:
    """Take the lease of an existing session folder.

    Raises `AmanuError` `sessionReadOnly` when somebody holds it (this process included) and `OSError` when
    the folder cannot be written. The file is never removed: two openers would then lock two files.
    """
    path = folder / NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {_boot_id()}\n".encode(), 0)
        os.fsync(descriptor)  # `left` is to be true after a power failure, too
    except BlockingIOError:
        os.close(descriptor)
        pid = _written(path)[0]
        who = "another Amanu" if pid is None else f"another Amanu (process {pid})"
        raise AmanuError(
            "sessionReadOnly",
            f"This session is open in {who}. You can look at it here, but not change it.",
            hint="Close it there, or start a new session here.",
        ) from None
    except OSError:
        os.close(descriptor)
        raise
    return Lease(descriptor)


def left(folder: Path) -> bool:
    """Whether somebody has it, or died with it: who gives it back leaves the file empty. Never takes the lock."""
    try:
        return (folder / NAME).stat().st_size > 0
    except OSError:
        return False


def holder(folder: Path) -> int | None:
    """The id of the living process that holds the lease, or None. Never takes the lock."""
    pid, boot_id = _written(folder / NAME)
    if pid is None or boot_id != _boot_id():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return pid


def _written(path: Path) -> tuple[int | None, str]:
    try:
        fields = path.read_text("utf-8").split(" ", 1)
        return int(fields[0]), fields[1].strip()
    except (OSError, ValueError, IndexError):
        return None, ""


def _boot_id() -> str:
    """Changes with each start of the machine, so that a process id of before it is not believed. "" where the
    system has none (then only the process id counts)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
