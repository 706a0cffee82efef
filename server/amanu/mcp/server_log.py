"""What a server writes to its standard error, and log messages it sends: a rotating file for each server."""

import contextlib
import os
from pathlib import Path

from amanu.home import Home
from amanu.system import logs

MAX_SIZE = 1 << 20
"""Bytes of one file; there is one older."""
_TAIL = 4096


class ServerLog:
    """The log of one server. Secrets that are known to Amanu do not reach it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail = ""

    def write(self, data: bytes | str) -> None:
        """Append; a full disk loses it."""
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        text = logs.redact(text)
        self._tail = (self._tail + text)[-_TAIL:]
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_size > MAX_SIZE:
                    self.path.replace(self.path.with_suffix(".log.1"))
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)

    def forget_tail(self) -> None:
        """What follows is of another start."""
        self._tail = ""

    @property
    def tail(self) -> str:
        """The end of what it wrote since its latest start."""
        return self._tail

    @property
    def reason(self) -> str:
        """The line of the latest start that tells best why it ended; "" if it wrote nothing."""
        lines = [line.strip() for line in self._tail.splitlines() if line.strip()]
        errors = [line for line in lines if "rror" in line]
        return (errors or lines or [""])[-1][:400]


def log_file(home: Home, name: str) -> Path:
    """Where the log of the servers of that name is; older text has `.1` appended."""
    return home.logs / "mcp" / f"{name}.log"
