"""Bring what commands have made in a layer into the workspace, where no proposal can show it: ignored files, binaries,
links. Each file is renamed into its place, or copied beside it and renamed; a folder that is there already takes over
what has changed in it. Everything here blocks, and raises `OSError`."""

import os
import stat
from contextlib import ExitStack, suppress
from secrets import token_hex

from amanu.sandbox.layers.layer import LayerRoot
from amanu.sandbox.layers.untrusted_files import FOLDER, opened_file, opened_folder, remove, status
from amanu.sandbox.layers.upper import is_opaque, is_whiteout

_PART = 1 << 20
_ATTRIBUTES = ("user.overlay.", "trusted.overlay.")


def transfer(root: LayerRoot, path: str) -> None:
    """Make the workspace have what the layer has at that relative path; the layer then has nothing there. No link in
    the workspace is followed: where one leads to the path, that is an `OSError`. Raises `LayerError` as well. To be
    called while no command runs in the layer."""
    with root.opened() as folders, ExitStack() as stack:
        above, below = folders.above, folders.below
        assert above is not None and below is not None
        *parents, name = path.split("/")
        for parent in parents:
            above = stack.enter_context(opened_folder(parent, above))
            below = _opened_or_made(stack, parent, below, os.fstat(above))
        _move(name, above, below)


def _opened_or_made(stack: ExitStack, name: str, below: int, model: os.stat_result) -> int:
    if status(name, below) is None:
        os.mkdir(name, stat.S_IMODE(model.st_mode), dir_fd=below)
    handle = os.open(name, FOLDER, dir_fd=below)
    stack.callback(os.close, handle)
    return handle


def _move(name: str, above: int, below: int) -> None:
    over, under = status(name, above), status(name, below)
    if over is None:
        return
    if is_whiteout(over):
        remove(name, below)
        os.unlink(name, dir_fd=above)
    elif stat.S_ISDIR(over.st_mode):
        _move_folder(name, above, below, over, under)
    elif stat.S_ISREG(over.st_mode) or stat.S_ISLNK(over.st_mode):
        if under is not None and stat.S_ISDIR(under.st_mode):
            remove(name, below)
        _move_file(name, above, below, over)
    else:  # nobody needs the command's sockets and pipes
        os.unlink(name, dir_fd=above)


def _move_folder(name: str, above: int, below: int, over: os.stat_result, under: os.stat_result | None) -> None:
    if under is not None and not stat.S_ISDIR(under.st_mode):
        remove(name, below)
        under = None
    if under is None:
        os.mkdir(name, 0o700, dir_fd=below)
    with opened_folder(name, above) as inner, opened_folder(name, below) as target:
        kept = {*os.listdir(inner)}  # noqa: PTH208
        if under is not None and is_opaque(inner):
            for other in {*os.listdir(target)} - kept:  # noqa: PTH208
                remove(other, target)
        for entry in sorted(kept):
            _move(entry, inner, target)
        os.fchmod(target, stat.S_IMODE(over.st_mode))
        with suppress(PermissionError):
            os.utime(target, ns=(over.st_atime_ns, over.st_mtime_ns))
    os.rmdir(name, dir_fd=above)


def _move_file(name: str, above: int, below: int, over: os.stat_result) -> None:
    if over.st_dev != os.fstat(below).st_dev:
        _copy(name, above, below, over)
        os.unlink(name, dir_fd=above)
        return
    _strip(name, above)
    os.rename(name, name, src_dir_fd=above, dst_dir_fd=below)


def _strip(name: str, above: int) -> None:
    """Remove what the overlay has noted on a file."""
    path = f"/proc/self/fd/{above}/{name}"
    with suppress(OSError):
        for attribute in os.listxattr(path, follow_symlinks=False):
            if attribute.startswith(_ATTRIBUTES):
                os.removexattr(path, attribute, follow_symlinks=False)


def _copy(name: str, above: int, below: int, over: os.stat_result) -> None:
    temporary = f".{name[:100]}.{token_hex(6)}"
    try:
        if stat.S_ISLNK(over.st_mode):
            os.symlink(os.readlink(name, dir_fd=above), temporary, dir_fd=below)
        else:
            with opened_file(name, above) as source:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                target = os.open(temporary, flags, 0o600, dir_fd=below)
                with os.fdopen(target, "wb") as file:
                    while part := os.read(source, _PART):
                        file.write(part)
                    file.flush()
                    os.fchmod(target, stat.S_IMODE(over.st_mode))
                    os.utime(target, ns=(over.st_atime_ns, over.st_mtime_ns))
        os.rename(temporary, name, src_dir_fd=below, dst_dir_fd=below)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=below)
        raise
