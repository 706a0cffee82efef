"""A log in which a change shows: the hash of each entry covers the one before.

    000000000001.jsonl …    one entry a line: SHA-256 in hex, a blank, canonical JSON; the name is its first number
    lock                    whoever appends has it (`flock`), for as long as that takes

The hash is over the hash before, a blank, and the very bytes of the JSON. So a line that was changed, taken out, put in
or moved breaks the chain there. The first entry of a file (`begun`) says which hash it follows, so the oldest files can
go. Nothing is ever rewritten: what a crash broke off stays at the end of its file, and another file begins.

What the files cannot show: that the beginning or the end was cut off, or that all was made anew. Against that stands
an entry that was noted down elsewhere (`verify`'s `noted`). An earlier Amanu wrote a file `head` besides, which is not
read, and an entry `torn` behind a broken line.
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

FILE_BYTES = 1 << 20
"""A file that has so many is followed by another."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class ChainLink:
    """One entry of the chain, as it is noted down: `12:9f86…`."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


START = ChainLink(0, "0" * 64)
"""What the first entry follows."""


@dataclass(frozen=True)
class ChainEntry:
    link: ChainLink
    fields: Fields

    @property
    def of_log(self) -> Fields:
        """What it says about the log itself."""
        return self.fields["data"] if self.fields.get("kind") == "log" else {}


@dataclass(frozen=True)
class ChainReport:
    first: int
    """Number of the first entry that is there; 0: there is none."""
    last: ChainLink
    """The last entry before the fault."""
    fault: str = ""
    """Where the chain breaks, as a sentence; "" when it holds."""
    unfinished: int = 0
    """Bytes at the end that a crash left of an entry nobody waited for."""


def append(folder: Path, entries: Sequence[Fields], keep_bytes: int = 0) -> None:
    """Add these, on the disk on return (one fsync). Any number of processes may append at once.

    `keep_bytes`: the oldest files go when all are larger together; 0: none does. Raises `OSError`; then none counts.
    """
    with _locked(folder):
        path, last = _end(folder)
        if path is None:
            path, last = _begin(folder, last)
            _remove_oldest(folder, keep_bytes)
        lines: list[bytes] = []
        for fields in entries:
            last, line = _line(last, fields)
            lines.append(line)
        _write(path, b"".join(lines))


def read(folder: Path, wanted: Callable[[bytes], bool] = lambda line: True) -> Iterator[ChainEntry]:
    """The entries whose line is wanted, oldest first, as they stand there. Those that are none are left out. Raises
    `OSError`."""
    for path in _files(folder):
        for line in _content(path).split(b"\n"):
            if wanted(line) and (entry := _entry(line)) is not None:
                yield entry


def verify(folder: Path, noted: ChainLink | None = None) -> ChainReport:
    """Follow the chain from its first entry to its last. `noted`: an entry that must be in it. Raises `OSError`."""
    first, last, unfinished = 0, START, 0
    for path in _files(folder):
        *lines, rest = _content(path).split(b"\n")
        unfinished = len(rest)
        stray = 0
        for at, line in enumerate(lines, 1):
            entry = _entry(line)
            if entry is None:
                stray = stray or at
                continue
            if not first:
                first, last = entry.link.number, ChainLink(entry.link.number - 1, str(entry.of_log.get("previous")))
            if stray and entry.of_log.get("event") != "torn":
                break
            if fault := _fault(entry, line, last, noted):
                return ChainReport(first, last, f"line {at} of {path.name}: {fault}")
            last, stray = entry.link, 0
        if stray:
            return ChainReport(first, last, f"line {stray} of {path.name} is not an entry")
    return ChainReport(first, last, _noted_fault(noted, first, last), unfinished)


def _fault(entry: ChainEntry, line: bytes, last: ChainLink, noted: ChainLink | None) -> str:
    """What is wrong with an entry that follows that one."""
    number = last.number + 1
    if entry.link.number != number:
        return f"entry {number} was expected, but {entry.link.number} follows: entries were removed or moved"
    if _hash(last, line[65:]) != entry.link.hash:
        return f"entry {number} or the one before it was changed"
    if noted is not None and noted.number == number and noted.hash != entry.link.hash:
        return f"entry {number} is not the one you noted"
    return ""


def _noted_fault(noted: ChainLink | None, first: int, last: ChainLink) -> str:
    if noted is None or first <= noted.number <= last.number:
        return ""
    if noted.number < first:
        return f"entry {noted.number}, which you noted, is older than the oldest entry kept: note a newer one"
    return f"entry {noted.number}, which you noted, is missing: the end was cut off, or the log was recreated"


def _end(folder: Path) -> tuple[Path | None, ChainLink]:
    """The file to append to, None where another must begin; and the last entry."""
    files = _files(folder)
    if not files:
        return None, START
    data = files[-1].read_bytes()
    *lines, rest = data.split(b"\n")
    for line in reversed(lines):
        if (entry := _entry(line)) is not None:
            whole = not rest and line is lines[-1] and len(data) < FILE_BYTES
            return (files[-1] if whole else None), entry.link
    return None, ChainLink(int(files[-1].stem), START.hash)  # somebody emptied it: it stays, and the chain is broken


def _begin(folder: Path, last: ChainLink) -> tuple[Path, ChainLink]:
    """A new file, whole with its first entry or not there."""
    about = {"event": "begun", "previous": last.hash}
    begun, line = _line(
        last, {"at": int(time.time() * 1000), "kind": "log", "text": "A file of the log begins.", "data": about}
    )
    path = folder / f"{begun.number:012d}.jsonl"
    write_whole(path, line)
    return path, begun


def _remove_oldest(folder: Path, keep_bytes: int) -> None:
    *files, _ = _files(folder)
    size = sum(path.stat().st_size for path in files)
    for path in files:
        if not keep_bytes or size <= keep_bytes:
            return
        size -= path.stat().st_size
        path.unlink()


def _write(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    size = os.fstat(file).st_size
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)  # nobody was told of them
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.jsonl"))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # the oldest went meanwhile; of any other the numbers tell
        return b""


def _entry(line: bytes) -> ChainEntry | None:
    """What a line says, if it has the form of an entry."""
    try:
        fields: Any = json.loads(line[65:])
        number, hashed = fields["number"], line[:64].decode("ascii")
        if line[64:65] == b" " and isinstance(number, int) and isinstance(fields.setdefault("data", {}), dict):
            return ChainEntry(ChainLink(number, hashed), cast("Fields", fields))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None


def _line(last: ChainLink, fields: Fields) -> tuple[ChainLink, bytes]:
    number = last.number + 1
    body = json.dumps({**fields, "number": number}, sort_keys=True, separators=(",", ":")).encode("ascii")
    link = ChainLink(number, _hash(last, body))
    return link, b"%s %s\n" % (link.hash.encode(), body)


def _hash(last: ChainLink, body: bytes) -> str:
    return hashlib.sha256(b"%s %s" % (last.hash.encode("utf-8", "replace"), body)).hexdigest()
