"""Ends a command whose scripts are swapped while it starts.

A path cannot be locked: between the last check and the moment an interpreter opens a script, another program can put a
different file there. So the paths are checked continuously, and a command whose script was swapped is killed before it
can do much.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from amanu.tools.shell.file_identity import identity

_SECONDS = 0.5
"""By then an interpreter has opened the script it was called with; what it opens later is only checked at the end."""
_EVERY = 0.0001
"""Seconds between two checks."""


class ScriptWatch:
    """Watches `paths` for the process group of `pid` while the context is open; `identities` are those of the paths as
    they were approved. Without paths it starts no thread."""

    def __init__(self, paths: Sequence[str], identities: Sequence[str], pid: int) -> None:
        self._watched = list(zip(paths, identities, strict=True))
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="amanu-script-watch") if paths else None
        self.swapped = False
        """Whether a path was swapped; the processes were then killed."""

    def __enter__(self) -> "ScriptWatch":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        until = time.monotonic() + _SECONDS
        while not self._ended.is_set() and time.monotonic() < until:
            if any(identity(path) != approved for path, approved in self._watched):
                self.swapped = True
                with contextlib.suppress(OSError):  # it has ended by itself
                    os.killpg(self._pid, signal.SIGKILL)
                return
            self._ended.wait(_EVERY)
