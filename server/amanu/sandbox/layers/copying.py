"""Copy what commands have made in one layer into another one. Everything here blocks, and raises `LayerError` and
`OSError`."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.layers.transfer import copy
from amanu.sandbox.layers.upper import is_opaque, is_whiteout, made, make_opaque, make_whiteout
from amanu.system.untrusted_files import opened_folder, remove, status

_BLOCK = 512
"""Bytes of a block, as `lstat` counts them."""


def copy_paths(source: Layer, target: Layer, paths: Iterable[Path], bytes_left: int) -> list[Path]:
    """Copy what `source` has at those paths, files and whole folders, to where `target` shows it to its commands. Call
    it only while no command runs in either. `bytes_left`: what all of it may take on disk. Returns the paths that did
    not fit."""
    left: list[Path] = []
    with source.locked(), target.locked():
        for path in paths:
            size = _copy_path(source, target, path, bytes_left)
            bytes_left -= size
            if bytes_left < 0:
                bytes_left += size
                left.append(path)
    return left


def _copy_path(source: Layer, target: Layer, path: Path, bytes_left: int) -> int:
    """Returns the bytes it takes, 0 where nothing is there; if that is more than `bytes_left`, nothing is copied."""
    (origin, name), (root, _) = source.place(path), target.place(path)
    *parents, last = name.split("/")
    with ExitStack() as stack:
        above = stack.enter_context(opened_folder(origin.upper))
        for parent in parents:
            if (found := status(parent, above)) is None or not stat.S_ISDIR(found.st_mode):
                return 0
            above = stack.enter_context(opened_folder(parent, above))
        folders = stack.enter_context(root.opened())
        into, _, _ = stack.enter_context(made(folders, name))
        remove(last, into)
        copying = _Copying(bytes_left)
        copying.copy(last, above, last, into)
        if copying.size > bytes_left:
            remove(last, into)
        return copying.size


def copy_in(layer: Layer, path: Path, stored: Path) -> None:
    """Copy a stored folder to that path of the layer, at which there is nothing."""
    root, name = layer.place(path)
    with (
        layer.locked(),
        root.opened() as folders,
        made(folders, name) as (above, _, last),
        opened_folder(stored.parent) as source,
    ):
        copy_folder(stored.name, source, last, above)


def copy_folder(name: str, source: int, new_name: str, target: int) -> None:
    """Copy a folder with all that is in it from one opened folder into another, in which nothing has the new name. If
    that fails, still nothing has it."""
    try:
        _Copying(sys.maxsize).copy(name, source, new_name, target)
    except BaseException:
        remove(new_name, target)
        raise


class _Copying:
    def __init__(self, bytes_left: int) -> None:
        self._bytes_left = bytes_left
        self.size = 0

    def copy(self, name: str, source: int, new_name: str, target: int) -> None:
        """Copy until there is no more room."""
        found = status(name, source)
        if found is None:
            return
        self.size += found.st_blocks * _BLOCK
        if self.size > self._bytes_left:
            return
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(new_name, 0o700, dir_fd=target)
            with opened_folder(name, source) as inner, opened_folder(new_name, target) as into:
                if is_opaque(inner):
                    make_opaque(into)
                for entry in os.listdir(inner):  # noqa: PTH208
                    self.copy(entry, inner, entry, into)
                os.fchmod(into, stat.S_IMODE(found.st_mode))
                os.utime(into, ns=(found.st_atime_ns, found.st_mtime_ns))
        elif is_whiteout(found):
            make_whiteout(new_name, target)
        elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            copy(name, source, new_name, target)
