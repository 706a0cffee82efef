"""What a command changed and no proposal shows: kept in the layer's folder, by call, until it is decided on."""

import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerRoot
from amanu.sandbox.layers.transfer import put
from amanu.sandbox.layers.untrusted_files import opened_folder

Identity = tuple[int, int]
"""Inode, and ctime in nanoseconds."""


@dataclass(frozen=True)
class HeldFile:
    """A changed path."""

    root: LayerRoot
    name: str
    """Its path in the root."""
    what: str
    """For the user: "binary file, 4,096 bytes", "link to ../x", "deleted"."""
    below: Identity | None
    """What the workspace had there; None for nothing."""
    stored: Path | None
    """Where it is kept; None: it is deleted."""

    @property
    def path(self) -> Path:
        return self.root.path / self.name

    def is_unchanged(self) -> bool:
        """Whether the workspace has there what it had. Blocking."""
        try:
            status = self.path.lstat()
        except OSError:
            return self.below is None
        return self.below == (status.st_ino, status.st_ctime_ns)

    def bring_home(self) -> None:
        """Bring it into the workspace. Raises `OSError`, `LayerError`. Blocking."""
        put(self.root, self.name, self.stored)


class HeldFolder:
    """Where the files of one call are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def take(self, root: LayerRoot, name: str) -> Path:
        """Move a path out of the layer. Returns where it is. Raises `OSError`. Blocking."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._count += 1
        stored = self.folder / str(self._count)
        *parents, last = name.split("/")
        with _opened(root, parents) as folder:
            os.rename(last, stored, src_dir_fd=folder)
        return stored

    def remove(self) -> None:
        """Blocking."""
        shutil.rmtree(self.folder, ignore_errors=True)


def identity(change: Change) -> Identity | None:
    """What the workspace had there."""
    return None if change.below is None else (change.below.st_ino, change.below.st_ctime_ns)


@contextmanager
def _opened(root: LayerRoot, parents: list[str]) -> Generator[int]:
    """The descriptor of a folder in the layer."""
    with ExitStack() as stack:
        folder = stack.enter_context(opened_folder(root.upper))
        for parent in parents:
            folder = stack.enter_context(opened_folder(parent, folder))
        yield folder
