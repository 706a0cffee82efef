"""Git's index, as its documentation of the format has it (gitformat-index): read, and compared by entries."""

import hashlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from amanu.sandbox.git_dirs import repository_of

_HEADER = struct.Struct(">4sII")
_MODE, _OBJECT, _FLAGS, _EXTENDED, _PATH = 24, 40, 60, 62, 64
"""Offsets in an entry."""
_SUM = 20
_LENGTH = 0xFFF
_HAS_EXTENDED, _ASSUME_UNCHANGED, _STAGE = 0x4000, 0x8000, 0x3000
_SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x2000


class UnknownIndex(Exception):
    """It is no index that this can read: another version, other hashes, split, sparse or damaged."""


@dataclass(frozen=True)
class Entry:
    """A staged file."""

    mode: int
    object: str
    stage: int = 0
    """Above 0: a version of a file that is in conflict."""
    is_hidden: bool = False
    """`git status` is told not to look at the file (assume-unchanged, skip-worktree)."""
    is_intended: bool = False
    """Only the name is staged (`git add -N`)."""


Entries = Mapping[tuple[str, int], Entry]
"""Path and stage → entry."""


def read_index(data: bytes) -> Entries:
    """The entries of an index file; none of an empty one. Raises `UnknownIndex`."""
    return {} if not data else _Reading(data).entries


def without_hints(data: bytes, before: bytes) -> bytes:
    """The same entries, without what only makes git quicker and would be believed if it were wrong: the extensions, and
    how files look from outside where `before` has not noted the same. Raises `UnknownIndex`."""
    new, old = _Reading(data), _Reading(before) if before else None
    known = {} if old is None else {key: before[at : at + _FLAGS] for key, at in old.places.items()}
    changed = bytearray(data[: new.end])
    for key, at in new.places.items():
        if data[at : at + _FLAGS] != known.get(key):
            changed[at : at + _MODE] = bytes(_MODE)
            changed[at + _MODE + 4 : at + _OBJECT] = bytes(_OBJECT - _MODE - 4)
    return bytes(changed) + hashlib.sha1(changed, usedforsecurity=False).digest()


def blob_name(data: bytes) -> str:
    """The name that git gives a file of that content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def tracked_folders(root: Path) -> frozenset[str]:
    """The folders below a root that have files which git tracks, relative to it. Without a repository, or where its
    index cannot be read: none. Blocking."""
    found = repository_of(root)
    if found is None:
        return frozenset()
    try:
        index = found.folder / "index"
        status = index.stat()
        folders = _folders(index, (status.st_ino, status.st_mtime_ns, status.st_size))
        below = root.relative_to(found.top).as_posix()
    except (OSError, UnknownIndex, ValueError):
        return frozenset()
    return (
        folders
        if below == "."
        else frozenset(each[len(below) + 1 :] for each in folders if each.startswith(f"{below}/"))
    )


@lru_cache(maxsize=8)
def _folders(index: Path, _stamp: tuple[int, int, int]) -> frozenset[str]:
    """The folders named in an index; the stamp tells versions of the file apart."""
    folders: set[str] = set()
    for path, _ in read_index(index.read_bytes()):
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)


class _Reading:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.entries: dict[tuple[str, int], Entry] = {}
        self.places: dict[tuple[str, int], int] = {}
        """Path and stage → the offset of the entry."""
        try:
            mark, self._version, count = _HEADER.unpack_from(data)
            if mark != b"DIRC" or self._version not in (2, 3, 4):
                raise UnknownIndex
            at, path = _HEADER.size, b""
            for _ in range(count):
                at, path = self._entry(at, path)
            self.end = at
            """The offset of the extensions."""
            self._check_extensions(at)
        except (struct.error, IndexError, ValueError):
            raise UnknownIndex from None

    def _entry(self, begin: int, former: bytes) -> tuple[int, bytes]:
        """Read one. Returns where the next one begins, and the path."""
        data = self._data
        (flags,) = struct.unpack_from(">H", data, begin + _FLAGS)
        more, at = 0, begin + _EXTENDED
        if flags & _HAS_EXTENDED:
            (more,) = struct.unpack_from(">H", data, at)
            at = begin + _PATH
        path = b""
        if self._version == 4:
            cut, at = _variable(data, at)
            path = former[: len(former) - cut]
        end = data.index(b"\0", at)
        path += data[at:end]
        if flags & _LENGTH != min(len(path), _LENGTH):
            raise UnknownIndex
        next_one = end + 1 if self._version == 4 else begin + (end - begin + 8) // 8 * 8
        (mode,) = struct.unpack_from(">I", data, begin + _MODE)
        stage = (flags & _STAGE) >> 12
        key = os.fsdecode(path), stage
        self.places[key] = begin
        self.entries[key] = Entry(
            mode,
            data[begin + _OBJECT : begin + _FLAGS].hex(),
            stage,
            bool(flags & _ASSUME_UNCHANGED or more & _SKIP_WORKTREE),
            bool(more & _INTENT_TO_ADD),
        )
        return next_one, path

    def _check_extensions(self, at: int) -> None:
        """Raise `UnknownIndex` for an extension in lower case: git says that it must be understood."""
        end = len(self._data) - _SUM
        while at < end:
            name, size = struct.unpack_from(">4sI", self._data, at)
            if not name[:1].isupper():
                raise UnknownIndex
            at += 8 + size
        if at != end:
            raise UnknownIndex


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as git's packs have it, and where it ends."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80:
        byte = data[at]
        value, at = (value + 1 << 7) | byte & 0x7F, at + 1
    return value, at
