"""Where something is mounted that was not there: empty folders and sockets in the workspace, while a command runs.

A name can only be kept from coming to be by being there, so we make it, and remove it when no command needs it. A file
is a *socket* in the person's eyes: git and searches pass by it, nobody can write into it, and what we made can never be
mistaken for what somebody else did. Markdown is an empty folder (`view.is_folder`). What a killed daemon left is
removed by the next one: its record is not locked.
"""

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from amanu.sandbox.spares import Spares

_counter = itertools.count()


class Mounts:
    """Records live in `folder`, one file for each user of mount points or temporary folders, locked while it lives.
    `spares` is best on the file system of the workspaces."""

    def __init__(self, folder: Path, spares: Path | None = None) -> None:
        self._folder = folder
        self._spares = Spares(spares or folder / "empty")

    @contextmanager
    def points(self, absent: Sequence[Path], is_folder: Callable[[Path], bool]) -> Generator[tuple[Path, ...]]:
        """Make these while the context is open; gives those that are there now. One that cannot be made (file systems
        without sockets, no right to write) or that somebody else makes at this moment is left out. Blocking, short."""
        if not absent:
            yield ()
            return
        with self._record([str(each) for each in absent]) as path:
            try:
                with self._lock():
                    others = self._used(path)
                    there = self._make([each for each in absent if is_folder(each)], absent)
                yield tuple(each for each in absent if each in there or str(each) in others)
            finally:
                with self._lock():
                    path.unlink(missing_ok=True)
                    others = self._used(path)
                    self._remove(each for each in absent if str(each) not in others)

    @contextmanager
    def temporary(self, make: Callable[[], str]) -> Generator[Path]:
        """A folder that `make` makes, removed with all that is in it; by the next daemon if need be. Blocking."""
        made = Path(make())
        with self._record([f"{made}/"]) as path:
            try:
                yield made
            finally:
                shutil.rmtree(made, ignore_errors=True)
                path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove what processes left that are no more, and folders that are kept. Blocking."""
        with contextlib.suppress(OSError), self._lock():
            for path in self._folder.glob("*.json"):
                with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    for each in json.load(file):
                        if each.endswith("/"):
                            shutil.rmtree(each, ignore_errors=True)
                        elif each not in self._used(path):
                            self._remove([Path(each)])
                    path.unlink(missing_ok=True)
            self._spares.clean()

    @contextmanager
    def _record(self, paths: list[str]) -> Generator[Path]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{os.getpid()}-{next(_counter)}.json"
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(paths))
            file.flush()
            yield path

    @contextmanager
    def _lock(self) -> Generator[None]:
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _used(self, but: Path) -> set[str]:
        """Paths in the records of those that live; in `_lock`."""
        used: set[str] = set()
        for path in self._folder.glob("*.json"):
            if path == but:
                continue
            with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:  # its owner lives
                    used.update(json.load(file))
        return used

    def _make(self, folders: Sequence[Path], paths: Sequence[Path]) -> set[Path]:
        """Make those paths, of which `folders` are folders. Gives those that were made. Sockets of one folder are links
        to one: that is ten times as fast."""
        made: set[Path] = set()
        sockets: dict[Path, Path] = {}
        for path in paths:
            with contextlib.suppress(OSError):
                if path in folders:
                    self._spares.make(path)
                elif not _link(sockets.get(path.parent), path):
                    os.mknod(path, stat.S_IFSOCK | 0o600)
                    sockets[path.parent] = path
                made.add(path)
        return made

    def _remove(self, paths: Iterable[Path]) -> None:
        """Only what is empty: anything else is somebody else's."""
        for path in paths:
            with contextlib.suppress(OSError):
                mode = path.lstat().st_mode
                if stat.S_ISSOCK(mode):
                    path.unlink()
                elif stat.S_ISDIR(mode):
                    self._spares.remove(path)


def _link(first: Path | None, path: Path) -> bool:
    with contextlib.suppress(OSError):
        if first is not None:
            os.link(first, path)
            return True
    return False
