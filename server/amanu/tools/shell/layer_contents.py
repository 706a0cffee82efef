"""Contents of a layer that are not text, put into it and dropped from it. Everything here blocks."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from amanu.sandbox.layers.layer import Layer
from amanu.tools.shell.taken_files import TakenFile


def put_back(layer: Layer, files: Iterable[TakenFile]) -> None:
    """Put these changes into the layer, where the next command finds them."""
    for file in files:
        if file.stored is None:
            layer.delete(file.path)
        else:
            layer.put(file.path, file.stored)


def drop(layer: Layer, paths: Sequence[Path]) -> None:
    """Forget what the layer has at these paths: files before their folders, which are dropped once they are empty."""
    for path in sorted(dict.fromkeys(paths), key=lambda path: -len(path.parts)):
        root, name = layer.place(path)
        upper = root.upper / name
        if upper.is_dir() and not upper.is_symlink():
            layer.reveal(path)  # entries that stay deleted keep it from being empty, and so from being removed
            with contextlib.suppress(OSError):
                upper.rmdir()
        else:
            layer.drop(path)


def drop_folders(layer: Layer, folders: Sequence[Path]) -> None:
    """Forget empty folders, and the folders above that were made for them."""
    above = [parent for folder in folders for parent in folder.parents if not os.path.lexists(parent)]
    drop(layer, [*folders, *above])


def lay_in_emptied(layer: Layer, folders: Sequence[Path]) -> None:
    """Delete, in the layer, those of the folders in which it no longer shows anything. They come innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):  # it is gone in the workspace, too
            if not any(layer.visible(folder / name) for name in os.listdir(folder)):  # noqa: PTH208 (names only)
                layer.delete(folder)
