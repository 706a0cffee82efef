"""A layer for one command, which is thrown away with everything that the command changed."""

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from amanu.sandbox.layers.changes import read_changes
from amanu.sandbox.layers.layer import Layer, LayerRoot

_Status = tuple[int, ...]

_WALKED = 2000
"""Files and folders in folders that are looked at; of what is more, a change need not be noticed."""


class DiscardedLayer:
    """`there` are the real paths of what the command finds instead of the workspace's files and folders. Raises
    `OSError`. Blocking."""

    def __init__(self, layer: Layer, there: Iterable[Path]) -> None:
        self.folder = layer.folder
        self._layer = layer
        self._there = _read(layer, there)

    async def has_changes(self) -> bool:
        """Whether the command changed anything in the workspace's folders, once it has ended. Raises `LayerError`,
        `OSError`."""
        return await asyncio.to_thread(lambda: any(self._changes()))

    def _changes(self) -> Iterator[bool]:
        """For each path that may differ, whether the command changed it."""
        folders = {folder for path in self._there for folder in path.parents}
        with self._layer.locked():
            yield _read(self._layer, self._there) != self._there
            for root in self._layer.roots:

                def prune(path: str, is_folder: bool, root: LayerRoot = root) -> bool:
                    return is_folder and root.path / path in self._there

                changes = read_changes(root, limit=len(self._there) + len(folders) + 1, prune=prune)
                yield not changes.complete
                for change in changes.found:
                    path = root.path / change.path
                    yield path not in folders and path not in self._there


def _read(layer: Layer, paths: Iterable[Path]) -> dict[Path, tuple[_Status, dict[str, _Status]]]:
    """What the layer has at these paths, and what is in those that are folders."""
    found: dict[Path, tuple[_Status, dict[str, _Status]]] = {}
    left = _WALKED
    for path in paths:
        root, name = layer.place(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # not laid in, or the command has removed it
            status = os.lstat(root.upper / name)
            inside = _walk(str(root.upper / name), left) if stat.S_ISDIR(status.st_mode) else {}
            left -= len(inside)
            found[path] = _status(status), inside
    return found


def _walk(folder: str, limit: int) -> dict[str, _Status]:
    """What is in that folder by path, or so much of it."""
    found: dict[str, _Status] = {}
    folders = [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:  # a command can make one unreadable
            for entry in sorted(entries, key=lambda entry: entry.name):
                if len(found) == limit:
                    return found
                found[entry.path] = _status(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


def _status(found: os.stat_result) -> _Status:
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
