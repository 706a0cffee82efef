"""Keep the content of small files and folders, to restore it later."""

import base64
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from amanu.storage.files import write_whole

_ENTRIES = 1_000
_LARGEST = 2 * 1024 * 1024
"""Largest total size of one kept file or folder, in bytes."""

Entry = list[str | int]
"""`["file", mode, base64 of its bytes, number of hard links]`, `["folder", mode]` or `["link", target]`."""
Tree = dict[str, Entry]
"""Entries by their path from the top, which is "". Empty when nothing is there."""


class TooLarge(Exception):
    """A file or folder is too large to keep, or cannot be read."""


def read_tree(top: Path) -> Tree:
    """Read a file or folder. Links are not followed; sockets, pipes and git's sample hooks, which nothing runs, are
    left out. Raises `TooLarge`. Blocking."""
    entries: Tree = {}
    try:
        _read(top, "", entries, [_LARGEST])
    except OSError as error:
        raise TooLarge(f"{top} cannot be read: {error.strerror}") from None
    return entries


def put_back(top: Path, content: Tree, changed: Iterable[str]) -> None:
    """Restore the changed parts of a file or folder; only folders may be in their place. Raises `OSError`. Blocking."""
    folders: list[tuple[Path, int]] = []
    for name in sorted(name for name in changed if name in content):
        path = top / name if name else top
        match content[name]:
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


def file_bytes(content: Tree) -> bytes | None:
    """The bytes of a single file; None when it is not a file."""
    match content.get(""):
        case ["file", int(), str(text), _]:
            return base64.b64decode(text)
        case _:
            return None


def _read(path: Path, name: str, content: Tree, bytes_left: list[int]) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    if len(content) >= _ENTRIES:
        raise TooLarge(f"{path}: too many files")
    if kind == stat.S_IFLNK:
        content[name] = ["link", os.readlink(path)]  # noqa: PTH115
    elif kind == stat.S_IFREG:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            bytes_ = file.read(bytes_left[0] + 1)
        bytes_left[0] -= len(bytes_)
        if bytes_left[0] < 0:
            raise TooLarge(f"{path}: too large")
        content[name] = ["file", mode, base64.b64encode(bytes_).decode(), status.st_nlink]
    elif kind == stat.S_IFDIR:
        content[name] = ["folder", mode]
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries]
        for child_name in names:
            if not (path.name == "hooks" and child_name.endswith(".sample")):
                _read(path / child_name, f"{name}/{child_name}" if name else child_name, content, bytes_left)
