"""The durable memory of one session: records, payloads, pre-images. Nothing here knows what they mean.

A session folder holds

    journal.sqlite    records and the list of pre-images; SQLite in WAL mode (journal_sqlite.py)
    blobs/<sha256>    payloads and pre-images, each once
    files/<id>        files that are not text, old and new (file_store.py)
    lease             who may write (lease.py)
    damaged-N.sqlite  what a damaged journal was, kept for a user to look at

Writing has its own thread, and waiters share an fsync (group_commit.py).
"""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from amanu.storage import files, lease
from amanu.storage import journal_sqlite as journal_file
from amanu.storage.errors import storage_error, sync_folder
from amanu.storage.group_commit import GroupCommit
from amanu.storage.packing import unpack
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import BlobRef

MAX_BLOB = 16 * 1024 * 1024
"""Bytes. Bigger payloads are cut by who makes them."""
MAX_BLOBS = 1 << 30
"""Bytes in one session after which no output or picture is kept. Pre-images are: nothing is changed without one."""

FILES = "files"
"""The folder of `file_store.py`."""
_ADD_BLOB = "blob"
"""Instead of a statement: (blob id, text)."""

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One journal entry: the wire event, and what of it never leaves the daemon."""

    epoch: int
    seq: int
    timestamp: int
    """Milliseconds since the epoch."""
    event: str
    """JSON of the `Event`."""
    private: str | None
    """JSON of a conversation `Entry`."""
    position: int = field(default=0, compare=False)
    """Where it is in the journal, which says so."""


@dataclass(frozen=True)
class Preimage:
    """A file as it was before an edit. `data` is None when it did not exist."""

    path: Path
    data: bytes | None
    mode: int | None


class Journal:
    """One session's journal. Belongs to the event loop it was opened in; made by `open` or `read`."""

    def __init__(
        self, folder: Path, db: sqlite3.Connection, damage: str, writer_lease: lease.Lease | None = None, last: int = 0
    ) -> None:
        self.folder = folder
        self.damage = damage
        """What was found broken when it was opened, as a sentence for the user; "" if nothing."""
        self._db = db
        self._lease = writer_lease
        self._commits = GroupCommit[journal_file.Entry](folder, "amanu-journal", self._write)
        self._last = last  # position of the last record
        self._just_checked = writer_lease is not None
        """All of it was found valid when it was opened, and has not been read since."""
        self._closed = False
        self._kept: int | None = None  # bytes of blobs; None: not counted yet

    @classmethod
    async def open(cls, folder: Path) -> "Journal":
        """Open for writing; makes the folder (its parents too) and takes the lease.

        A damaged journal is put aside, once, and what is valid of it goes on in a new one; `damage` says so.
        Raises `AmanuError`: `sessionReadOnly` (leased), `unsupportedVersion` (written by a newer Amanu; it
        is not touched), `storageError`.
        """
        opening = asyncio.ensure_future(asyncio.to_thread(_open, folder))
        try:
            return cls(folder, *await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_give_back)  # else the lease stays with us, and nobody uses it
            raise

    @classmethod
    async def read(cls, folder: Path) -> "Journal":
        """Open without the lease; everything that writes raises `sessionReadOnly`. Each read sees what is
        committed by then.

        Raises `AmanuError`: `sessionNotFound`, `storageError`.
        """
        return cls(folder, *await asyncio.to_thread(_open_to_read, folder))

    @property
    def read_only(self) -> bool:
        return self._lease is None

    @property
    def empty(self) -> bool:
        """Nothing is on record. Of a journal that can be written."""
        return self._last == 0

    @property
    def position(self) -> int:
        """Of the last record. Of a journal that can be written."""
        return self._last

    def append(self, record: Record, texts: Mapping[str, str] | None = None) -> int:
        """Add a record, in order, at once; its position. Never fails for want of disk: `durable` tells whether it is
        safe. `texts`: the blobs it names and that are not there yet, by id; they are on the disk before it is.

        Raises `AmanuError` `sessionReadOnly`; `RuntimeError` after `close`.
        """
        for entry in (texts or {}).items():
            self._add(_ADD_BLOB, entry)
        self._add(journal_file.ADD_RECORD, _row(self._last + 1, record))
        self._last += 1
        return self._last

    async def durable(self) -> None:
        """Return when everything appended so far is on the disk (fsync).

        Raises `AmanuError` `storageError` when it is not; it stays in memory, and the next commit tries again.
        """
        await self._commits.durable()

    async def records(self) -> list[Record]:
        """All valid records in order, those not yet on the disk included. Raises `AmanuError` `storageError`."""
        return await self.read_through(list)

    async def read_through(self, action: Callable[[Iterable[Record]], T]) -> T:
        """The result of `action`, given all valid records in order, including those not yet on disk. It is called on
        the journal's thread, and each record is read when `action` takes it, so that a long journal neither blocks the
        event loop nor fills the memory.

        Raises `AmanuError` (storageError), and whatever `action` raises.
        """

        def rows() -> Iterator[journal_file.Row]:
            checked, self._just_checked = self._just_checked, False
            yield from journal_file.CheckedRows(self._db) if checked else journal_file.JournalRows(self._db)
            yield from self._waiting()

        return await self._commits.on_thread(lambda: action(map(_record, rows())))

    async def at(self, positions: Sequence[int]) -> list[Record]:
        """The records at these positions, in this order; those that are not valid are left out. Raises `AmanuError`
        `storageError`."""

        def read() -> list[journal_file.Row]:
            waiting = {row[0]: row for row in self._waiting()}
            records = (waiting.get(position) or journal_file.record(self._db, position) for position in positions)
            return [row for row in records if row is not None]

        return list(map(_record, await self._commits.on_thread(read)))

    async def beginning(self, text: str) -> list[Record]:
        """The records whose event's JSON begins with that text (of at most `packing.HEAD` bytes). Raises `AmanuError`
        `storageError`."""
        data = _encode(text)

        def read() -> list[journal_file.Row]:
            waiting = [row for row in self._waiting() if row[4].startswith(data)]
            return [*journal_file.beginning(self._db, data), *waiting]

        return list(map(_record, await self._commits.on_thread(read)))

    async def put_blob(self, data: bytes) -> BlobRef:
        """Keep a payload of at most `MAX_BLOB` bytes; durable on return, the same bytes only once.

        Raises `ValueError` when it is too big; `AmanuError` `sessionReadOnly`, `storageError`.
        """
        if len(data) > MAX_BLOB:
            raise ValueError(f"a blob of {len(data)} bytes; the most is {MAX_BLOB}")
        if self.read_only:
            raise _read_only()
        if self._kept is None:
            try:
                self._kept = await asyncio.to_thread(files.size, self._blobs)
            except OSError as error:
                raise storage_error(error, self.folder) from error
        if self._kept + len(data) > MAX_BLOBS:
            raise AmanuError(
                "storageError",
                f"This session keeps {MAX_BLOBS >> 30} GiB of outputs and pictures, which is the maximum.",
                hint="Continue in a new session.",
            )
        self._kept += len(data)
        return BlobRef(blob_id=await self._write_blob(data), size=len(data))

    async def get_blob(self, blob_id: str) -> bytes:
        """The payload. Raises `AmanuError` `blobNotFound` when it is unknown, gone or no longer what it was."""
        if any(entry[0] == _ADD_BLOB and entry[1][0] == blob_id for entry in self._commits.waiting()):
            await self.durable()
        is_kept_apart = (self.folder / FILES / blob_id).is_file()  # a picture is one of the files that are not text
        folder = self.folder / FILES if is_kept_apart else self._blobs
        return await asyncio.to_thread(files.read_blob, folder, blob_id)

    def blob_text(self, blob_id: str) -> str | None:
        """The payload as text, None when it cannot be read. Blocking."""
        with contextlib.suppress(AmanuError, UnicodeDecodeError):
            return files.read_blob(self._blobs, blob_id).decode("utf-8", "surrogatepass")
        return None

    async def find_blob(self, beginning: str) -> bytes:
        """The payload whose id begins so. Raises `AmanuError` `blobNotFound` when there is none, or several."""
        blob_id = await asyncio.to_thread(files.find_blob, self._blobs, beginning)
        return await self.get_blob(blob_id)

    async def save_preimage(self, turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        """Keep a file as it is before an edit (`data` None: there is none). Durable on return.

        Raises `AmanuError` `sessionReadOnly`, `storageError`: then the file must not be changed.
        """
        blob_id = None if data is None else await self._write_blob(data)
        self._add(journal_file.ADD_PREIMAGE, (turn_id, os.fsencode(path), blob_id, mode))
        await self.durable()

    async def preimages(self, turn_id: str) -> list[Preimage]:
        """What a turn's edits replaced, oldest first. Raises `AmanuError` `blobNotFound`, `storageError`."""
        rows = await self._commits.on_thread(lambda: journal_file.preimages(self._db, turn_id))
        return [
            Preimage(Path(os.fsdecode(path)), None if blob_id is None else await self.get_blob(blob_id), mode)
            for _, path, blob_id, mode in rows
        ]

    async def close(self) -> None:
        """Write what waits and give the lease back. Closing twice is harmless.

        Raises `AmanuError` `storageError` when the rest could not be written; it is closed all the same.
        """
        if self._closed:
            return
        self._closed = True
        try:
            await self.durable()
        finally:
            with contextlib.suppress(AmanuError):  # its checkpoint failed: the next opening does it
                await self._commits.on_thread(self._db.close)
            self._commits.close()
            if self._lease is not None:
                self._lease.release()

    @property
    def _blobs(self) -> Path:
        return self.folder / "blobs"

    async def _write_blob(self, data: bytes) -> str:
        if self.read_only:
            raise _read_only()
        try:
            return await asyncio.to_thread(files.write_blob, self._blobs, data)
        except OSError as error:
            raise storage_error(error, self.folder) from error

    def _write(self, entries: Sequence[journal_file.Entry]) -> None:
        for statement, row in entries:
            if statement == _ADD_BLOB:
                blob_id, text = row
                files.write_blob(self._blobs, text.encode("utf-8", "surrogatepass"), blob_id)
        journal_file.insert(self._db, [journal_file.packed(entry) for entry in entries if entry[0] != _ADD_BLOB])

    def _waiting(self) -> list[journal_file.Row]:
        """Records that are not on the disk yet. On the journal's thread."""
        return [row for statement, row in self._commits.waiting() if statement == journal_file.ADD_RECORD]

    def _add(self, statement: str, row: journal_file.Row) -> None:
        if self.read_only:
            raise _read_only()
        if self._closed:
            raise RuntimeError("the journal is closed")
        self._commits.add((statement, row))


def write_new(folder: Path, records: Iterable[Record | int], source: Path, blob_ids: Iterable[str]) -> bool:
    """Make a journal of these records, all or none; a number is the position of one of the session in the folder
    `source`, to be taken as it is. Payloads of that session never change, so that both may have the same. Where a
    journal is, nothing is done and False returned. Blocks. Raises `AmanuError` `storageError`."""
    path = folder / journal_file.NAME
    try:
        if path.exists():
            return False
        (folder / "blobs").mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
        for blob_id in blob_ids:
            _share(source / "blobs" / blob_id, folder / "blobs" / blob_id)
        sync_folder(folder / "blobs")
        entries = [_entry(position, record) for position, record in enumerate(records, 1)]
        journal_file.create_from(path, source / journal_file.NAME, entries)
        return True
    except (sqlite3.Error, OSError) as error:
        raise storage_error(error, folder) from error


def _entry(position: int, record: Record | int) -> journal_file.Entry:
    if isinstance(record, int):
        return journal_file.TAKE_RECORD, (position, record)
    return journal_file.packed((journal_file.ADD_RECORD, _row(position, record)))


def kept_blobs(folder: Path) -> list[str]:
    """The ids of a session's payloads. Blocks."""
    with contextlib.suppress(FileNotFoundError):
        return [entry.name for entry in os.scandir(folder / "blobs")]
    return []


def _share(source: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError, FileExistsError):  # gone meanwhile; left by an attempt that was killed
        try:
            os.link(source, target)
        except OSError as error:
            if isinstance(error, FileNotFoundError | FileExistsError):
                raise
            files.write_blob(target.parent, source.read_bytes(), target.name)


def _row(position: int, record: Record) -> journal_file.Row:
    private = None if record.private is None else _encode(record.private)
    return position, record.epoch, record.seq, record.timestamp, _encode(record.event), private


_Opened = tuple[sqlite3.Connection, str, lease.Lease, int]


def _open(folder: Path) -> _Opened:
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder.parent)
        writer_lease = lease.take(folder)
        try:
            files.remove_unfinished(folder / "blobs")
            db, damage = journal_file.open_to_write(folder)
            return db, damage, writer_lease, journal_file.last_position(db)
        except BaseException:
            writer_lease.release()
            raise
    except (sqlite3.Error, OSError) as error:
        raise storage_error(error, folder) from error


def _give_back(opening: "asyncio.Future[_Opened]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        db, _, writer_lease, _ = opening.result()
        db.close()
        writer_lease.release()


def _open_to_read(folder: Path) -> tuple[sqlite3.Connection, str]:
    try:
        return journal_file.open_to_read(folder)
    except (sqlite3.Error, OSError) as error:
        raise storage_error(error, folder) from error


def _read_only() -> AmanuError:
    return AmanuError("sessionReadOnly", "Read-only: another Amanu process has this session open.")


def _record(row: journal_file.Row) -> Record:
    """Of a row as it is kept, or as it waits."""
    position, epoch, seq, timestamp, event, private, *_ = row
    return Record(epoch, seq, timestamp, _decode(event), None if private is None else _decode(private), position)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate must not stop the session's journal


def _decode(data: bytes) -> str:
    return unpack(data).decode("utf-8", "surrogatepass")
