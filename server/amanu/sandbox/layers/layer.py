"""A layer on disk: what commands have changed in workspace roots, kept apart from the roots themselves.

    STATE/layers/ID/
      layer.json        the roots, as they were when the layer was created
      owner             locked by the daemon that created it, until it is closed
      mounted           locked while a command runs in it, or while it is being changed
      0/upper           what is changed in the first root, as the overlay file system stores it
      0/work            the kernel's own
      0/merged          where the first root is mounted while a command runs

An overlay must never be mounted twice, and its upper folder not be written to while it is mounted: the kernel does not
refuse it, and anything can happen. That is what the lock on `mounted` is for.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from amanu.sandbox.layers import upper as upper_folder
from amanu.sandbox.layers.mount import is_mountable
from amanu.storage.errors import is_full
from amanu.system.untrusted_files import FOLDER, remove

_WAIT = 1.0
"""Seconds to wait for the end of the mount, which follows the end of the command at once."""
_POLL = 0.005


class LayerError(Exception):
    """A layer cannot be used. `str()` is a sentence for the model and the user."""


def explained(error: OSError | LayerError) -> str:
    """What went wrong with a layer or with what comes from it, as sentences that say what to do."""
    if is_full(error):
        return "The disk is full. Free some space, then run the command again."
    if isinstance(error, LayerError):
        return str(error)
    place = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return f"{place}{error.strerror or error}. Run the command again."


@dataclass(frozen=True)
class LayerRoot:
    """One root of a layer."""

    path: Path
    """Its real path in the workspace."""
    identity: tuple[int, int]
    """Device and inode of the workspace's folder."""
    folder: Path
    """Its folder in the layer, with `upper`, `work` and `merged`."""

    @property
    def upper(self) -> Path:
        return self.folder / "upper"

    @property
    def merged(self) -> Path:
        return self.folder / "merged"

    @contextmanager
    def opened(self) -> Generator[upper_folder.Folders]:
        """The root's two folders, opened. Raises `LayerError` when the workspace's is gone or another one. Blocking."""
        with contextlib.ExitStack() as stack:
            try:
                below = os.open(self.path, FOLDER)
                stack.callback(os.close, below)
                above = os.open(self.upper, FOLDER)
                stack.callback(os.close, above)
            except OSError as error:
                raise LayerError(f"{error.filename} cannot be opened: {error.strerror}.") from None
            if _identity(os.fstat(below)) != self.identity:
                raise LayerError(f"{self.path} is no longer the folder that the layer was made for.")
            yield upper_folder.Folders(above, below)


class Layer:
    """A layer that exists. Everything blocks; `OSError` means that the disk refused."""

    def __init__(self, folder: Path, roots: Sequence[LayerRoot], owner: int = -1) -> None:
        self.folder = folder
        self.roots = tuple(roots)
        self._owner = owner

    @classmethod
    def create(cls, layers: Path, roots: Iterable[Path]) -> "Layer":
        """An empty layer in the folder `layers`, over these roots, which are real paths; a root inside another one is
        part of that. It is ours until `close` or `remove`. Raises `LayerError`."""
        outermost = outermost_roots(roots)
        if fault := refusal(layers, outermost):
            raise LayerError(fault)
        folder = layers / token_hex(8)
        with _creating(layers):
            folder.mkdir(mode=0o700)
            owner = os.open(folder / "owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(owner, fcntl.LOCK_EX)
        try:
            layer = cls(folder, [_make(root, folder / str(at)) for at, root in enumerate(outermost)], owner)
            described = [{"path": str(root.path), "identity": root.identity} for root in layer.roots]
            (folder / "layer.json").write_text(json.dumps({"roots": described}))
        except BaseException:
            os.close(owner)  # the next one to clean up removes it
            raise
        return layer

    @classmethod
    def open(cls, folder: Path) -> "Layer":
        """The layer in that folder, whoever owns it. Raises `LayerError`."""
        try:
            described = json.loads((folder / "layer.json").read_bytes())["roots"]
            roots = [
                LayerRoot(Path(each["path"]), (each["identity"][0], each["identity"][1]), folder / str(at))
                for at, each in enumerate(described)
            ]
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            raise LayerError(f"There is no layer in {folder}.") from None
        return cls(folder, roots)

    def place(self, path: Path) -> tuple[LayerRoot, str]:
        """The root that contains this absolute path, and the path in it ("." for the root itself). Raises
        `LayerError`."""
        for root in self.roots:
            if path == root.path or root.path in path.parents:
                return root, str(path.relative_to(root.path))
        raise LayerError(f"{path} is not in a folder of the layer.")

    @contextmanager
    def locked(self) -> Generator[int]:
        """While the context is open, the layer is not mounted, or only by who opened it. Yields the descriptor that
        holds the lock: processes that inherit it hold it, too. Raises `LayerError` when a command runs in the layer."""
        with (self.folder / "mounted").open("ab") as file:  # a descriptor of its own: two of them exclude each other
            until = time.monotonic() + _WAIT
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise LayerError("Another command is running in the same layer. Wait until it ends.") from None
                    time.sleep(_POLL)
            yield file.fileno()

    def write(self, path: Path, data: bytes, mode: int) -> None:
        """Lay a file in: the next command sees these bytes there, with that mode, instead of what was there. Missing
        folders are made. Raises `LayerError` when a command runs in the layer, and where a folder would have to be is
        something else, as a file or a link."""
        with self._changing(path) as (folders, name):
            upper_folder.write(folders, name, data, mode)

    def put(self, path: Path, stored: Path) -> None:
        """Put a file or link back that was taken out of the layer. Raises `LayerError` as `write` does."""
        with self._changing(path) as (folders, name):
            upper_folder.put(folders, name, stored)

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it that are missing. Raises `LayerError` as `write` does."""
        with self._changing(path / "-") as (folders, name), upper_folder.made(folders, name):
            pass

    def delete(self, path: Path) -> None:
        """Lay a deletion in: the next command sees nothing there. Raises `LayerError` as `write` does."""
        with self._changing(path) as (folders, name):
            upper_folder.delete(folders, name)

    def drop(self, path: Path) -> None:
        """Forget what the layer holds of that path, and of all in it: the next command sees what is in the workspace.
        Raises `LayerError` when a command runs in the layer."""
        with self._changing(path) as (folders, name):
            upper_folder.drop(folders, name)

    def reveal(self, path: Path) -> None:
        """Have a folder hide only the single paths that are deleted in it: see `upper.reveal`. Raises `LayerError`
        while a command runs in the layer."""
        with self._changing(path) as (folders, name):
            upper_folder.reveal(folders, name)

    def visible(self, path: Path) -> os.stat_result | None:
        """What the next command would find there, by `lstat`, without following links; None for nothing. To be called
        while no command runs in the layer."""
        root, name = self.place(path)
        with root.opened() as folders:
            return root.upper.lstat() if name == "." else upper_folder.visible(folders, name)

    def close(self) -> None:
        """Give it up: whoever cleans up next removes it. Closing twice is harmless."""
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1

    def remove(self) -> None:
        """Remove it from the disk, and close it. Raises `LayerError` when a command runs in it."""
        with self.locked():
            _remove(self.folder)
        self.close()

    @contextmanager
    def _changing(self, path: Path) -> Generator[tuple[upper_folder.Folders, str]]:
        root, name = self.place(path)
        if name == ".":
            raise LayerError(f"{path} is the root itself.")
        with self.locked(), root.opened() as folders:
            try:
                yield folders, name
            except NotADirectoryError:
                raise LayerError(f"A folder that {path} would be in is something else in the layer.") from None


def clean(layers: Path) -> None:
    """Remove the layers of daemons that have ended. Blocking."""
    with contextlib.suppress(OSError):
        with left_layers(layers) as folders:
            left = folders
        for folder in left:  # nobody opens them any more
            with contextlib.suppress(OSError, LayerError):
                Layer(folder, ()).remove()


@contextmanager
def left_layers(layers: Path) -> Generator[list[Path]]:
    """The layers of daemons that have ended. While the context is open, no other process looks for them. Raises
    `OSError`. Blocking."""
    if not layers.is_dir():
        yield []
        return
    with _creating(layers):
        yield [folder for folder in layers.iterdir() if folder.is_dir() and not _is_owned(folder)]


def refusal(layers: Path, roots: Sequence[Path]) -> str:
    """Why there can be no layer over these roots with its files in `layers`, as a sentence, as far as that can be seen
    without trying (`trial.py`); "" when nothing is against it."""
    place = Path(os.path.realpath(layers))
    if not roots:
        return "There is no folder to make a layer over."
    if not is_mountable(place):
        return f"The path {layers} has characters that a layer's folder cannot have (comma, colon, quote, backslash)."
    for root in roots:
        if root == Path("/"):
            return "The whole machine cannot be in a layer."
        if root == place or root in place.parents or place in root.parents:
            return f"Amanu keeps private copies of workspaces in {layers}; {root} may neither hold that nor be in it."
    return ""


def outermost_roots(roots: Iterable[Path]) -> list[Path]:
    """The roots that are in no other one, in their order."""
    each_once = list(dict.fromkeys(roots))
    return [root for root in each_once if not any(other in root.parents for other in each_once)]


def _make(root: Path, folder: Path) -> LayerRoot:
    try:
        handle = os.open(root, FOLDER)
    except OSError as error:
        raise LayerError(f"The folder {root} cannot be opened: {error.strerror}.") from None
    try:
        below = os.fstat(handle)
    finally:
        os.close(handle)
    for name in ("upper", "work", "merged"):
        (folder / name).mkdir(mode=0o700, parents=True)
    # What a command sees of the root itself is its upper folder.
    upper_folder.dress(folder / "upper", below)
    return LayerRoot(root, _identity(below), folder)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


@contextmanager
def _creating(layers: Path) -> Generator[None]:
    """While the context is open, no other process creates layers or looks for left-over ones."""
    layers.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (layers / "lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_owned(folder: Path) -> bool:
    try:
        with (folder / "owner").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _remove(folder: Path) -> None:
    parent = os.open(folder.parent, FOLDER)
    try:
        remove(folder.name, parent)
    finally:
        os.close(parent)
