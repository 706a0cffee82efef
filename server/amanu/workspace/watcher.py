"""Hears when files that somebody cares about may have changed on disk: a branch switch, a formatter, another tool.

What is said here is a hint, and whoever hears it looks at the text. Two things give it, in a thread of their own that
runs only while somebody cares: the system's file events (`watchfiles`), which are fast and lose some, and the status of
the very files, looked at every `RESCAN` seconds. Only the folders those files lie in are watched, never what is below
them: no watch is spent on `node_modules`, and a home folder or a giant tree costs no more than a small one.
"""

import asyncio
import contextlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

RESCAN = 1.0
"""Seconds between two looks at the files when no event comes; with the rest of the road, a change is known in two."""
DELAY = 0.2
"""Seconds somebody must care before anything starts: an edit that is applied at once never does."""
_DEBOUNCE, _STEP = 200, 50  # milliseconds in which events are gathered at most, and at least

Status = tuple[int, int, int, int, int, int]
_FolderIdentity = tuple[str, int, int]
"""A folder's name, and which folder it is: one made anew under the name is another."""

log = logging.getLogger(__name__)


@dataclass(eq=False)
class _File:
    path: Path
    on_change: Callable[[], None]
    status: Status | None = None
    has_status: bool = False

    def changed(self) -> bool:
        """Whether it is another than at the last look. The first one cannot know, and says yes."""
        current = status(self.path)
        changed = not self.has_status or current != self.status
        self.status, self.has_status = current, True
        return changed


class WorkspaceWatcher:
    """One per daemon. All its methods are for the event loop's thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[_File, None] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._due: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unwatchable: frozenset[_FolderIdentity] | None = None
        """Folders that could not be watched."""
        self._has_warned = False

    def watch(self, path: Path, on_change: Callable[[], None]) -> Callable[[], None]:
        """`heard` is called in the event loop whenever the file at that absolute path may have changed, come or gone,
        and once at the beginning: it may have changed just before. Until what this returns is called."""
        file = _File(path, on_change)
        with self._lock:
            self._files[file] = None
        self._loop = asyncio.get_running_loop()
        if self._due is None:
            self._due = self._loop.call_later(DELAY, self._begin)

        def stop() -> None:
            with self._lock:
                self._files.pop(file, None)
                if not self._files:
                    self._wake.set()

        return stop

    async def close(self) -> None:
        """Care for nothing any more. The thread has ended when this returns."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        with self._lock:
            self._files.clear()
            thread = self._thread
        self._wake.set()
        if thread is not None:
            await asyncio.to_thread(thread.join)

    def _begin(self) -> None:
        self._due = None
        with self._lock:
            if self._thread is None and self._files:
                self._thread = threading.Thread(target=self._run, name="amanu-watching", daemon=True)
                self._thread.start()
        self._wake.set()

    # In the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.clear()
            if not self._has_files():
                return
            folders = self._check_files()
            with contextlib.closing(self._hints(folders)) as hints:
                for _ in hints:
                    if self._check_files() != folders:
                        break

    def _has_files(self) -> bool:
        with self._lock:
            if not self._files:
                self._thread = None
            return self._thread is not None

    def _check_files(self) -> frozenset[_FolderIdentity]:
        """Look at every file and tell of what changed. Returns the folders to watch."""
        with self._lock:
            files = tuple(self._files)
        for file in files:
            if file.changed() and self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody is there to hear
                    self._loop.call_soon_threadsafe(self._notify, file)
        return frozenset(_nearest_folder(folder) for folder in {file.path.parent for file in files})

    def _notify(self, file: _File) -> None:
        if file in self._files:
            file.on_change()

    def _hints(self, folders: frozenset[_FolderIdentity]) -> Generator[object]:
        """Something for each moment in which something may have happened in these folders, and every `RESCAN`
        seconds; ends when it is woken."""
        if folders != self._unwatchable:
            try:
                from watchfiles import watch

                logging.getLogger("watchfiles").setLevel(logging.WARNING)  # else it tells of every event
                yield from watch(
                    *(name for name, _, _ in folders),
                    watch_filter=None,
                    debounce=_DEBOUNCE,
                    step=_STEP,
                    stop_event=self._wake,
                    rust_timeout=int(RESCAN * 1000),
                    yield_on_timeout=True,
                    raise_interrupt=False,
                    recursive=False,
                    ignore_permission_denied=True,
                )
                return
            except (ImportError, OSError, RuntimeError) as error:  # no watch is left, the folder is gone …
                self._unwatchable = folders
                if not self._has_warned and not isinstance(error, FileNotFoundError):
                    self._has_warned = True
                    log.warning("Files cannot be watched (%s); they are looked at every %g s instead.", error, RESCAN)
        while not self._wake.wait(RESCAN):
            yield None


def status(path: Path) -> Status | None:
    """What changes when a file does; None when there is none. A link is not followed. Blocking."""
    try:
        status_result = os.lstat(path)
    except OSError:
        return None
    return (
        status_result.st_dev,
        status_result.st_ino,
        status_result.st_mode,
        status_result.st_size,
        status_result.st_mtime_ns,
        status_result.st_ctime_ns,
    )


def _nearest_folder(folder: Path) -> _FolderIdentity:
    """The folder, or the nearest one above it that there is: it will hear when what is missing is made."""
    for parent in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            status_result = parent.stat()
            if stat.S_ISDIR(status_result.st_mode):
                return str(parent), status_result.st_dev, status_result.st_ino
    return folder.anchor, 0, 0
