"""The pre-images a session keeps, by turn, and how they leave. For sessions that nobody has open; called in threads.

Undo does not need them: both texts are in the hunks of the proposals, which are records and stay. They are the files to
the byte, for where that is not enough.
"""

import contextlib
import re
import sqlite3
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from amanu.storage import journal_sqlite as journal_file
from amanu.storage import lease
from amanu.storage.errors import storage_error
from amanu.storage.packing import unpack
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import Event, ProposalChanged, TurnEnded, TurnStarted
from amanu_protocol.items import HunkState

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_TOLD = re.compile(rb'\{"kind": ?"(?:turnStarted|turnEnded|proposalChanged)"')
_HASH = re.compile(rb'[sS]ha256": ?"[0-9a-f]{64}"')
_NAMED = re.compile(rb"(?<![0-9a-f])[0-9a-f]{16,64}(?![0-9a-f])")
_MOVING: tuple[HunkState, ...] = ("accepted", "undoing")
_SHORT = 16
"""Digits of a blob's id by which the model reads it (`tools/files/read_output.py`)."""


@dataclass(frozen=True)
class TurnPreimages:
    """What one turn's edits replaced."""

    folder: Path
    """Of the session."""
    turn_id: str
    timestamp: int
    """When the turn ended, or something last happened to its edits; milliseconds since the epoch."""
    blobs: Mapping[str, int]
    """Blob id → bytes. The same bytes are there once in a session, so turns may share them."""
    needed: bool
    """An accepted change is still on its way to its file, or one being undone: not to be removed."""
    position: int
    """Of the session's last record then."""


def survey(folder: Path) -> list[TurnPreimages]:
    """What a session's folder holds; [] where that is nothing, or cannot be read for certain. Takes no lease.

    Raises `AmanuError` `storageError`."""
    with _typed(folder):
        return _survey(folder)


def remove(folder: Path, turn_ids: frozenset[str], position: int) -> int:
    """Remove those turns' pre-images; bytes that were freed. Nothing is done when somebody has the session open or did
    something in it since `position`. A blob stays when anything else is known by its id: another turn's pre-image, an
    item, what the model was told. What a crash interrupts, the next time finishes.

    Raises `AmanuError` `storageError`."""
    try:
        own_lease = lease.take(folder)
    except AmanuError:
        return 0
    try:
        with _typed(folder):
            return _remove(folder, turn_ids, position)
    finally:
        own_lease.release()


def _survey(folder: Path) -> list[TurnPreimages]:
    path = folder / journal_file.NAME
    if not path.exists():
        return []
    db = journal_file.connect(path, "ro")
    try:
        saved = journal_file.PreimageRows(db)
        blobs: dict[str, dict[str, int]] = {}
        for _, turn_id, _, blob_id, _ in saved:
            sizes = blobs.setdefault(turn_id, {})
            if blob_id is not None:
                with contextlib.suppress(OSError):
                    sizes[blob_id] = (folder / "blobs" / blob_id).stat().st_size
        if not blobs or saved.damaged or not journal_file.is_ours(db):
            return []
        records = journal_file.JournalRows(db)
        times, last, pending = _told(records)
        if records.damaged:
            return []
        position = journal_file.last_position(db)
        in_use = lease.holder(folder) is not None
        return [
            TurnPreimages(folder, turn_id, times.get(turn_id, last), sizes, in_use or turn_id in pending, position)
            for turn_id, sizes in blobs.items()
        ]
    finally:
        db.close()


def _remove(folder: Path, turn_ids: frozenset[str], position: int) -> int:
    db = journal_file.connect(folder / journal_file.NAME, "rw")
    try:
        if journal_file.last_position(db) != position:
            return 0
        freed = sum(_unlink(folder / "blobs" / blob_id) for blob_id in _free(db, turn_ids))
        journal_file.insert(db, [(journal_file.REMOVE_PREIMAGES, (turn_id,)) for turn_id in sorted(turn_ids)])
        return freed
    finally:
        db.close()


def _told(records: journal_file.JournalRows) -> tuple[dict[str, int], int, set[str]]:
    """(turn → when, when the last record is of, turns of which something is on its way to a file)."""
    times: dict[str, int] = {}
    last = 0
    pending: dict[str, str] = {}
    for _, _, _, timestamp, event, _, _ in records:
        last = timestamp
        if _TOLD.match(event) is None:
            continue
        with contextlib.suppress(ValidationError):
            match _EVENT.validate_json(unpack(event)):
                case TurnStarted(turn_id=turn_id) | TurnEnded(turn_id=turn_id):
                    times[turn_id] = timestamp
                case ProposalChanged(proposal=proposal):
                    states = {hunk.state for file in proposal.files for hunk in file.hunks}
                    times[proposal.turn_id] = timestamp  # undone, perhaps: that replaced something, too
                    pending[proposal.proposal_id] = "" if states.isdisjoint(_MOVING) else proposal.turn_id
                case _:
                    pass
    return times, last, set(pending.values())


def _free(db: sqlite3.Connection, turn_ids: frozenset[str]) -> set[str]:
    """Blobs of those turns that nothing else needs."""
    going: set[str] = set()
    staying: set[str] = set()
    for _, turn_id, _, blob_id, _ in journal_file.PreimageRows(db):
        if blob_id is not None:
            (going if turn_id in turn_ids else staying).add(blob_id)
    free: set[str] = going - staying
    for _, _, _, _, event, private, _ in journal_file.JournalRows(db):
        for text in (unpack(event), unpack(private or b"")):
            prefixes: list[bytes] = _NAMED.findall(_HASH.sub(b"", text))
            named = {prefix[:_SHORT].decode() for prefix in prefixes}
            if named:
                free = {blob_id for blob_id in free if blob_id[:_SHORT] not in named}
    return free


def _unlink(path: Path) -> int:
    """The bytes that frees."""
    try:
        size = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size


@contextlib.contextmanager
def _typed(folder: Path) -> Generator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise storage_error(error, folder) from error
