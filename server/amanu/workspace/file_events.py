"""The system's own events of files (inotify), heard in the event loop: nothing wakes while nothing happens.

For files that may be looked at for days: what was applied and waits to be reviewed. What `watcher.py` hears is heard
faster and surer there, by a thread that looks again each second; here a file system that tells of nothing (a network
drive) is not heard. One watch stands for all files of a folder. The folders above tell only of being moved or deleted
themselves, so that what else happens there wakes nobody.
"""

import asyncio
import ctypes
import logging
import os
import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_ATTRIBUTES, _WRITTEN, _FROM, _TO, _CREATED, _DELETED = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
_SELF_DELETED, _SELF_MOVED, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x4000, 0x8000
_ONLY_FOLDERS, _IS_FOLDER = 0x1000000, 0x40000000
_ITSELF = _SELF_DELETED | _SELF_MOVED
_ALL = _ATTRIBUTES | _WRITTEN | _FROM | _TO | _CREATED | _DELETED | _ITSELF
_EVENT = struct.Struct("iIII")
_MOST = 1 << 16

OnChange = Callable[[], None]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Watch:
    number: int
    mask: int
    identity: tuple[int, int]
    """Device and inode: one made anew under the name is another."""


class FileEvents:
    """One per daemon. All its methods are for the event loop's thread."""

    def __init__(self) -> None:
        self._files: defaultdict[Path, dict[str, list[OnChange]]] = defaultdict(dict)
        """Folder → name → who is to be told."""
        self._new: list[tuple[Path, OnChange]] = []
        self._watches: dict[Path, _Watch] = {}
        self._folders: defaultdict[int, set[Path]] = defaultdict(set)
        """Watch → the paths of its folder."""
        self._handle = -1
        self._due: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_warned = False

    @staticmethod
    def are_here() -> bool:
        """Whether this system has such events."""
        return sys.platform == "linux"

    def watch(self, path: Path, on_change: OnChange) -> Callable[[], None]:
        """`on_change` is called whenever the file at that absolute path may have changed, come or gone, and once at the
        beginning: it may have changed just before. Until what this returns is called."""
        self._files[path.parent].setdefault(path.name, []).append(on_change)
        self._new.append((path, on_change))
        self._cover_soon()

        def stop() -> None:
            names = self._files.get(path.parent, {})
            told = names.get(path.name, [])
            if on_change in told:
                told.remove(on_change)
            if not told:
                names.pop(path.name, None)
            if not names and self._files.pop(path.parent, None) is not None:
                self._cover_soon()

        return stop

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        if self._handle >= 0 and self._loop is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
        self._handle = -1
        self._files.clear()
        self._watches.clear()

    # ------------------------------------------------------------------------------------------------

    def _cover_soon(self) -> None:
        """Once for all that is said in this moment: a proposal may have thousands of files."""
        if self._due is None:
            self._loop = asyncio.get_running_loop()
            self._due = self._loop.call_soon(self._cover)

    def _cover(self) -> None:
        """Watch exactly the folders that matter now, and tell of files in those that are others than before."""
        self._due = None
        if not self._files and self._handle < 0:
            return
        wanted = self._wanted()
        changed = [path for path, watch in self._watches.items() if not self._stands(path, watch, wanted.get(path, 0))]
        for path in changed:
            self._remove(path)
        for path in wanted.keys() - self._watches.keys():
            if self._add(path, wanted[path]):
                changed.append(path)
        known, self._new = self._new, []
        told = {id(on_change) for _, on_change in known}
        for path, on_change in known:
            if on_change in self._files.get(path.parent, {}).get(path.name, ()):
                on_change()
        self._tell_below(changed, told)

    def _wanted(self) -> dict[Path, int]:
        """Folder → what it is to tell of."""
        wanted: dict[Path, int] = {}
        for folder in list(self._files):
            nearest = next((each for each in (folder, *folder.parents) if each in wanted or each.is_dir()), None)
            if nearest is None:
                continue
            wanted[nearest] = _ALL
            for parent in nearest.parents[:-1]:
                if parent in wanted:
                    break
                wanted[parent] = _ITSELF
        return wanted

    def _stands(self, path: Path, watch: _Watch, mask: int) -> bool:
        return watch.mask == mask and _identity(path) == watch.identity

    def _add(self, path: Path, mask: int) -> bool:
        identity = _identity(path)
        if identity is None or not self._opened():
            return False
        number = _libc().inotify_add_watch(self._handle, os.fsencode(path), mask | _ONLY_FOLDERS)
        if number < 0:
            self._warn(os.strerror(ctypes.get_errno()))
            return False
        self._watches[path] = _Watch(number, mask, identity)
        self._folders[number].add(path)
        return True

    def _remove(self, path: Path) -> None:
        watch = self._watches.pop(path)
        paths = self._folders[watch.number]
        paths.discard(path)
        if not paths:
            del self._folders[watch.number]
            _libc().inotify_rm_watch(self._handle, watch.number)  # refused if the folder is gone

    def _opened(self) -> bool:
        if self._handle < 0 and self._loop is not None:
            handle = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if handle < 0:
                self._warn(os.strerror(ctypes.get_errno()))
                return False
            self._handle = handle
            self._loop.add_reader(handle, self._read)
        return self._handle >= 0

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("Files that wait to be reviewed cannot be watched: %s.", why)

    def _read(self) -> None:
        try:
            data = os.read(self._handle, _MOST)
        except BlockingIOError:
            return
        at, touched = 0, dict[Path, None]()
        while at < len(data):
            number, mask, _, size = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + size].rstrip(b"\0"))
            at += _EVENT.size + size
            if mask & (_IS_FOLDER | _ITSELF | _IGNORED | _OVERFLOW):
                self._cover_soon()
            if mask & _OVERFLOW:
                touched |= dict.fromkeys(folder / each for folder, names in self._files.items() for each in names)
            touched |= dict.fromkeys(folder / name for folder in self._folders.get(number, ()))
            if mask & _IGNORED:  # it is over, even if the folder that was made anew has the same identity
                for folder in self._folders.pop(number, ()):
                    self._watches.pop(folder, None)
        self._tell(touched)

    def _tell(self, paths: Iterable[Path]) -> None:
        for path in paths:
            for on_change in tuple(self._files.get(path.parent, {}).get(path.name, ())):
                on_change()

    def _tell_below(self, folders: Iterable[Path], told: set[int]) -> None:
        """Tell all who care for a file in these folders or below, but for those who were told just now."""
        changed = set(folders)
        for folder, names in list(self._files.items()) if changed else ():
            if changed.isdisjoint((folder, *folder.parents)):
                continue
            for on_change in [each for told_of in names.values() for each in told_of]:
                if id(on_change) not in told:
                    on_change()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Libc(ctypes.CDLL):
    inotify_init1: Callable[[int], int]
    inotify_add_watch: Callable[[int, bytes, int], int]
    inotify_rm_watch: Callable[[int, int], int]


_loaded: list[_Libc] = []


def _libc() -> _Libc:
    if not _loaded:
        _loaded.append(_Libc(None, use_errno=True))
    return _loaded[0]
