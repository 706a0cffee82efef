"""What a command changed and no proposal shows: kept in the layer's folder, by call, until it is decided on."""

import os
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amanu.sandbox.layers.apply import ApplyError, Batch, Identity, Move, WorkspaceChanged
from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerError, LayerRoot, explained
from amanu.sandbox.layers.transfer import copy
from amanu.sandbox.layers.untrusted_files import opened_folder


@dataclass(frozen=True)
class HeldFile(Move):
    """A changed path, which is kept where it is `stored`."""

    what: str
    """For the user: "binary file, 4,096 bytes", "link to ../x", "deleted"."""


class HeldFolder:
    """Where the files of one call are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    @property
    def layer(self) -> Path:
        """The layer's folder."""
        return self.folder.parents[1]

    def batch(self, files: Sequence[HeldFile], lock: Path | None = None) -> Batch:
        """Those files, to be brought into the workspace together."""
        return Batch(f"{self.folder.name}-{self._next()}", tuple(files), lock)

    def take(self, root: LayerRoot, name: str) -> Path:
        """Move a path out of the layer. Returns where it is. Raises `OSError`. Blocking."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = self.folder / str(self._next())
        *parents, last = name.split("/")
        with _opened(root, parents) as folder:
            os.rename(last, stored, src_dir_fd=folder)
        return stored

    def copy(self, root: LayerRoot, name: str) -> Path:
        """The same, but the layer keeps it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = self.folder / str(self._next())
        *parents, last = name.split("/")
        with _opened(root, parents) as source, opened_folder(self.folder) as folder:
            copy(last, source, stored.name, folder)
        return stored

    def _next(self) -> int:
        self._count += 1
        return self._count

    def remove(self) -> None:
        """Blocking."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Applied:
    """What became of files that were to be brought into the workspace."""

    files: list[HeldFile] = field(default_factory=list[HeldFile])
    changed: list[HeldFile] = field(default_factory=list[HeldFile])
    """Not applied: they changed in the workspace meanwhile."""
    failed: list[HeldFile] = field(default_factory=list[HeldFile])
    """Not applied: the disk refused, because of `fault`."""
    fault: str = ""
    git: bool = False
    """Whether changes to repositories were applied with them."""
    bits: list[Path] = field(default_factory=list[Path])
    """Files whose executable bits were changed."""
    unset: dict[Path, str] = field(default_factory=dict[Path, str])
    """Files whose executable bits could not be changed, and why."""

    folders: dict[Path, str] = field(default_factory=dict[Path, str])
    """Folders that could not be made, and why."""

    @property
    def missing(self) -> list[Path]:
        """All that was not applied, but for repositories."""
        return list(dict.fromkeys([*(file.path for file in self.left), *self.unset, *self.folders]))

    @property
    def left(self) -> list[HeldFile]:
        """The files that were not applied."""
        return [*self.changed, *self.failed]

    def note_bits(self, executable: Mapping[Path, bool], faults: Mapping[Path, OSError | LayerError]) -> None:
        """Executable bits were to be set or cleared."""
        self.bits = [path for path in executable if path not in faults]
        self.unset = {path: explained(error) for path, error in faults.items()}

    def notes(
        self, names: Callable[[Sequence[Path]], str], how: str = "", advice: str = " Run the command again."
    ) -> list[str]:
        """That for the model and the user. `names`: words paths."""
        files, changed, failed = (
            names([file.path for file in files]) for files in (self.files, self.changed, self.failed)
        )
        notes = [f"Applied{how}: {files}."] if files else []
        if changed:
            notes.append(f"Not applied, because they changed in the workspace: {changed}.{advice}")
        notes += [f"Not applied: {failed}. {self.fault}"] if failed else []
        return notes + [f"Executable bit not changed: {names([path])}. {why}" for path, why in self.unset.items()]


def apply_held(files: Sequence[tuple[HeldFile, Batch]]) -> Applied:
    """Bring each file into the workspace, by itself. Blocking."""
    applied = Applied()
    for file, batch in files:
        try:
            batch.apply()
            applied.files.append(file)
        except WorkspaceChanged:
            applied.changed.append(file)
        except ApplyError as error:
            applied.failed.append(file)
            applied.fault = str(error)
    return applied


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
