"""A log nobody can change unseen: lines of which each carries the hash of itself and the one before.

    000000000001.jsonl …    one entry a line: SHA-256 in hex, a blank, canonical JSON; the name is its first number
    head                    number and hash of the last entry
    lock                    whoever appends has it (`flock`), for as long as that takes

The hash is over the hash before, a blank, and the very bytes of the JSON. So a line that was changed, taken out, put in
or moved breaks the chain there; the head, written after each entry, shows that the end was cut off. What nobody can see
in the files themselves: that all of them are gone, or that somebody made the rest of the chain anew, head included.
Against that stands a head that was noted down elsewhere (`verify`'s `noted`).

The log itself says in entries of kind `log` what happened to it: `begun` (a file begins; the hash before it), `torn` (a
crash broke off lines: how many bytes, and their hash), `cut` (entries that were written are not there any more, or the
head is not; a number is left out, so that it stays a fault), `removed` (what is older than that number was too much,
see `keep_bytes`).
"""

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from amanu.storage.files import write_whole

FILE_BYTES = 4 << 20
"""A file that has so many is followed by another."""
NOTHING = "0" * 64
"""The hash before the first entry."""
_TAIL = 256 * 1024  # bytes looked at for the last entry, at first; hardly one is larger

Fields = dict[str, Any]


@dataclass(frozen=True)
class Head:
    """The last entry."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


@dataclass(frozen=True)
class Entry:
    number: int
    hash: str
    fields: Fields


@dataclass(frozen=True)
class Verdict:
    """What a look at the whole chain found."""

    first: int
    """Number of the first entry that is there; 0: there is none."""
    head: Head
    """The last entry that is whole, of those before the fault."""
    fault: str = ""
    """Where the chain breaks, as a sentence; "" when it holds."""
    unfinished: int = 0
    """Bytes at the end that a crash left of an entry nobody waited for."""


class Chain:
    """One folder of it. Any number of processes may append at once. Every call blocks: for a thread, one at a time."""

    def __init__(self, folder: Path, keep_bytes: int = 0) -> None:
        """`keep_bytes`: the oldest files go when all are larger together; 0: none does."""
        self._folder = folder
        self._keep = keep_bytes
        self._file = -1
        self._path = folder
        self._size = 0
        """Of the file when we last wrote."""
        self._head = Head(0, NOTHING)

    def append(self, entries: Sequence[Fields]) -> None:
        """Add these, on the disk on return (one fsync). Raises `OSError`; then none of them counts."""
        with self._locked():
            self._catch_up()
            if self._size > FILE_BYTES:
                self._rotate()
            self._write(entries)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, entries: Sequence[Fields]) -> None:
        head = self._head
        lines: list[bytes] = []
        for fields in entries:
            head, line = _line(head, fields)
            lines.append(line)
        data = b"".join(lines)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)  # nobody was told of them
            self.close()
            raise
        self._head = head
        self._size += len(data)
        self._put_head()

    def _put_head(self) -> None:
        """Behind the log, never before it, and not forced to the disk: after a power failure it may be an older one,
        which fits as well. So it may fail."""
        with contextlib.suppress(OSError):
            handle = os.open(self._folder / "head", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(handle, _head_bytes(self._head), 0)
            finally:
                os.close(handle)

    def _catch_up(self) -> None:
        """Know the end of the log: ours, unless another process wrote, or somebody took something away."""
        if self._file >= 0:
            found = os.fstat(self._file)
            same = found.st_size == self._size and found.st_nlink
            if same and _read(self._folder / "head") == _head_bytes(self._head):
                return
        self.close()
        files = _files(self._folder)
        known = self._known()
        told = max(known, key=lambda each: each.number, default=None)
        if not files:
            self._begin(Head(0, NOTHING) if told is None else told, NOTHING)
            if told is not None:
                self._write([_log("cut", "All entries are gone.", since=1, to=told.number)])
            return
        self._path = files[-1]
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        last, end = _last(self._file, self._size)
        self._head = last or Head(int(self._path.stem) - 1, NOTHING)
        notes: list[Fields] = []
        if end < self._size:
            torn = os.pread(self._file, self._size - end, end)
            if not torn.endswith(b"\n"):
                os.write(self._file, b"\n")
                self._size += 1
            found_hash = hashlib.sha256(torn.removesuffix(b"\n")).hexdigest()
            text = "The end of a line was lost in a crash."
            notes.append(_log("torn", text, bytes=len(torn.removesuffix(b"\n")), sha256=found_hash))
        if told is None:
            # One that was never written is missed after a crash with the first entry; later somebody took it away.
            if self._head.number > 1:
                notes.append(_log("cut", "The head is gone: entries may be, too.", since=self._head.number + 1))
                self._head = Head(self._head.number + 1, self._head.hash)
            write_whole(self._folder / "head", _head_bytes(last or self._head))
        elif told.number > self._head.number or any(_differs(self._path, each) for each in known if each != self._head):
            notes.append(_log("cut", "Entries are gone.", since=self._head.number + 1, to=told.number))
            self._head = Head(max(told.number, self._head.number + 1), self._head.hash)
        if notes:
            self._write(notes)

    def _known(self) -> list[Head]:
        """Entries that must be there: what the file of the head says, and the last that we wrote ourselves."""
        told = _told_head(self._folder)
        return [*([told] if told is not None else []), *([self._head] if self._head.number else [])]

    def _rotate(self) -> None:
        before = self._head
        self.close()
        self._begin(before, before.hash)
        if self._keep:
            self._remove_oldest()

    def _begin(self, before: Head, hashed: str) -> None:
        """A new file, whole with its first entry or not there."""
        head, line = _line(before, _log("begun", "A file of the log begins.", previous=hashed), hashed)
        self._path = self._folder / f"{head.number:012d}.jsonl"
        write_whole(self._path, line)
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._size = len(line)
        self._head = head
        if head.number == 1:
            write_whole(
                self._folder / "head", _head_bytes(head)
            )  # so that one that is missing is never a crash's doing
        else:
            self._put_head()

    def _remove_oldest(self) -> None:
        files = _files(self._folder)
        sizes = [path.stat().st_size for path in files]
        going = 0
        while sum(sizes[going:]) > self._keep and going < len(files) - 1:
            going += 1
        if going:
            first = int(files[going].stem)
            self._write([_log("removed", f"Entries before {first} were removed: the log was too large.", before=first)])
            for path in files[:going]:
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def read(folder: Path, wanted: Callable[[bytes], bool] = lambda line: True) -> Iterator[Entry]:
    """The entries whose line is wanted, oldest first, as they stand there. Those that are none are left out. Raises
    `OSError`."""
    for path in _files(folder):
        for line in path.read_bytes().split(b"\n"):
            if wanted(line) and (entry := _entry(line)) is not None:
                yield entry


def verify(folder: Path, noted: Head | None = None) -> Verdict:
    """Look at every byte of the log. `noted`: a head that was noted down earlier must be in it. Raises `OSError`."""
    head, files = _snapshot(folder)
    try:
        return _verify([(path, path.read_bytes()[:size]) for path, size in files], head, noted)
    except FileNotFoundError:  # the oldest file went meanwhile
        head, files = _snapshot(folder)
        return _verify([(path, path.read_bytes()[:size]) for path, size in files], head, noted)


def _verify(files: Sequence[tuple[Path, bytes]], head: bytes | None, noted: Head | None) -> Verdict:
    look = _Look()
    unfinished = 0
    for at, (path, data) in enumerate(files, 1):
        *lines, rest = data.split(b"\n")
        fault = look.file(path, lines)
        if not fault and rest:
            unfinished = len(rest)
            fault = "" if at == len(files) else f"{path.name} ends within a line"
        if fault:
            return Verdict(look.first, look.last, fault)
    return Verdict(look.first, look.last, look.end(head, noted), unfinished)


class _Look:
    """A walk along the chain."""

    def __init__(self) -> None:
        self.first = 0
        self.last = Head(0, NOTHING)
        self._hashes: dict[int, str] = {}
        self._removed = 0

    def file(self, path: Path, lines: Sequence[bytes]) -> str:
        """The next file; what is wrong with it."""
        torn: list[bytes] = []
        for at, line in enumerate(lines, 1):
            where = f"line {at} of {path.name}"
            entry = _entry(line)
            if at == 1 and (fault := self._opening(path, entry)):
                return f"{where}: {fault}"
            if entry is None:
                torn.append(line)
                continue
            if torn and not _closes(entry, b"\n".join(torn)):
                return f"line {at - len(torn)} of {path.name} is no entry: it was changed"
            torn = []
            if fault := self._entry(entry, line):
                return f"{where}: {fault}"
        return f"the last line of {path.name} is no entry: it was changed" if torn else ""

    def end(self, head: bytes | None, noted: Head | None) -> str:
        """What is wrong with all of it."""
        if fault := _head_fault(head, self.last, self._hashes):
            return fault
        if self.first > 1 and self._removed < self.first:
            return f"the entries before {self.first} are gone, and the log does not say that they were removed"
        if noted is None or self._hashes.get(noted.number) == noted.hash:
            return ""
        if noted.number < self.first - 1:
            return f"entry {noted.number}, which was noted, is not there any more: nothing can be told by it"
        return f"entry {noted.number} is not the one that was noted"

    def _opening(self, path: Path, entry: Entry | None) -> str:
        if entry is None or _of_log(entry).get("event") != "begun":
            return "the file does not begin as one does"
        if path.name != f"{entry.number:012d}.jsonl":
            return f"entry {entry.number} does not belong there"
        previous = str(_of_log(entry).get("previous"))
        if not self.first:
            self.first = entry.number
            self.last = Head(entry.number - 1, previous)
            self._hashes[self.last.number] = previous
            return "" if entry.number > 1 or previous == NOTHING else "entry 1 was changed"
        if entry.number != self.last.number + 1 or previous != self.last.hash:
            return f"entries are missing after {self.last.number}, or a file was moved"
        return ""

    def _entry(self, entry: Entry, line: bytes) -> str:
        due = self.last.number + 1
        if entry.number != due:
            return f"entry {due} should be there, but {entry.number} is: entries were taken out or moved"
        if _hash(self.last.hash, line[65:]) != entry.hash:
            return f"entry {due} was changed, or the one before it"
        self.last = Head(due, entry.hash)
        self._hashes[due] = entry.hash
        if _of_log(entry).get("event") == "removed":  # whole, so ours
            self._removed = max(self._removed, _of_log(entry)["before"])
        return ""


def _head_fault(head: bytes | None, last: Head, hashes: dict[int, str]) -> str:
    if head is None:
        return "the head is missing: whether the end was cut off cannot be told" if last.number else ""
    told = _parsed_head(head)
    if told is None or head != _head_bytes(told):
        return "the head was changed"
    if told.number > last.number:
        return f"the end was cut off: entries {last.number + 1} to {told.number} are missing"
    if hashes.get(told.number, told.hash) != told.hash:
        return f"the head does not fit entry {told.number}"
    return ""


def _closes(entry: Entry, torn: bytes) -> bool:
    data = _of_log(entry)
    return (
        data.get("event") == "torn"
        and data.get("bytes") == len(torn)
        and data.get("sha256") == hashlib.sha256(torn).hexdigest()
    )


def _of_log(entry: Entry) -> Fields:
    """What an entry says about the log itself."""
    return entry.fields.get("data", {}) if entry.fields.get("kind") == "log" else {}


def _snapshot(folder: Path) -> tuple[bytes | None, list[tuple[Path, int]]]:
    """The head, and the files with their sizes, as they are between two appends."""
    lock = None
    with contextlib.suppress(OSError):
        lock = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_SH)
        return _read(folder / "head"), [(path, path.stat().st_size) for path in _files(folder)]
    finally:
        if lock is not None:
            os.close(lock)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.jsonl"))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _told_head(folder: Path) -> Head | None:
    data = _read(folder / "head")
    return None if data is None else _parsed_head(data)


def _parsed_head(data: bytes) -> Head | None:
    number, _, hashed = data.decode("ascii", "replace").strip().partition(" ")
    return Head(int(number), hashed) if number.isascii() and number.isdigit() and len(hashed) == 64 else None


def _head_bytes(head: Head) -> bytes:
    return f"{head.number:012d} {head.hash}\n".encode()


def _differs(path: Path, told: Head) -> bool:
    """The entry that has the head's number has another hash."""
    if told.number < int(path.stem):
        return False
    number = b'"number":%d,' % told.number
    found = [_entry(line) for line in path.read_bytes().split(b"\n") if number in line]
    return any(entry is not None and entry.number == told.number and entry.hash != told.hash for entry in found)


def _last(file: int, size: int) -> tuple[Head | None, int]:
    """The last line that is an entry, and where it ends."""
    length = _TAIL
    while True:
        start = max(0, size - length)
        data = os.pread(file, size - start, start)
        end = data.rfind(b"\n") + 1
        while end > 0:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            if (entry := _entry(data[begin : end - 1])) is not None:
                return Head(entry.number, entry.hash), start + end
            end = begin
        if start == 0:
            return None, 0
        length *= 4


def _entry(line: bytes) -> Entry | None:
    """What a line says, if it has the form of an entry."""
    try:
        fields: Any = json.loads(line[65:])
        number = fields["number"]
        hashed = line[:64].decode("ascii")
        if line[64:65] != b" " or not isinstance(number, int) or not isinstance(fields.get("data", {}), dict):
            return None
        return Entry(number, hashed, cast("Fields", fields))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _line(before: Head, fields: Fields, hashed: str | None = None) -> tuple[Head, bytes]:
    number = before.number + 1
    body = json.dumps({**fields, "number": number}, sort_keys=True, separators=(",", ":")).encode("ascii")
    found = _hash(before.hash if hashed is None else hashed, body)
    return Head(number, found), b"%s %s\n" % (found.encode(), body)


def _hash(before: str, body: bytes) -> str:
    return hashlib.sha256(b"%s %s" % (before.encode("utf-8", "replace"), body)).hexdigest()


def _log(event: str, text: str, **data: Any) -> Fields:
    return {"at": int(time.time() * 1000), "kind": "log", "text": text, "data": {"event": event, **data}}
