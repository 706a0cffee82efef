"""Git's index (gitformat-index), read and changed by entries."""

import hashlib
import os
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

_HEADER = struct.Struct(">4sII")
_MODE, _OBJECT, _FLAGS, _EXTENDED, _PATH = 24, 40, 60, 62, 64
"""Offsets in an entry."""
_SUM = 20
_LENGTH = 0xFFF
_HAS_EXTENDED, _ASSUME_UNCHANGED, _STAGE = 0x4000, 0x8000, 0x3000
_SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x2000
_SIZE = 36
_STAMP = slice(8, 16)
"""Offsets in an entry of the file's size and of its time of modification."""
_EXTENSIONS = {b"link": "a split index", b"sdir": "a sparse index"}


class UnknownIndex(Exception):
    """The index cannot be read or cannot be changed: another version, other hashes, split, sparse or damaged. `str()`
    says which, as a noun phrase."""


class Collision(Exception):
    """Entries that exclude each other: a file and one below it, a conflict and its resolution. `str()` is a path."""


@dataclass(frozen=True)
class Entry:
    """A staged file."""

    mode: int
    object: str
    stage: int = 0
    """Above 0: a version of a file that is in conflict."""
    is_assumed: bool = False
    """`git status` is told that the file is unchanged (assume-unchanged)."""
    is_skipped: bool = False
    """The same, and that it need not be there (skip-worktree)."""
    is_intended: bool = False
    """Only the name is staged (`git add -N`)."""

    @property
    def is_hidden(self) -> bool:
        """`git status` is told not to look at the file."""
        return self.is_assumed or self.is_skipped


Key = tuple[str, int]
"""Path and stage."""
Entries = Mapping[Key, Entry]
Stamp = tuple[int, int, int]
"""A file's time of modification, in seconds and nanoseconds, and its size, each in 32 bits."""


def read_index(data: bytes) -> Entries:
    """The entries of an index file; none of an empty one. Raises `UnknownIndex`."""
    return {} if not data else _Reading(data).entries


def read_stamps(data: bytes) -> Mapping[str, Stamp]:
    """Path → what is noted about the file, but for files in conflict. Raises `UnknownIndex`."""
    places = _Reading(data).places if data else {}
    return {
        path: (*struct.unpack_from(">II", data, at + _STAMP.start), *struct.unpack_from(">I", data, at + _SIZE))
        for (path, stage), at in places.items()
        if not stage
    }


def changed_index(data: bytes, entries: Mapping[Key, Entry | None], written_at: int) -> bytes:
    """The same index with these entries (None: without one) and without extensions, in version 2, or 3 where flags need
    it. The other entries keep what is noted about their files, except that the size is dropped if the file was modified
    at or after `written_at` (nanoseconds, when the index was written): git could not tell whether it was modified again
    after it was staged. Raises `UnknownIndex`, `Collision`."""
    found = _Reading(data).records(written_at) if data else {}
    for (path, stage), entry in entries.items():
        key = os.fsencode(path), stage
        found.pop(key, None)
        if entry is not None:
            found[key] = _record(key[0], entry)
    _require_no_collision(found)
    records = [found[key] for key in sorted(found)]
    version = 3 if any(record[_FLAGS] & _HAS_EXTENDED >> 8 for record in records) else 2
    body = b"".join([_HEADER.pack(b"DIRC", version, len(records)), *records])
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def blob_name(data: bytes) -> str:
    """The name of git's object with that content of a file."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _record(path: bytes, entry: Entry) -> bytes:
    """An entry that notes nothing about the file, so that git looks at it."""
    extended = _SKIP_WORKTREE * entry.is_skipped | _INTENT_TO_ADD * entry.is_intended
    flags = min(len(path), _LENGTH) | entry.stage << 12 | _ASSUME_UNCHANGED * entry.is_assumed
    head = bytes(_MODE) + struct.pack(">I", entry.mode) + bytes(_OBJECT - _MODE - 4) + bytes.fromhex(entry.object)
    if extended:
        head += struct.pack(">HH", flags | _HAS_EXTENDED, extended)
    else:
        head += struct.pack(">H", flags)
    return head + path + bytes(8 - (len(head) + len(path)) % 8)


def _require_no_collision(keys: Collection[tuple[bytes, int]]) -> None:
    """Raise `Collision` where a path is a file and a folder, or in conflict and not."""
    stages: dict[bytes, set[int]] = {}
    for path, stage in keys:
        stages.setdefault(path, set()).add(stage)
    for path, found in stages.items():
        if 0 in found and len(found) > 1:
            raise Collision(os.fsdecode(path))
    # With "/" sorted before any other byte, what is below a path comes right after it.
    files = sorted((path for path, found in stages.items() if 0 in found), key=lambda path: path.replace(b"/", b"\0"))
    for path, after in pairwise(files):
        if after.startswith(path + b"/"):
            raise Collision(os.fsdecode(path))


class _Reading:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.entries: dict[tuple[str, int], Entry] = {}
        self.places: dict[tuple[str, int], int] = {}
        """Path and stage → the offset of the entry."""
        try:
            mark, self._version, count = _HEADER.unpack_from(data)
            if mark != b"DIRC":
                raise UnknownIndex("a damaged index")
            if self._version not in (2, 3, 4):
                raise UnknownIndex(f"an index of version {self._version}")
            at, path = _HEADER.size, b""
            for _ in range(count):
                at, path = self._entry(at, path)
            self.end = at
            """The offset of the extensions."""
            self._check_extensions(at)
        except (struct.error, IndexError, ValueError):
            raise UnknownIndex("a damaged index") from None

    def records(self, written_at: int) -> dict[tuple[bytes, int], bytes]:
        """Path and stage → entry, as its bytes; see `changed_index`. Raises `UnknownIndex`, also for version 4 and if
        the checksum is wrong."""
        if self._version == 4:
            raise UnknownIndex("an index of version 4")
        sum_ = self._data[-_SUM:]
        if sum_ not in (bytes(_SUM), hashlib.sha1(self._data[:-_SUM], usedforsecurity=False).digest()):
            raise UnknownIndex("a damaged index")
        begins = [*self.places.values(), self.end]
        stamp = struct.pack(">II", *divmod(written_at, 10**9))
        found: dict[tuple[bytes, int], bytes] = {}
        for (path, stage), (at, end) in zip(self.places, pairwise(begins), strict=True):
            record = self._data[at:end]
            if record[_STAMP] >= stamp:
                record = record[:_SIZE] + bytes(_OBJECT - _SIZE) + record[_OBJECT:]
            found[os.fsencode(path), stage] = record
        return found

    def _entry(self, begin: int, former: bytes) -> tuple[int, bytes]:
        """Read the entry at that offset. Returns the offset of the next one, and the path."""
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
            raise UnknownIndex("a damaged index, or one with other hashes than SHA-1")
        next_one = end + 1 if self._version == 4 else begin + (end - begin + 8) // 8 * 8
        (mode,) = struct.unpack_from(">I", data, begin + _MODE)
        stage = (flags & _STAGE) >> 12
        key = os.fsdecode(path), stage
        self.places[key] = begin
        self.entries[key] = Entry(
            mode,
            data[begin + _OBJECT : begin + _FLAGS].hex(),
            stage,
            bool(flags & _ASSUME_UNCHANGED),
            bool(more & _SKIP_WORKTREE),
            bool(more & _INTENT_TO_ADD),
        )
        return next_one, path

    def _check_extensions(self, at: int) -> None:
        """Raise `UnknownIndex` for an extension whose name begins in lower case: git requires that it is understood."""
        end = len(self._data) - _SUM
        while at < end:
            name, size = struct.unpack_from(">4sI", self._data, at)
            if not name[:1].isupper():
                raise UnknownIndex(_EXTENSIONS.get(name, "an index with unknown extensions"))
            at += 8 + size
        if at != end:
            raise UnknownIndex("a damaged index")


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as in git's packs, and the offset behind it."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80:
        byte = data[at]
        value, at = (value + 1 << 7) | byte & 0x7F, at + 1
    return value, at
