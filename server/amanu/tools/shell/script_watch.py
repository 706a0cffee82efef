"""Ends a command whose scripts are swapped while it starts. Names cannot be held: between the last look and the moment
an interpreter opens a script another program can put something else there. So they are looked at all the while, and
what was swapped is ended before it can do much."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from amanu.tools.shell.file_identity import identity

_SECONDS = 0.5
"""After that an interpreter has opened what it was called with; what it opens later is only looked at in the end."""
_EVERY = 0.0001
"""Seconds between two looks."""


class ScriptWatch:
    """Over the process group of `pid`, while the context is open; `known` are the identities of the paths as they were
    approved. Nothing to look at costs nothing."""

    def __init__(self, paths: Sequence[str], identities: Sequence[str], pid: int) -> None:
        self._watched = list(zip(paths, identities, strict=True))
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="amanu-vigil") if paths else None
        self.swapped = False
        """It was, and the processes were killed."""

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
            if any(identity(path) != identity_then for path, identity_then in self._watched):
                self.swapped = True
                with contextlib.suppress(OSError):  # it has ended by itself
                    os.killpg(self._pid, signal.SIGKILL)
                return
            self._ended.wait(_EVERY)
