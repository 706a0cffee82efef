"""Notes of daemons from before protocol 3, which also had files, executable bits and git's part of a decision. A batch
of files is finished only if none of them has changed in the workspace since. To be removed with the second release.
Everything here blocks."""

import contextlib
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot
from amanu.sandbox.layers.transfer import place
from amanu.system.untrusted_files import FILE, FOLDER, TEMPORARY, opened_folder, status


def finish_old(layer: Layer, entry: dict[str, Any]) -> None:
    """Finish the parts of a note that only such a daemon wrote. Raises `LayerError`, `OSError`; for a malformed
    note, also `ValueError`, `LookupError`, `TypeError`, `AttributeError`."""
    roots = {root.folder.name: root for root in layer.roots}
    for batch in entry.get("batches", ()):
        moves = [
            (roots[root], str(name), below, None if stored is None else Path(stored))
            for root, name, below, stored in batch["moves"]
        ]
        todo = [move for move in moves if move[3] is None or os.path.lexists(move[3])]
        with contextlib.suppress(OSError, LayerError):
            if all(_is_unchanged(root.path / name, below) for root, name, below, _ in todo):
                for root, name, _, stored in todo:
                    _make(root, name, stored)
        if batch["lock"] and Path(batch["lock"]).is_symlink():
            Path(batch["lock"]).unlink()
    for path, is_set in entry.get("executable", ()):
        with contextlib.suppress(OSError, LayerError):
            _set_executable(*layer.place(Path(path)), is_set=is_set)


def _is_unchanged(path: Path, below: list[int] | None) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return below is None
    return below == [found.st_ino, found.st_ctime_ns]


def _make(root: LayerRoot, name: str, stored: Path | None) -> None:
    with _opened_parent(root, name, make=stored is not None) as (folder, last):
        if stored is None:
            os.unlink(last, dir_fd=folder)
        else:
            with opened_folder(stored.parent) as source:
                place(stored.name, source, last, folder, f".old{TEMPORARY}", status(last, folder))


def _set_executable(root: LayerRoot, name: str, *, is_set: bool) -> None:
    with _opened_parent(root, name, make=False) as (folder, last):
        file = os.open(last, FILE, dir_fd=folder)
        try:
            mode = os.fstat(file).st_mode
            if stat.S_ISREG(mode):
                os.fchmod(file, stat.S_IMODE(mode | (mode & 0o444) >> 2 if is_set else mode & ~0o111))
        finally:
            os.close(file)


@contextmanager
def _opened_parent(root: LayerRoot, path: str, *, make: bool) -> Generator[tuple[int, str]]:
    """The opened folder of the workspace that holds the relative path, and the last part of the path. No link is
    followed. `make`: make the folders that are missing."""
    with root.opened() as folders, ExitStack() as stack:
        folder = folders.below
        assert folder is not None
        *parents, name = path.split("/")
        for parent in parents:
            if make and status(parent, folder) is None:
                os.mkdir(parent, 0o755, dir_fd=folder)
            folder = os.open(parent, FOLDER, dir_fd=folder)
            stack.callback(os.close, folder)
        yield folder, name
