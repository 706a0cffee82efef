"""Files, links and folders that a command changed, taken out of its layer: to be read as text, or to be kept in the
session's store."""

import os
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerRoot
from amanu.system.untrusted_files import opened_folder
from amanu.workspace.replacement import Identity


@dataclass(frozen=True)
class TakenFile:
    """A path of the workspace that a command changed."""

    root: LayerRoot
    name: str
    """Relative to the root."""
    below: Identity | None
    """The file or link that the workspace had there; None if it had nothing there."""
    stored: Path | None
    """The command's version, outside the layer's roots; None if there is none: it was deleted."""
    what: str = ""
    """A description for the user, such as "file in another encoding"; "" for a plain binary file."""

    @property
    def path(self) -> Path:
        return self.root.path / self.name

    def is_unchanged(self) -> bool:
        """Whether the workspace still has `below` at that path."""
        try:
            found = self.path.lstat()
        except OSError:
            return self.below is None
        return self.below == (found.st_ino, found.st_ctime_ns)


class TakenFolder:
    """A new folder inside a layer's own folder, made when it is first needed. Everything here blocks."""

    def __init__(self, layer: Path) -> None:
        self._folder = layer / "taken" / token_hex(8)
        self._count = 0

    def new(self) -> Path:
        """An unused path in the folder. Raises `OSError`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._count += 1
        return self._folder / str(self._count)

    def take(self, root: LayerRoot, name: str) -> Path:
        """Move what is at that path out of the layer. Returns where it is now. Raises `OSError`."""
        stored = self.new()
        *parents, last = name.split("/")
        with _opened(root, parents) as folder:
            os.rename(last, stored, src_dir_fd=folder)
        return stored

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def identity(change: Change) -> Identity | None:
    """The identity of what the workspace had at the changed path; None for nothing."""
    return None if change.below is None else (change.below.st_ino, change.below.st_ctime_ns)


@contextmanager
def _opened(root: LayerRoot, parents: list[str]) -> Generator[int]:
    """The descriptor of that folder in the layer, while the context is open."""
    with ExitStack() as stack:
        folder = stack.enter_context(opened_folder(root.upper))
        for parent in parents:
            folder = stack.enter_context(opened_folder(parent, folder))
        yield folder
