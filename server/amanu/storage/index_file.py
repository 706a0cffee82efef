"""A SQLite file that can be made again from the sessions' folders: damage is no reason to fail."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from amanu.storage.errors import is_damage, storage_error

_BUSY_SECONDS = 5.0

T = TypeVar("T")


class IndexFile:
    """One file and its thread; several processes may have it. Made by `open`."""

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self._path = path
        self._prepare = prepare
        self._thread = ThreadPoolExecutor(1, f"amanu-{path.stem}")  # one: what is put first is written first
        self._db: sqlite3.Connection | None = None

    @classmethod
    async def open(cls, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> "IndexFile":
        """Open the file, made with its folder if there is none. `prepare` makes its tables and what goes into them, in
        a transaction. Raises `AmanuError` `storageError`, and what `prepare` raises."""
        file = cls(path, prepare)
        try:
            await file.run(lambda db: None)
        except BaseException:
            file._thread.shutdown(wait=False)
            raise
        return file

    async def run(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """What `action` returns, called on the thread; once more, on a new file, if this one is damaged. Raises
        `AmanuError` `storageError`, and what it raises."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._on_thread, action)
        except (sqlite3.Error, OSError) as error:
            raise storage_error(error, self._path.parent) from error

    async def close(self) -> None:
        """Give the file back."""
        await self.run(lambda db: db.close())
        self._thread.shutdown()

    def _on_thread(self, action: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return action(self._opened())
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
        if self._db is not None:
            self._db.close()
            self._db = None
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
        return action(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = self._connect()
        return self._db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS)
        try:
            _to_wal(db)
            db.execute("PRAGMA synchronous = NORMAL")  # it can be made again from the folders
            db.execute("BEGIN IMMEDIATE")
            self._prepare(db)
            db.execute("COMMIT")
            return db
        except BaseException:
            db.close()
            raise


def _to_wal(db: sqlite3.Connection) -> None:
    """Two that do it at once to a new file wait for each other, or are refused without a wait: so it is tried again."""
    give_up = time.monotonic() + _BUSY_SECONDS
    db.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(random.uniform(0.001, 0.01))
    db.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")
