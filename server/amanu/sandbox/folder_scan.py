"""Scan one workspace folder for names that matter to the sandbox. Each command scans hundreds of folders; one that did
not change is not read again."""

import os
import stat
import time
from dataclasses import dataclass

from amanu.core import protected_paths as protected

_PASSED_BY = {".git", "node_modules", "__pycache__", "site-packages", "target", ".venv", "venv", ".tox", ".mypy_cache"}
_SETTLED = 3.0
"""Seconds. Two changes within one tick of a file system's clock (2 s on FAT) leave the same time stamp, so a scan is
cached only when it was made this long after the stamp was first seen, by our own clock."""
_MOST = 20_000

_Stamp = tuple[int, int, int, int]
_cache: dict[str, "tuple[_Stamp, float, FolderScan | None]"] = {}
"""Path → its time stamp, when that was first seen, and the scan made after it settled."""


@dataclass(frozen=True, slots=True)
class FolderScan:
    """Absolute paths of a folder's entries, by what they mean to the sandbox."""

    protected: tuple[str, ...] = ()
    perhaps_secret: tuple[str, ...] = ()
    """Files and folders that may be secret, like `.env`, judging by their names alone."""
    sockets: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    """Folders that are worth scanning."""


def scan_folder(path: str) -> FolderScan:
    """Scan a folder; empty when it cannot be read. Blocking; takes a microsecond when nothing changed."""
    try:
        status = os.stat(path)  # noqa: PTH116
        stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        moment = time.monotonic()
        cached_stamp, since, cached_scan = _cache.get(path, (None, moment, None))
        if cached_stamp == stamp and cached_scan is not None:
            return cached_scan
        if cached_stamp != stamp:
            since = moment
        folder = _read(path)
    except OSError:
        return FolderScan()
    if len(_cache) >= _MOST:
        _cache.clear()
    _cache[path] = (stamp, since, folder if moment - since >= _SETTLED else None)
    return folder


def _read(path: str) -> FolderScan:
    names, perhaps_secret, sockets, below = list[str](), list[str](), list[str](), list[str]()
    folder_name = os.path.basename(path)  # noqa: PTH119
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if protected.is_protected(name, folder_name):
                names.append(entry.path)
            if protected.may_be_secret(name):
                perhaps_secret.append(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if name not in _PASSED_BY:
                    below.append(entry.path)
            elif not entry.is_file(follow_symlinks=False) and _is_socket(entry):
                sockets.append(entry.path)
    return FolderScan(tuple(names), tuple(perhaps_secret), tuple(sockets), tuple(below))


def _is_socket(entry: "os.DirEntry[str]") -> bool:
    try:
        return not entry.is_symlink() and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False  # gone
