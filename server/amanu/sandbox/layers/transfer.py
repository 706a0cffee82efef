"""Bring what commands have made in a layer into the workspace, where no proposal can show it. Each file is renamed into
its place, or copied beside it and renamed. Everything here blocks, and raises `OSError`. No link in the workspace is
followed: where one leads to the path, that is an `OSError`."""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.layers.layer import LayerRoot
from amanu.sandbox.layers.upper import is_whiteout
from amanu.system.sparse_files import copy_data
from amanu.system.untrusted_files import FOLDER, TEMPORARY, opened_file, opened_folder, status

_DEPTH = 100
"""Levels of folders that are brought home; each takes a descriptor, and a build has a dozen."""
_HARMLESS = 0o775
"""Bits of modes that come home: neither set-user-id and the like, nor that everybody may write."""
_ATTRIBUTES = ("user.overlay.", "trusted.overlay.")


@dataclass(frozen=True)
class Left:
    """The changes not brought home, by path below the root; without protected files and secrets."""

    kept: list[str] = field(default_factory=list[str])
    """Still in the layer."""
    overtaken: list[str] = field(default_factory=list[str])
    """Changed in the workspace meanwhile: the layer shows that now, and nothing of its own there."""
    dropped: list[str] = field(default_factory=list[str])
    """Pipes, sockets and devices, which the layer has no longer either."""


def transfer(root: LayerRoot, path: str, begun: int | None, kept: Collection[str] = ()) -> Left:
    """Bring an ignored file or folder of the layer into the workspace, but for protected files, files with secrets,
    those that are to be `kept` in the layer (paths below the root), links that lead out of the workspace to anything
    but a program, and what is nested too deep. Nothing is deleted. What is there already is replaced only if it has not
    been changed since `begun`, in nanoseconds; None: nothing is replaced. Raises `LayerError` as well. To be called
    while no command runs in the layer."""
    with root.opened() as folders, ExitStack() as stack:
        above, below = folders.above, folders.below
        assert above is not None and below is not None
        *parents, name = path.split("/")
        for parent in parents:
            above = stack.enter_context(opened_folder(parent, above))
            if status(parent, below) is None:
                os.mkdir(parent, stat.S_IMODE(os.fstat(above).st_mode), dir_fd=below)
            below = os.open(parent, FOLDER, dir_fd=below)
            stack.callback(os.close, below)
        moving = _Transfer(root.path, begun, f".{root.folder.parent.name}{TEMPORARY}", kept)
        moving.move(path, name, above, below)
        return moving.left


def files_in(root: LayerRoot, path: str) -> Iterator[str]:
    """The paths of all files below a path of the layer, and the path itself where it is one."""
    with root.opened() as folders, ExitStack() as stack:
        above = folders.above
        assert above is not None
        *parents, name = path.split("/")
        for parent in parents:
            above = stack.enter_context(opened_folder(parent, above))
        yield from _files_in(path, name, above)


def _files_in(path: str, name: str, folder: int) -> Iterator[str]:
    found = status(name, folder)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        yield path
    elif found is not None and path.count("/") < _DEPTH:
        with opened_folder(name, folder) as inner:
            for entry in sorted(os.listdir(inner)):  # noqa: PTH208
                yield from _files_in(f"{path}/{entry}", entry, inner)


def leads_out(link: Path, target: str, root: Path) -> bool:
    """Whether a link of the workspace at that path leads out of that root."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    if ".." in parts[next((at for at, part in enumerate(parts) if part != ".."), 0) :] and parts != [".."] * len(parts):
        return True  # through whatever comes to be there
    leads_to = os.path.join(link.parent, target)  # noqa: PTH118
    places = os.path.normpath(leads_to), os.path.realpath(leads_to)
    return not all(place == str(root) or place.startswith(f"{root}/") for place in places)


class _Transfer:
    def __init__(self, root: Path, begun: int | None, temporary: str, kept: Collection[str]) -> None:
        self._root = root
        self._begun = begun
        self._kept = kept
        self.left = Left()
        self._temporary = temporary
        """A name that what is copied has for a while; a killed daemon may have left it."""

    def move(self, path: str, name: str, above: int, below: int) -> None:
        over, under = status(name, above), status(name, below)
        parent = path.split("/")[-2] if "/" in path else ""
        if over is None or is_whiteout(over) or protected.is_protected(name, parent) or protected.is_secret(path):
            return
        if path in self._kept or path.count("/") > _DEPTH or self._leads_out(path, name, above, over):
            self.left.kept.append(path)
        elif stat.S_ISDIR(over.st_mode):
            if under is None or stat.S_ISDIR(under.st_mode):
                self._move_folder(path, name, above, below, over, is_new=under is None)
        elif stat.S_ISREG(over.st_mode) or stat.S_ISLNK(over.st_mode):
            if under is None or self._may_replace(under):
                try:
                    place(name, above, name, below, self._temporary, under)
                except FileExistsError:  # it was saved meanwhile
                    self._give_way(path, name, above)
            else:
                if status(self._temporary, below) is not None:
                    _remove(self._temporary, below)
                if self._begun is not None and under.st_ctime_ns >= self._begun:
                    self._give_way(path, name, above)
        else:  # nobody needs the command's sockets and pipes
            os.unlink(name, dir_fd=above)
            self.left.dropped.append(path)

    def _leads_out(self, path: str, name: str, above: int, over: os.stat_result) -> bool:
        """Whether it is a link out of the workspace, to anything but a program: a virtual environment has some."""
        if not stat.S_ISLNK(over.st_mode):
            return False
        link, target = self._root / path, os.readlink(name, dir_fd=above)
        if not leads_out(link, target, self._root):
            return False
        program = os.path.join(link.parent, target)  # noqa: PTH118
        return not (os.path.isfile(program) and os.access(program, os.X_OK))  # noqa: PTH113

    def _give_way(self, path: str, name: str, above: int) -> None:
        """Drop the layer's version: the workspace's was written after the command began, so later commands see it."""
        os.unlink(name, dir_fd=above)
        self.left.overtaken.append(path)

    def _may_replace(self, under: os.stat_result) -> bool:
        is_file = stat.S_ISREG(under.st_mode) or stat.S_ISLNK(under.st_mode)
        return is_file and self._begun is not None and under.st_ctime_ns < self._begun

    def _move_folder(self, path: str, name: str, above: int, below: int, over: os.stat_result, *, is_new: bool) -> None:
        mode = stat.S_IMODE(over.st_mode) & _HARMLESS
        if is_new:
            os.mkdir(name, mode | 0o700, dir_fd=below)
        with opened_folder(name, above) as inner, opened_folder(name, below) as target:
            for entry in sorted(os.listdir(inner)):  # noqa: PTH208
                self.move(f"{path}/{entry}", entry, inner, target)
            if is_new:
                os.fchmod(target, mode)
        with suppress(OSError):  # what stays in the layer keeps its folder
            os.rmdir(name, dir_fd=above)


def place(source_name: str, source: int, name: str, below: int, temporary: str, under: os.stat_result | None) -> None:
    """Move a file or link into a folder of the workspace, in place of the file or link that was there. `temporary`: the
    name there of a copy, where the two are on different file systems. Raises `FileExistsError` where `under` is no
    longer what is there."""
    over = os.stat(source_name, dir_fd=source, follow_symlinks=False)
    make_harmless(source_name, source)
    if over.st_dev == os.fstat(below).st_dev:
        strip(source_name, source)
        _check(name, below, under)
        os.rename(source_name, name, src_dir_fd=source, dst_dir_fd=below)
        return
    copy(source_name, source, temporary, below)
    try:
        _check(name, below, under)
        os.rename(temporary, name, src_dir_fd=below, dst_dir_fd=below)
    except BaseException:
        _remove(temporary, below)
        raise
    os.unlink(source_name, dir_fd=source)


def make_harmless(name: str, folder: int) -> None:
    """Take from a file of ours what lets it run as its owner, or everybody write it."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISREG(mode) and stat.S_IMODE(mode) & ~_HARMLESS:
        os.chmod(name, stat.S_IMODE(mode) & _HARMLESS, dir_fd=folder)


def _check(name: str, folder: int, expected: os.stat_result | None) -> None:
    found = status(name, folder)
    same = [(each.st_ino, each.st_ctime_ns) for each in (found, expected) if each is not None]
    if len(same) == 1 or (same and same[0] != same[1]):
        raise FileExistsError(errno.EEXIST, "It was changed meanwhile", name)


def strip(name: str, folder: int) -> None:
    """Remove the attributes that the overlay has set on a file."""
    path = f"/proc/self/fd/{folder}/{name}"
    with suppress(OSError):
        for attribute in os.listxattr(path, follow_symlinks=False):
            if attribute.startswith(_ATTRIBUTES):
                os.removexattr(path, attribute, follow_symlinks=False)


def strip_all(folder: Path) -> None:
    """Remove the attributes that the overlay has set on a folder of ours and on all that is in it."""
    for place, folders, names in os.walk(folder):
        with opened_folder(place) as handle:
            for name in (".", *folders, *names):
                strip(name, handle)


def copy(source_name: str, source: int, name: str, folder: int) -> None:
    """Copy a file or link to a name that is ours, whatever is there. When it fails, nothing is there."""
    if status(name, folder) is not None:
        _remove(name, folder)
    try:
        _copy(source_name, source, name, folder)
    except BaseException:
        _remove(name, folder)
        raise


def _copy(source_name: str, source: int, name: str, folder: int) -> None:
    over = os.stat(source_name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(over.st_mode):
        os.symlink(os.readlink(source_name, dir_fd=source), name, dir_fd=folder)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened_file(source_name, source) as data:
        target = os.open(name, flags, 0o600, dir_fd=folder)
        with os.fdopen(target, "wb") as file:
            copy_data(data, file)
            file.flush()
            os.fchmod(target, stat.S_IMODE(over.st_mode) & 0o777)
            os.utime(target, ns=(over.st_atime_ns, over.st_mtime_ns))


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
