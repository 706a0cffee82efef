"""The files of a root that are not ignored (`ignore.py`), kept from one use to the next.

A folder's times say whether anything came, went or was renamed in it. So a list is brought up to date by the status of
its folders alone, and only those that changed are read again; git's untracked cache does the same. Nothing is watched,
and no use relies on the list without that check. Where a folder's times do not show changes (on network and shared file
systems), where rules are no regular files, and after very many changes, no list is kept, and the caller lists anew.
"""

import math
import os
import re
import stat
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from weakref import WeakValueDictionary

from amanu.core.protected_paths import is_secret
from amanu.system.sorting import sorted_texts
from amanu.workspace.ignore import MAX_DEPTH, NEVER, RULES, IgnoreRules, open_folder
from amanu.workspace.outer_rules import OuterRules, outer_rules

SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in a folder's times: FAT's clock, the coarsest, ticks every two seconds."""
MAX_CHANGED = 500
"""Folders that are read again one by one; listing anew is faster for more."""
AGAIN = 10
"""Times as long as it took to read a tree until it is read again: one that cannot be kept must not cost each listing
another walk."""
MOUNTS = "/proc/self/mountinfo"
_GITIGNORE = ".gitignore"
_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlay"})
"""Those of Linux whose folders are known to keep their times; shared and network ones need not."""

_OWN_VOLUMES = (Path("/"), Path("/System/Volumes/Data"))
_ESCAPED = re.compile(rb"\\([0-7]{3})")
"""Of a mount's place: what would end a field, as the kernel writes it."""

Times = tuple[int, int, int, int]
"""Device, inode, time of change of the content, and of the status; in nanoseconds."""


class _UnkeptError(Exception):
    """This tree cannot be kept."""


@dataclass(eq=False, slots=True)
class _Folder:
    times: Times
    settled: bool
    """Whether a change after the look must show in `times`."""
    rules: Times | None
    """Of its `.gitignore`."""
    exclude: Times | None
    """The state of its `.git/info/exclude`; without one, of its `.git`. None but for an inner repository."""
    files: list[str]
    """Paths relative to the root, as JSON and people can have them."""
    folders: list[str]
    """Paths relative to the root, as the system has them; without links, ignored folders and `NEVER`."""
    secrets: list[str] | None = None


class FileList:
    """Of one root. Every method is blocking, and safe in threads; `root` is a handle of the root that can be listed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}
        self._paths: Sequence[str] | None = None
        self._path: Path | None = None
        self._outer: OuterRules | None = None
        self._used = 0.0
        self._next_try = 0.0
        """When it is tried again to keep a list; infinite while one is being read."""

    def keep(self, root: int, path: Path, listed: Collection[str], began: int, outer: OuterRules) -> None:
        """Keep what was listed of the root at that real path. `began`: when, in nanoseconds of the clock; `outer`: the
        rules above it at that time."""
        if time.monotonic() < self._next_try or not _keeps_times(path):
            return
        with self._lock:
            self._used = time.monotonic()
            self._forget()
            self._next_try = math.inf
            folders: dict[str, _Folder] = {}
            try:
                with suppress(_UnkeptError, OSError):
                    self._path, self._outer = path, _settled(path, outer)
                    known = {path for path in listed}  # a call of `frozenset` would hold other threads for 50 ms
                    of_listing = known, _parents(known), began - SETTLED
                    _read_below(os.dup(root), "", self._outer.rules, folders, of_listing)
                    self._folders = folders
                    self._paths = self._flattened()
            finally:
                now = time.monotonic()
                self._next_try = now + AGAIN * (now - self._used)

    def paths(self, root: int, folder: str = "") -> Sequence[str] | None:
        """All files below the folder, sorted, as they are at this moment; not to be changed. None when they are not
        kept: also for an ignored folder."""
        with self._lock:
            paths = self._current(root, folder)
            return paths if paths is None or not folder else _below(paths, folder)

    def listing(self, root: int, folder: str = "") -> tuple[Sequence[str], Sequence[str]] | None:
        """Like `paths`, and those of them that hold secrets."""
        with self._lock:
            paths = self._current(root, folder)
            if paths is None:
                return None
            secrets = self._secrets()
            return (_below(paths, folder), _below(secrets, folder)) if folder else (paths, secrets)

    def _current(self, root: int, folder: str) -> Sequence[str] | None:
        """The lists of the whole root; None when the folder is not kept."""
        self._used = time.monotonic()
        if self._paths is not None:
            try:
                if self._update(root):
                    self._paths = self._flattened()
            except (_UnkeptError, OSError):
                self._forget()
        return self._paths if folder in self._folders else None

    def forget_unused(self, seconds: float) -> None:
        """Give the memory back when nobody has asked for so long."""
        with self._lock:
            if time.monotonic() - self._used >= seconds:
                self._forget()

    def _forget(self) -> None:
        self._folders, self._paths = {}, None

    def _secrets(self) -> Sequence[str]:
        for folder in self._folders.values():
            if folder.secrets is None:
                folder.secrets = [path for path in folder.files if is_secret(path)]
        return sorted_texts(chain.from_iterable(folder.secrets or () for folder in self._folders.values()))

    def _flattened(self) -> Sequence[str]:
        return sorted_texts(chain.from_iterable(folder.files for folder in self._folders.values()))

    def _update(self, root: int) -> bool:
        """Look at every folder, the outer before the inner; whether anything is different."""
        before, after, rest = self._folders, dict[str, _Folder](), [""]
        assert self._path is not None and self._outer is not None
        if outer_rules(self._path) is not self._outer:
            raise _UnkeptError
        read, different = 0, False
        while rest:
            path = rest.pop()
            folder = before.get(path)
            try:  # the outer folders were seen a moment ago to be folders: no link is followed
                times = _times(os.stat(path or ".", dir_fd=root, follow_symlinks=False))
            except OSError:
                different = True
                continue  # gone meanwhile
            _require_one_device(times, after.get(""))
            if folder is not None and folder.rules is not None and folder.rules != _rules_times(root, path):
                raise _UnkeptError
            if folder is not None and folder.exclude is not None and folder.exclude != _exclude_times(root, path):
                raise _UnkeptError
            if folder is None or not folder.settled or folder.times != times:
                read += 1
                if read > MAX_CHANGED:
                    raise _UnkeptError
                anew = _read_again(root, path, self._outer.rules)
                if anew is None:
                    different = True
                    continue
                if folder is not None and (folder.rules, folder.exclude) != (anew.rules, anew.exclude):
                    raise _UnkeptError
                if folder is not None and (folder.files, folder.folders) == (anew.files, anew.folders):
                    anew.secrets = folder.secrets
                else:
                    different = True
                folder = anew
            after[path] = folder
            rest += folder.folders
        self._folders = after
        return different


_lists: WeakValueDictionary[tuple[str, ...], FileList] = WeakValueDictionary()


def file_list(root: Path, private: Sequence[str]) -> FileList:
    """The one of the root at that real path, listed without those folders: sessions share it."""
    key = (str(root), *private)
    found = _lists.get(key)
    if found is None:
        found = _lists[key] = FileList()
    return found


def _parents(paths: Collection[str]) -> Collection[str]:
    """All folders that the paths lie in; "" among them."""
    parents = {path.rpartition("/")[0] for path in paths}
    for parent in tuple(parents):
        while parent := parent.rpartition("/")[0]:
            parents.add(parent)
    return parents


def _below(paths: Sequence[str], folder: str) -> Sequence[str]:
    """Those of sorted paths that lie in the folder."""
    return paths[bisect_left(paths, f"{folder}/") : bisect_left(paths, f"{folder}0")]  # "0" comes next after "/"


_Listed = tuple[Collection[str], Collection[str], int]
"""The listed files, their folders, and a time: the listing is complete for folders that have not changed since then."""


def _read_below(
    handle: int,
    path: str,
    rules: IgnoreRules,
    folders: dict[str, _Folder],
    listed: _Listed | None,
    depth: int = MAX_DEPTH,
) -> None:
    """Read a folder and all below it into `folders`. Closes the handle."""
    if listed is not None and path and _shown(path) not in listed[1]:
        listed = None  # perhaps moved here since: what is in it was listed under another name, and has its old times
    try:
        prefix = f"{path}/" if path else ""
        rules = rules.below(handle, prefix)
        folder = folders[path] = _read(handle, path, rules, depth, listed)
        _require_one_device(folder.times, folders[""])
        for inner in folder.folders:
            with suppress(OSError):  # gone meanwhile, unreadable: it is looked at again when something changes
                _read_below(open_folder(inner[len(prefix) :], handle), inner, rules, folders, listed, depth - 1)
    finally:
        os.close(handle)


def _read_again(root: int, path: str, outer: IgnoreRules) -> _Folder | None:
    """One folder, with the rules above it; None when it is gone."""
    handle, prefix = os.dup(root), ""
    parts = path.split("/") if path else []
    try:
        rules = outer.below(handle, "")
        for name in parts:
            inner = open_folder(name, handle)
            os.close(handle)
            handle, prefix = inner, f"{prefix}{name}/"
            rules = rules.below(handle, prefix)
        return _read(handle, path, rules, MAX_DEPTH - len(parts))
    except OSError:
        return None
    finally:
        os.close(handle)


def _read(handle: int, path: str, rules: IgnoreRules, depth: int, listed: _Listed | None = None) -> _Folder:
    now = time.time_ns()
    times = _times(os.fstat(handle))
    files, folders = list[str](), list[str]()
    own_rules: Times | None = None
    exclude: Times | None = None
    prefix = f"{path}/" if path else ""
    known, parents = listed[:2] if listed is not None and max(times[2:]) < listed[2] else (None, ())
    with os.scandir(handle) as entries:
        for entry in entries:
            name = entry.name
            if name in RULES:
                # the listed files were chosen by the rules as they were when the listing began
                settled = now - SETTLED if listed is None else min(now - SETTLED, listed[2])
                plain = _require_plain(os.stat(name, dir_fd=handle, follow_symlinks=False), settled)
                own_rules = plain if name == _GITIGNORE else own_rules
            if name == ".git" and path:
                exclude = _exclude_times(handle, "")
            if name in NEVER:
                continue
            if entry.is_file(follow_symlinks=False):
                shown = _shown(prefix + name)
                if shown in known if known is not None else not rules.hides(name, False):
                    files.append(shown)
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                inner = prefix + name
                if _shown(inner) in parents or not rules.hides(name, True):
                    folders.append(inner)
    return _Folder(times, max(times[2:]) < now - SETTLED, own_rules, exclude, files, folders)


def _require_one_device(times: Times, root: _Folder | None) -> None:
    """Raises `_UnkeptError` for a folder on another file system, which may not keep its times."""
    if root is not None and times[0] != root.times[0]:
        raise _UnkeptError


def _rules_times(root: int, path: str) -> Times | None:
    """None when they are gone."""
    try:
        return _times(os.stat(f"{path}/{_GITIGNORE}" if path else _GITIGNORE, dir_fd=root, follow_symlinks=False))
    except OSError:
        return None


def _exclude_times(root: int, path: str) -> Times | None:
    """None when the repository is gone."""
    for name in (".git/info/exclude", ".git"):
        with suppress(OSError):
            return _times(os.stat(f"{path}/{name}" if path else name, dir_fd=root, follow_symlinks=False))
    return None


def _settled(root: Path, outer: OuterRules) -> OuterRules:
    """Raises `_UnkeptError` if the rules have changed, or a change would perhaps not show."""
    if not (outer.is_settled and outer.is_plain) or outer_rules(root) is not outer:
        raise _UnkeptError
    return outer


def _require_plain(status: os.stat_result, settled: int) -> Times:
    """The times of a rules file. Raises `_UnkeptError` if they would not show a change of its rules: it is no regular
    file, or was written after `settled`."""
    times = _times(status)
    if not stat.S_ISREG(status.st_mode) or max(times[2:]) >= settled:
        raise _UnkeptError
    return times


def _times(status: os.stat_result) -> Times:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _shown(path: str) -> str:
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def _keeps_times(path: Path) -> bool:
    """Whether the file system there is one whose folders say when something changed in them."""
    if sys.platform == "darwin":  # its own volumes, which are APFS or HFS+; shares and sticks are others
        return path.stat().st_dev in {place.stat().st_dev for place in _OWN_VOLUMES if place.exists()}
    nearest, kind, folder = b"", b"", os.fsencode(path) + b"/"
    with suppress(OSError), open(MOUNTS, "rb") as mounts:  # noqa: PTH123
        for line in mounts:
            fields, _, source = line.partition(b" - ")
            place = _ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), fields.split(b" ")[4])
            if len(place) >= len(nearest) and (place == b"/" or folder.startswith(place + b"/")):
                nearest, kind = place, source.split(b" ")[0]
    return kind.decode("ascii", "replace") in _FILE_SYSTEMS
