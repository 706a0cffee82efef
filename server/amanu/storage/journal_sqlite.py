"""The SQLite file of a journal: its schema, how it is opened, and what is done when it is damaged.

A new file is built under another name and renamed when complete, so a `journal.sqlite` without its tables is
damage, never a crash of ours. SQLite notices broken pages; the checksum of each record notices broken text. In rows,
event and private part are as they are kept (packing.py).
"""

import os
import sqlite3
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amanu.storage.errors import is_damage, sync_folder
from amanu.storage.packing import HEAD, pack
from amanu_protocol.errors import AmanuError

NAME = "journal.sqlite"
SCHEMA_VERSION = 3
"""Of the tables and of what is in them: version 1 holds events of protocol version 1, version 2 no packed texts."""
_OLDEST = 2
"""The oldest version that is read. Such a file gets today's version when it is opened for writing."""

ADD_RECORD = "INSERT INTO records (position, epoch, seq, at, event, private, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)"
ADD_PREIMAGE = "INSERT INTO preimages (turn_id, path, blob_id, mode) VALUES (?, ?, ?, ?)"
TAKE_RECORD = (
    "INSERT INTO records SELECT ?, epoch, seq, at, event, private, checksum FROM source.records WHERE position = ?"
)
"""(its position here, and in the source)"""
REMOVE_PREIMAGES = "DELETE FROM preimages WHERE turn_id = ?"
Row = tuple[Any, ...]
Entry = tuple[str, Row]
"""One of the statements above and what goes into it."""

_SCHEMA = (
    """CREATE TABLE records (
        position INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
        event BLOB NOT NULL, private BLOB, checksum INTEGER NOT NULL)""",
    """CREATE TABLE preimages (
        position INTEGER PRIMARY KEY, turn_id TEXT NOT NULL, path BLOB NOT NULL, blob_id TEXT, mode INTEGER)""",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_COLUMNS = "SELECT position, epoch, seq, at, event, private, checksum FROM records"
_RECORDS = f"{_COLUMNS} ORDER BY position"
_PREIMAGES = "SELECT position, turn_id, path, blob_id, mode FROM preimages ORDER BY position"


@dataclass
class JournalContent:
    """What could be read of a file."""

    records: list[Row] = field(default_factory=list[Row])
    preimages: list[Row] = field(default_factory=list[Row])
    damaged: bool = False


def open_to_write(folder: Path) -> tuple[sqlite3.Connection, str]:
    """A connection to the journal in a leased folder, made if there is none; and what was damaged, for the
    user ("" if nothing).

    A damaged file is renamed to `damaged-N.sqlite` and what is valid of it goes into a new one. Raises
    `AmanuError` `unsupportedVersion`, `sqlite3.Error`, `OSError`.
    """
    path = folder / NAME
    damage = ""
    if path.exists():
        if _is_damaged(path, newest=SCHEMA_VERSION):
            content = read(path, newest=SCHEMA_VERSION)
            aside = _set_aside(path)
            create(path, content)
            damage = _sentence(content, aside)
    elif asides := _asides(folder):  # a daemon died between setting aside and making anew
        _bring_wal(path, asides[-1])
        content = read(asides[-1], newest=SCHEMA_VERSION)
        create(path, content)
        damage = _sentence(content, asides[-1])
    else:
        create(path, JournalContent())
    db = connect(path, "rw")
    try:
        if _version(db, SCHEMA_VERSION) < SCHEMA_VERSION:
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return db, damage
    except BaseException:
        db.close()
        raise


def open_to_read(folder: Path) -> tuple[sqlite3.Connection, str]:
    """A read-only connection, with or without somebody writing; and what is damaged.

    Raises `AmanuError` `sessionNotFound` or `unsupportedVersion`, `sqlite3.Error`.
    """
    path = folder / NAME
    if not path.exists():
        raise AmanuError("sessionNotFound", "This session does not exist, or it was never saved.")
    damage = _sentence(read(path), path) if _is_damaged(path) else ""
    return connect(path, "ro"), damage


def read(path: Path, *, newest: int | None = None) -> JournalContent:
    """All valid rows of a file, which is not changed. `newest`: refuse a file of a later schema."""
    db = connect(path, "ro")
    try:
        version = _version(db, newest)
        valid, saved = JournalRows(db), PreimageRows(db)
        content = JournalContent(list(valid), [row[1:] for row in saved])
        content.damaged = version == 0 or valid.damaged or saved.damaged
        return content
    finally:
        db.close()


class _Rows:
    """The rows of a query over the positions of a table: those before the first broken page, then those after the last
    one. `damaged` once all were read: there is a broken page."""

    def __init__(self, db: sqlite3.Connection, query: str) -> None:
        self._db = db
        self._query = query
        self.damaged = False

    def __iter__(self) -> Iterator[Row]:
        last = 0
        for row in self._until_damage(self._query):
            last = row[0]
            yield row
        if self.damaged:
            remaining = [row for row in self._until_damage(f"{self._query} DESC") if row[0] > last]
            yield from reversed(remaining)

    def _until_damage(self, query: str) -> Iterator[Row]:
        try:
            yield from self._db.execute(query)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.damaged = True


class _Valid:
    """The valid rows of a query. `damaged` once all were read: some were not valid."""

    def __init__(self, db: sqlite3.Connection, query: str, is_valid: Callable[[Row], bool]) -> None:
        self._rows = _Rows(db, query)
        self._is_valid = is_valid
        self._wrong = False

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            if self._is_valid(row):
                yield row
            else:
                self._wrong = True

    @property
    def damaged(self) -> bool:
        return self._wrong or self._rows.damaged


class CheckedRows(_Rows):
    """As `JournalRows`, of a journal that has just been looked through: not computing the checksums again saves an
    eighth of the time that reading takes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db, _RECORDS)


class JournalRows(_Valid):
    """The valid rows (position, epoch, seq, at, event, private, checksum), in order, each read when it is asked for.
    `damaged` once all were read: some were not valid."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db, _RECORDS, _is_valid)


class PreimageRows(_Valid):
    """The valid rows (position, turn_id, path, blob_id, mode), oldest first, each read when it is asked for. `damaged`
    as of `JournalRows`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db, _PREIMAGES, _is_valid_preimage)


def record(db: sqlite3.Connection, position: int) -> Row | None:
    """That record's row, None if there is none, or it is not valid."""
    try:
        row: Row | None = db.execute(f"{_COLUMNS} WHERE position = ?", (position,)).fetchone()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return None
        raise
    return row if row is not None and _is_valid(row) else None


def beginning(db: sqlite3.Connection, text: bytes) -> list[Row]:
    """The valid rows whose event begins with that text, of at most `HEAD` bytes, in order; none when the file is
    damaged where they may be."""
    assert len(text) <= HEAD
    query = f"{_COLUMNS} WHERE substr(event, 1, {len(text)}) = ? ORDER BY position"
    try:
        rows: list[Row] = db.execute(query, (text,)).fetchall()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return []
        raise
    return list(filter(_is_valid, rows))


def after(db: sqlite3.Connection, position: int, limit: int) -> list[Row]:
    """The first valid rows behind that position, at most so many; those before the first broken page."""
    rows: list[Row] = []
    try:
        rows.extend(db.execute(f"{_COLUMNS} WHERE position > ? ORDER BY position LIMIT ?", (position, limit)))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return list(filter(_is_valid, rows))


def last_position(db: sqlite3.Connection) -> int:
    """Of the last record; 0 if there is none."""
    return db.execute("SELECT coalesce(max(position), 0) FROM records").fetchone()[0]


def preimages(db: sqlite3.Connection, turn_id: str) -> list[Row]:
    """The rows (turn_id, path, blob_id, mode) of a turn, oldest first."""
    return [row[1:] for row in PreimageRows(db) if row[1] == turn_id]


def is_ours(db: sqlite3.Connection) -> bool:
    """Of a schema that this Amanu reads."""
    return 0 < _version(db, None) <= SCHEMA_VERSION


def insert(db: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    """Write all entries in one transaction, or none. On return they are on the disk."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement, row in entries:
            db.execute(statement, row)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some failures have rolled back already
            db.execute("ROLLBACK")
        raise


def packed(entry: Entry) -> Entry:
    """The entry as it goes into the file. `ADD_RECORD` takes the row without checksum, its texts in UTF-8."""
    statement, row = entry
    if statement != ADD_RECORD:
        return entry
    position, epoch, seq, timestamp, event, private = row
    event, private = pack(event), None if private is None else pack(private)
    return statement, (
        position,
        epoch,
        seq,
        timestamp,
        event,
        private,
        checksum(epoch, seq, timestamp, event, private),
    )


def checksum(epoch: int, seq: int, timestamp: int, event: bytes, private: bytes | None) -> int:
    """CRC-32 over a record, as it is kept."""
    start = zlib.crc32(b"%d %d %d " % (epoch, seq, timestamp))
    return zlib.crc32(private or b"", zlib.crc32(event, start))


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection to a journal that exists, as it is: `mode` is "ro" or "rw". Raises `sqlite3.Error`."""
    # Each connection is used by one thread at a time, not always the one that made it.
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        if mode == "ro":
            db.execute("PRAGMA writable_schema = ON")  # else a file shorter than its header says is not read
            return db
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")  # fsync at each commit: what `durable` promises
        return db
    except BaseException:
        db.close()
        raise


def _is_valid(row: Row) -> bool:
    """Of a file cut short, SQLite gives rows without what was cut off."""
    _, epoch, seq, timestamp, event, private, stored_checksum = row
    whole = isinstance(epoch, int) and isinstance(seq, int) and isinstance(timestamp, int) and isinstance(event, bytes)
    return whole and (private is None or isinstance(private, bytes)) and stored_checksum == checksum(*row[1:-1])


def _is_valid_preimage(row: Row) -> bool:
    return isinstance(row[1], str) and isinstance(row[2], bytes)


def _is_damaged(path: Path, *, newest: int | None = None) -> bool:
    """Looks at all of it, keeping nothing. Raises like `read`."""
    db = connect(path, "ro")
    try:
        if _version(db, newest) == 0:
            return True
        valid, saved = JournalRows(db), PreimageRows(db)
        for rows in (valid, saved):
            deque(rows, maxlen=0)
        return valid.damaged or saved.damaged
    finally:
        db.close()


def _version(db: sqlite3.Connection, newest: int | None) -> int:
    """Of the schema; 0 when it cannot be read. Refuses an older one, and one later than `newest`."""
    try:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        version = 0
    if 0 < version < _OLDEST:
        raise AmanuError(
            "unsupportedVersion",
            f"This session was written by an older version of Amanu (format {version}, this one reads "
            f"{_OLDEST} to {SCHEMA_VERSION}).",
            hint="Start a new session, or delete this one. Nothing in it was changed.",
        )
    if newest is not None and version > newest:
        raise AmanuError(
            "unsupportedVersion",
            f"This session was written by a newer version of Amanu (format {version}, this one writes {newest}).",
            hint="Update Amanu to continue it.",
        )
    return version


def create(path: Path, content: JournalContent) -> None:
    """Build a journal of these rows, which is there when it is complete."""
    _build(path, [*((ADD_RECORD, row) for row in content.records), *((ADD_PREIMAGE, row) for row in content.preimages)])


def create_from(path: Path, source: Path, entries: Iterable[Entry]) -> None:
    """The same of entries, which may take records of the journal `source`."""
    _build(path, entries, source)


def _build(path: Path, entries: Iterable[Entry], source: Path | None = None) -> None:
    building = path.with_name("building.sqlite")
    building.unlink(missing_ok=True)
    db = sqlite3.connect(building, uri=True, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = MEMORY")  # one file and nothing beside it; a crash starts over
        db.execute("PRAGMA synchronous = FULL")
        if source is not None:
            db.execute("ATTACH ? AS source", (f"{source.absolute().as_uri()}?mode=ro",))
        schema = [(statement, ()) for statement in _SCHEMA]
        insert(db, [*schema, *entries])
    finally:
        db.close()
    Path(f"{path}-wal").unlink(missing_ok=True)  # of a file that is gone; SQLite would mix it into this one
    building.rename(path)
    sync_folder(path.parent)


def _set_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"damaged-{number}.sqlite")).exists():
        number += 1
    path.rename(aside)
    _bring_wal(path, aside)
    return aside


def _bring_wal(path: Path, aside: Path) -> None:
    """The WAL follows its file. A step of its own, so that it can be done again after a crash before it."""
    wal = Path(f"{path}-wal")
    if wal.exists():
        wal.rename(f"{aside}-wal")
    Path(f"{path}-shm").unlink(missing_ok=True)
    sync_folder(path.parent)


def _asides(folder: Path) -> list[Path]:
    return sorted(folder.glob("damaged-*.sqlite"), key=os.path.getmtime)


def _sentence(content: JournalContent, original: Path) -> str:
    count = len(content.records)
    return (
        f"This session's journal was damaged on the disk; {count} {'entry' if count == 1 else 'entries'} could be "
        f"read, earlier or later ones may be missing. The original is kept as {original}."
    )
