"""A layer for one command, which is thrown away with everything that the command changed."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from amanu.sandbox.layers.changes import read_changes
from amanu.sandbox.layers.layer import Layer

_Status = tuple[int, ...]


class DiscardedLayer:
    """`laid_in` are the real paths of what the command finds there instead of the workspace's files. Raises `OSError`.
    Blocking."""

    def __init__(self, layer: Layer, laid_in: Iterable[Path]) -> None:
        self.folder = layer.folder
        self._layer = layer
        self._laid_in = {path: _status(layer, path) for path in laid_in}

    async def has_changes(self) -> bool:
        """Whether the command changed anything in the workspace's folders, once it has ended. Raises `LayerError`,
        `OSError`."""
        return await asyncio.to_thread(lambda: any(self._changes()))

    def _changes(self) -> Iterator[bool]:
        """For each path that the layer has, whether the command changed it."""
        folders = {folder for path in self._laid_in for folder in path.parents}
        with self._layer.locked():
            for root in self._layer.roots:
                changes = read_changes(root, limit=len(self._laid_in) + len(folders) + 1)
                yield not changes.complete
                for change in changes.found:
                    path = root.path / change.path
                    if path in self._laid_in:
                        yield _status(self._layer, path) != self._laid_in[path]
                    else:
                        yield path not in folders


def _status(layer: Layer, path: Path) -> _Status:
    root, name = layer.place(path)
    found = os.lstat(root.upper / name)
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
