"""The upper folder of an overlay: what it hides of the lower folder, and changes to it while it is not mounted.

A deleted file is there as a *whiteout*, a character device 0:0, which any user may create. A folder that is *opaque*
hides all that the lower folder of its name contains. Everything here blocks, and raises `OSError`.
"""

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from amanu.sandbox.layers.mount import mount_way
from amanu.system.untrusted_files import FOLDER, opened_folder, remove, status

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_MODE = 0o755


@dataclass(frozen=True)
class Folders:
    """The two folders with one path, opened; a command sees the upper one over the lower one."""

    above: int | None
    """In the layer. None: there is none."""
    below: int | None
    """In the workspace. None: nothing of that is seen here."""


def is_whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: int) -> bool:
    """Whether this opened folder hides the lower one's content."""
    try:
        return os.getxattr(folder, mount_way().opaque_attribute) == b"y"
    except OSError:  # it has no such attribute
        return False


def make_opaque(folder: int) -> None:
    os.setxattr(folder, mount_way().opaque_attribute, b"y")


def make_whiteout(name: str, dir_fd: int) -> None:
    os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=dir_fd)


def dress(made: int | Path, model: os.stat_result) -> None:
    """Give a file or folder that was made in the layer the mode of `model`, and its owner where we may."""
    if os.geteuid() == 0:
        with suppress(OSError):
            os.chown(made, model.st_uid, model.st_gid)
    os.chmod(made, stat.S_IMODE(model.st_mode))  # noqa: PTH101 (after chown, which takes set-uid bits away)


def visible(folders: Folders, path: str) -> os.stat_result | None:
    """What a command finds at that relative path, by `lstat`, without following links; None for nothing."""
    with ExitStack() as stack:
        *parents, name = _parts(path)
        for parent in parents:
            inner = _entered(stack, folders, parent)
            if inner is None:
                return None
            folders = inner
        found = status(name, folders.above) or status(name, folders.below)
        return None if found is None or is_whiteout(found) else found


def write(folders: Folders, path: str, data: bytes, mode: int) -> None:
    """Make a file, in place of whatever is there. Missing folders are made, those of the workspace with their modes.
    Raises `NotADirectoryError` where something else is in place of a folder."""
    with made(folders, path) as (above, below, name):
        remove(name, above)
        handle = os.open(name, _NEW, 0o600, dir_fd=above)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            former = status(name, below)
            if former is not None:
                dress(handle, former)
            os.fchmod(handle, mode)


def put(folders: Folders, path: str, stored: Path) -> None:
    """Move a file or link there, in place of whatever is there, as `write` makes one."""
    with made(folders, path) as (above, _, name):
        remove(name, above)
        os.rename(stored, name, dst_dir_fd=above)


def delete(folders: Folders, path: str) -> None:
    """Make that path be gone."""
    if visible(folders, path) is None:
        return
    with made(folders, path) as (above, below, name):
        remove(name, above)
        if status(name, below) is not None:
            make_whiteout(name, above)


def drop(folders: Folders, path: str) -> None:
    """Remove that path from the layer, if it is there, so that the workspace's version shows again, unless a folder
    above it is gone."""
    with ExitStack() as stack:
        *parents, name = _parts(path)
        inner = _revealed(stack, folders, parents)
        if inner is not None and inner.above is not None:
            remove(name, inner.above)


def reveal(folders: Folders, path: str) -> None:
    """Have the folder at that path, and those above it, hide each deleted entry by itself, and nothing else."""
    with ExitStack() as stack:
        _revealed(stack, folders, _parts(path))


def _revealed(stack: ExitStack, folders: Folders, path: Sequence[str]) -> Folders | None:
    """The folder at that path, after it and those on the way were made no longer opaque; None if the layer has none."""
    for name in path:
        _replace_opacity(name, folders)
        inner = _entered(stack, folders, name)
        if inner is None:
            return None
        folders = inner
    return folders


def _replace_opacity(name: str, folders: Folders) -> None:
    """Have an opaque folder of that name hide the same through its entries, each of which can then be dropped."""
    over, under = status(name, folders.above), status(name, folders.below)
    if over is None or under is None or not (stat.S_ISDIR(over.st_mode) and stat.S_ISDIR(under.st_mode)):
        return
    with ExitStack() as stack:
        above = stack.enter_context(opened_folder(name, folders.above))
        if not is_opaque(above):
            return
        below = os.open(name, FOLDER, dir_fd=folders.below)
        stack.callback(os.close, below)
        for inner in os.listdir(below):  # noqa: PTH208 (of a handle)
            found = status(inner, above)
            if found is None:
                make_whiteout(inner, above)
            elif stat.S_ISDIR(found.st_mode):
                with opened_folder(inner, above) as folder:
                    make_opaque(folder)
        os.removexattr(above, mount_way().opaque_attribute)


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts):
        raise OSError(f"{path!r} is not a relative path")
    return parts


def _entered(stack: ExitStack, folders: Folders, name: str) -> Folders | None:
    """The folders of that name in these folders; None when a command finds no folder there."""
    over, under = status(name, folders.above), status(name, folders.below)
    is_under = under is not None and stat.S_ISDIR(under.st_mode)
    if over is None:
        return _opened(stack, Folders(None, folders.below), name) if is_under else None
    if not stat.S_ISDIR(over.st_mode):
        return None
    return _opened(stack, Folders(folders.above, folders.below if is_under else None), name)


def _opened(stack: ExitStack, parents: Folders, name: str) -> Folders:
    above = below = None
    if parents.above is not None:
        above = stack.enter_context(opened_folder(name, parents.above))
    if parents.below is not None and not (above is not None and is_opaque(above)):
        below = os.open(name, FOLDER, dir_fd=parents.below)
        stack.callback(os.close, below)
    return Folders(above, below)


@contextmanager
def made(folders: Folders, path: str) -> Generator[tuple[int, int | None, str]]:
    """The upper and the lower folder that contain the path, the upper one made if it is missing, and the last part."""
    with ExitStack() as stack:
        *parents, name = _parts(path)
        for parent in parents:
            if folders.above is not None:
                _make(folders.above, parent, status(parent, folders.above), status(parent, folders.below))
            inner = _entered(stack, folders, parent)
            if inner is None:
                raise NotADirectoryError(f"{parent!r} is not a folder")
            folders = inner
        assert folders.above is not None, "it has just been made"
        yield folders.above, folders.below, name


def _make(above: int, name: str, over: os.stat_result | None, under: os.stat_result | None) -> None:
    """Make an upper folder unless something is there. Over a folder of the workspace it looks like that."""
    if over is not None and not is_whiteout(over):
        return
    if over is None and under is not None and not stat.S_ISDIR(under.st_mode):
        return
    if over is not None:
        os.unlink(name, dir_fd=above)
    os.mkdir(name, _FOLDER_MODE, dir_fd=above)
    with opened_folder(name, above) as folder:
        if over is not None:  # the folder that was deleted does not come back
            make_opaque(folder)
        elif under is not None:
            dress(folder, under)
