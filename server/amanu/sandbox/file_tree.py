"""Small files and folders as they are, to be kept and put back."""

import base64
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from amanu.storage.files import write_whole

_ENTRIES = 1_000
_LARGEST = 2 * 1024 * 1024
"""Of one file or folder, in bytes."""

Entry = list[str | int]
"""`["file", mode, base64 of its bytes, how many names it has]`, `["folder", mode]`, `["link", target]`."""
Tree = dict[str, Entry]
"""By the path from the top, which is ""; nothing in it: nothing is there."""


class TooLarge(Exception):
    """There is more of it than is kept, or it cannot be read."""


def tree(top: Path) -> Tree:
    """What is there. No link is followed; sockets, pipes and the samples of git's hooks, which nobody runs, are left
    out. Raises `TooLarge`. Blocking."""
    found: Tree = {}
    try:
        _read(top, "", found, [_LARGEST])
    except OSError as error:
        raise TooLarge(f"{top} cannot be read: {error.strerror}") from None
    return found


def put_back(top: Path, wanted: Tree, changed: Iterable[str]) -> None:
    """Make those parts of it as they were; nothing is in their place but folders. Raises `OSError`. Blocking."""
    folders: list[tuple[Path, int]] = []
    for name in sorted(each for each in changed if each in wanted):
        path = top / name if name else top
        match wanted[name]:
            case ["file", int(mode), str(data), _]:
                write_whole(path, base64.b64decode(data))
                path.chmod(mode)
            case ["folder", int(mode)]:
                path.mkdir(mode=0o700, exist_ok=True)
                folders.append((path, mode))
            case ["link", str(target)]:
                path.symlink_to(target)
            case _:
                pass
    for path, mode in reversed(folders):
        path.chmod(mode)


def data(found: Tree) -> bytes | None:
    """The bytes of a single file; None: it is none."""
    match found.get(""):
        case ["file", int(), str(text), _]:
            return base64.b64decode(text)
        case _:
            return None


def _read(path: Path, name: str, found: Tree, room: list[int]) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    if len(found) >= _ENTRIES:
        raise TooLarge(f"{path}: too many files")
    if kind == stat.S_IFLNK:
        found[name] = ["link", os.readlink(path)]  # noqa: PTH115
    elif kind == stat.S_IFREG:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            bytes_ = file.read(room[0] + 1)
        room[0] -= len(bytes_)
        if room[0] < 0:
            raise TooLarge(f"{path}: too large")
        found[name] = ["file", mode, base64.b64encode(bytes_).decode(), status.st_nlink]
    elif kind == stat.S_IFDIR:
        found[name] = ["folder", mode]
        with os.scandir(path) as entries:
            names = [each.name for each in entries]
        for each in names:
            if not (path.name == "hooks" and each.endswith(".sample")):
                _read(path / each, f"{name}/{each}" if name else each, found, room)
