"""A layer for one command, which is thrown away with everything that the command changed."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from amanu.sandbox.layers.changes import read_changes
from amanu.sandbox.layers.layer import Layer, LayerRoot

_Status = tuple[int, ...]


class DiscardedLayer:
    """`there` are the real paths of what the command finds instead of the workspace's files and folders. Raises
    `OSError`. Blocking."""

    def __init__(self, layer: Layer, there: Iterable[Path]) -> None:
        self.folder = layer.folder
        self._layer = layer
        self._there = {path: found for path in there if (found := _status(layer, path)) is not None}

    async def has_changes(self) -> bool:
        """Whether the command changed anything in the workspace's folders, once it has ended. Raises `LayerError`,
        `OSError`."""
        return await asyncio.to_thread(lambda: any(self._changes()))

    def _changes(self) -> Iterator[bool]:
        """For each path that the layer has, whether the command changed it."""
        folders = {folder for path in self._there for folder in path.parents}
        with self._layer.locked():
            for root in self._layer.roots:

                def prune(path: str, is_folder: bool, root: LayerRoot = root) -> bool:
                    return is_folder and root.path / path in self._there

                changes = read_changes(root, limit=len(self._there) + len(folders) + 1, prune=prune)
                yield not changes.complete
                for change in changes.found:
                    path = root.path / change.path
                    if path in self._there:
                        yield _status(self._layer, path) != self._there[path]
                    else:
                        yield path not in folders


def _status(layer: Layer, path: Path) -> _Status | None:
    root, name = layer.place(path)
    try:
        found = os.lstat(root.upper / name)
    except (FileNotFoundError, NotADirectoryError):  # it could not be laid in, or the command has removed it
        return None
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
