"""A folder as a list, by which it is known again without reading its files. Everything here blocks, and raises
`OSError`."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["file", "link", "folder", "deep"]
"""`deep`: a folder that is nested too deep to be read."""

MAX_DEPTH = 100
_OURS = 0o700
_HARMLESS = 0o775
"""Mode bits that may come into a workspace: neither set-user-id and the like, nor write permission for everybody."""
_FIELDS = 6


class Entry(NamedTuple):
    path: str
    """Relative to the folder. Bytes that are not UTF-8 become surrogates, as in `os.fsdecode`."""
    kind: Kind
    size: int
    """Bytes of a file; else 0."""
    modified: int
    """When a file was last written, in nanoseconds; else 0."""
    executable: bool
    """Whether it is a file that can be executed."""
    target: str
    """The target of a link; else ""."""


@dataclass(frozen=True)
class Listing:
    """All that is in a folder, by path; without pipes, sockets and devices."""

    entries: Sequence[Entry]
    changed: int
    """When something in it last changed (ctime), in nanoseconds; setting a file's times does not hide it."""
    is_linked: bool
    """Whether one of its files also has a name outside the folder, through which it could be changed."""
    dropped: Sequence[str] = ()
    """Paths of the pipes, sockets and devices that were removed."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def encode(self) -> bytes:
        fields = (
            f"{path}\0{kind}\0{size}\0{modified}\0{int(executable)}\0{target}\0"
            for path, kind, size, modified, executable, target in self.entries
        )
        return f"{self.size}\0{''.join(fields)}".encode("utf-8", "surrogateescape")


def list_folder(folder: Path, *, tidy: bool = False) -> Listing:
    """The list of a folder. With `tidy`, remove pipes, sockets and devices, make each folder readable to us, and take
    from the modes what must not come into a workspace."""
    reading = _Reading(tidy)
    todo = [(str(folder), "", 0)]
    while todo:
        place, start, depth = todo.pop()
        if tidy:
            _open_up(place)
        todo += reading.read(place, start, depth)
    return reading.listing()


class _Reading:
    def __init__(self, tidy: bool) -> None:
        self._tidy = tidy
        self._entries: list[Entry] = []
        self._dropped: list[str] = []
        self._changed = 0
        self._links: dict[int, int] = {}
        """Inode of a file with several names → the number of them not found yet."""

    def listing(self) -> Listing:
        self._entries.sort()
        return Listing(self._entries, self._changed, any(self._links.values()), sorted(self._dropped))

    def read(self, place: str, start: str, depth: int) -> list[tuple[str, str, int]]:
        """Read one folder. Returns the folders in it. Most of the time of a listing is spent in this loop."""
        inner: list[tuple[str, str, int]] = []
        add, changed, unwanted = self._entries.append, self._changed, ~_HARMLESS if self._tidy else 0
        with os.scandir(place) as found:
            for each in found:
                status = each.stat(follow_symlinks=False)
                if status.st_ctime_ns > changed:
                    changed = status.st_ctime_ns
                mode, path = status.st_mode, start + each.name
                if stat.S_ISREG(mode):
                    if status.st_nlink > 1:
                        self._links[status.st_ino] = self._links.get(status.st_ino, status.st_nlink) - 1
                    if stat.S_IMODE(mode) & unwanted:
                        os.chmod(each.path, stat.S_IMODE(mode) & _HARMLESS)  # noqa: PTH101
                    add(Entry(path, "file", status.st_size, status.st_mtime_ns, mode & 0o111 != 0, ""))
                elif stat.S_ISDIR(mode):
                    add(Entry(path, "folder" if depth < MAX_DEPTH else "deep", 0, 0, False, ""))
                    inner += [(each.path, f"{path}/", depth + 1)] if depth < MAX_DEPTH else []
                elif stat.S_ISLNK(mode):
                    add(Entry(path, "link", 0, 0, False, os.readlink(each.path)))  # noqa: PTH115
                elif self._tidy:
                    os.unlink(each.path)  # noqa: PTH108
                    self._dropped.append(path)
        self._changed = changed
        return inner


def listed_size(data: bytes) -> int:
    """`Listing.size`, from the beginning of what `encode` returned."""
    return int(data.partition(b"\0")[0])


def listed_paths(data: bytes) -> Iterator[str]:
    """The paths of an encoded list."""
    yield from data.decode("utf-8", "surrogateescape").split("\0")[1:-1:_FIELDS]


def differing_paths(one: bytes, other: bytes) -> list[str]:
    """The paths at which two encoded lists differ, in order."""
    return sorted({entry[0] for entry in _encoded_entries(one) ^ _encoded_entries(other)})


def _encoded_entries(data: bytes) -> set[tuple[str, ...]]:
    fields = iter(data.decode("utf-8", "surrogateescape").split("\0")[1:-1])
    return {*zip(*[fields] * _FIELDS, strict=True)}


def _open_up(place: str) -> None:
    mode = stat.S_IMODE(os.lstat(place).st_mode)
    wanted = mode & _HARMLESS | _OURS
    if mode != wanted:
        os.chmod(place, wanted)  # noqa: PTH101
