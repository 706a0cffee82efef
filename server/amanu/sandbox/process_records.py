"""Records of commands that no sandbox ends when the daemon is killed: the next daemon ends what is left of them."""

import asyncio
import contextlib
import fcntl
import itertools
import json
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amanu.system.process_tree import end_all, start_time

log = logging.getLogger(__name__)

MARK = "AMANU_COMMAND="
"""What the mark of each command begins with."""
_counter = itertools.count()
_NOBODY = 1 << 30
"""An id that no process has."""


class ProcessRecords:
    """The records in `folder`: a file for each command, locked while its daemon lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def recorded(self, pid: int, mark: str) -> Generator[None]:
        """Record a command while the context is open: its first process, and the variable that marks all of them. A
        full disk does not stop it."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                path = self._folder / f"{os.getpid()}-{next(_counter)}"
                file = stack.enter_context(path.open("x"))
                stack.callback(path.unlink, missing_ok=True)
                fcntl.flock(file, fcntl.LOCK_EX)
                json.dump({"pid": pid, "started": start_time(pid), "mark": mark}, file)
                file.flush()
            yield

    async def sweep(self) -> None:
        """End what killed daemons left running."""
        for record in await asyncio.to_thread(self._take):
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                pid, started, mark = record["pid"], record["started"], record["mark"]
                if not mark.startswith(MARK):
                    continue  # anything else may be in the environment of every process
                is_same = started is not None and started == start_time(pid)
                count = await end_all(pid if is_same else _NOBODY, mark)
                if count:
                    log.info("ended %d processes of a command that a killed daemon had started", count)

    def _take(self) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                with contextlib.suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink(missing_ok=True)
                    with contextlib.suppress(ValueError):
                        records.append(json.loads(file.read()))
        return records
