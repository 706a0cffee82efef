"""Writes that share an fsync. Whatever was added when a commit begins goes into it, so any number of waiters share one.
What could not be written (disk full) stays in memory, in order, and is tried again with the next commit.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

from amanu.storage.errors import storage_error
from amanu_protocol.errors import AmanuError

LINGER = 0.05
"""Seconds an entry that nobody waits for may stay in memory, so that a stream of them shares commits."""

log = logging.getLogger(__name__)
Entry = TypeVar("Entry")
T = TypeVar("T")


class GroupCommit(Generic[Entry]):
    """One file's, with a thread of its own. Belongs to one event loop."""

    def __init__(self, folder: Path, name: str, write: Callable[[Sequence[Entry]], None]) -> None:
        """`write` puts entries on the disk, all or none; called on the thread, it raises `sqlite3.Error` or `OSError`.
        `folder` is where, `name` the thread's."""
        self._folder = folder
        self._write = write
        self._thread = ThreadPoolExecutor(1, name)
        self._pending: list[Entry] = []  # added to by the loop, taken from by the thread
        self._added = 0
        self._written = 0
        self._commit: asyncio.Task[AmanuError | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, entry: Entry) -> None:
        """Never fails: `durable` tells whether it is safe."""
        self._pending.append(entry)
        self._added += 1
        self._commit_soon()

    async def durable(self) -> None:
        """Return when everything added so far is on the disk. Raises `AmanuError` `storageError` when it is not."""
        target = self._added
        is_ours = self._commit is None  # what lets one fail that had begun before may be over by now
        while self._written < target:
            failure = await asyncio.shield(self._start())
            if failure is not None and is_ours:
                raise failure
            is_ours = True

    def waiting(self) -> list[Entry]:
        """What is not on the disk yet. For the thread: it is who takes entries from there."""
        return self._pending[:]

    async def on_thread(self, work: Callable[[], T]) -> T:
        """What `work` returns, called between two commits. Raises `AmanuError` `storageError`, and what it raises."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise storage_error(error, self._folder) from error

    def close(self) -> None:
        """End the thread; nothing is written any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._thread.shutdown()

    def _commit_soon(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._start)

    def _start(self) -> asyncio.Task[AmanuError | None]:
        """The commit that runs now, or another. The task never raises: it returns why it failed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._commit is None:
            self._commit = asyncio.get_running_loop().create_task(self._run())
        return self._commit

    async def _run(self) -> AmanuError | None:
        try:
            await self.on_thread(self._write_pending)
        except AmanuError as error:
            log.error("%s %d entries wait in memory.", error, len(self._pending))
            return error
        finally:
            self._commit = None
        if self._pending:
            self._commit_soon()
        return None

    def _write_pending(self) -> None:
        batch = self.waiting()
        if batch:
            self._write(batch)
        del self._pending[: len(batch)]
        self._written += len(batch)
