"""What was said, done and changed in all sessions, word by word: SQLite's FTS5 in `search.sqlite` beside the sessions'
folders.

It is made of the sessions' journals, each read from where it was last read to, and remembers that place together with
what it found: a killed process loses nothing. What is damaged is made anew. Nothing here knows what a record means.
"""

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amanu.storage.index_file import IndexFile
from amanu_protocol.errors import AmanuError

NAME = "search.sqlite"
SCHEMA_VERSION = 1
LONGEST_TEXT = 32_000
"""Characters of one place that are found."""
EXCERPT_WORDS = 24
MOST_RANKED = 1_000
"""Places that are ranked, the latest: any word that occurs oftener says little."""

_SCHEMA = (
    "CREATE TABLE journals (session_id TEXT PRIMARY KEY, position INTEGER NOT NULL, updated_at INTEGER NOT NULL)",
    """CREATE TABLE places (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, item_id TEXT NOT NULL,
        turn_id TEXT NOT NULL, at INTEGER NOT NULL, UNIQUE (session_id, key))""",
    "CREATE INDEX turns ON places (session_id, turn_id)",
    "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3')",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_TABLES = ("words", "places", "journals")
_MATCHING = """
    SELECT id, session_id, kind, item_id, turn_id, at, bm25(words) FROM words JOIN places ON id = words.rowid
    WHERE words MATCH :query AND session_id IN (SELECT value FROM json_each(:sessions))
    ORDER BY words.rowid DESC LIMIT :most
"""
_EXCERPTS = f"""
    SELECT rowid, snippet(words, 0, char(2), char(3), '…', {EXCERPT_WORDS}) FROM words
    WHERE words MATCH :query AND rowid BETWEEN :first AND :last AND +rowid IN (SELECT value FROM json_each(:places))
"""
"""By one look for the words: looking once for each place costs a hundred times as much where a beginning is meant."""
_MARKS = re.compile("\x02(.*?)\x03", re.DOTALL)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_TIME_BITS = 20
"""The ids of places are in the order of their times: the latest are found first, however many there are."""


@dataclass(frozen=True)
class Place:
    """A text of a session that can be found."""

    key: str
    """Of the place in its session: a later text takes the place of the earlier one."""
    kind: str
    item_id: str
    turn_id: str
    timestamp: int
    """Milliseconds since the epoch."""
    text: str


@dataclass
class Reading:
    """The texts that some records of a journal add and take away."""

    position: int
    """Of the last of them."""
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    gone: set[str] = field(default_factory=set[str])
    """Keys."""
    gone_turns: set[str] = field(default_factory=set[str])
    records: int = 0
    anew: bool = False
    """It begins at the first record: nothing that was found before holds."""
    complete: bool = True
    """There were no more."""


@dataclass(frozen=True)
class Match:
    """A place that was found. The higher `score`, the better it fits."""

    place_id: int
    session_id: str
    kind: str
    item_id: str
    turn_id: str
    timestamp: int
    score: float


ExcerptParts = list[tuple[str, bool]]
"""(text, whether it was looked for)."""


class SearchIndex:
    """One per process, several processes may have one. Made by `open`."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    @classmethod
    async def open(cls, folder: Path) -> "SearchIndex":
        """Open the index in the folder of all sessions, made if there is none. Raises `AmanuError` `storageError`, also
        where SQLite has no FTS5."""
        return cls(await IndexFile.open(folder / NAME, _prepare))

    async def read(self) -> dict[str, tuple[int, int]]:
        """Session → position of the last record that was read, and what the session's summary's time was when its
        journal had been read to the end (-1: not yet)."""
        query = "SELECT session_id, position, updated_at FROM journals"
        rows = await self._file.run(lambda db: db.execute(query).fetchall())
        return {session_id: (position, updated_at) for session_id, position, updated_at in rows}

    async def read_on(self, session_id: str, updated_at: int, read: Callable[[int], Reading]) -> Reading:
        """Have `read` read the session's journal from behind that position on, and keep what it found."""

        def action(db: sqlite3.Connection) -> Reading:
            reading = read(_position(db, session_id))
            with _transaction(db):
                _keep(db, session_id, updated_at if reading.complete else -1, reading)
            return reading

        return await self._file.run(action)

    async def forget(self, session_ids: Collection[str]) -> None:
        """Nothing of these sessions is found any more, nor in the file."""

        def action(db: sqlite3.Connection) -> None:
            with _transaction(db):
                for session_id in session_ids:
                    _remove(db, "SELECT id FROM places WHERE session_id = ?", (session_id,))
                    db.execute("DELETE FROM journals WHERE session_id = ?", (session_id,))

        await self._file.run(action)

    async def matches(self, query: str, sessions: Iterable[str]) -> list[Match]:
        """The latest places in these sessions that match the query (`fts_query`)."""
        parameters = {"query": query, "sessions": json.dumps(list(sessions)), "most": MOST_RANKED}

        def action(db: sqlite3.Connection) -> list[Match]:
            rows = _matching(db, _MATCHING, parameters)
            return [Match(*row[:6], score=-row[6]) for row in rows]

        return await self._file.run(action)

    async def excerpts(self, query: str, place_ids: Collection[int]) -> Mapping[int, ExcerptParts]:
        """The words around what was found, by place."""

        if not place_ids:
            return {}
        places = json.dumps(list(place_ids))
        parameters = {"query": query, "first": min(place_ids), "last": max(place_ids), "places": places}
        rows = await self._file.run(lambda db: _matching(db, _EXCERPTS, parameters))
        return {place_id: _parts(snippet) for place_id, snippet in rows}

    async def close(self) -> None:
        """Give the file back."""
        await self._file.close()


def fts_query(typed: str) -> str:
    """What a user typed, in FTS5's language: all of these words and "phrases", the last word (from two letters on) also
    as the beginning of a longer one. "" when there is no word in it. Any text gives a valid query."""
    terms = [(match[1] or match[2] or "", match[2] is not None) for match in _TERM.finditer(_CONTROLS.sub(" ", typed))]
    words = [(text, is_word) for text, is_word in terms if any(map(str.isalnum, text))]
    if not words:
        return ""
    query = " ".join(f'"{text}"' for text, _ in words)
    ends_in_word = words[-1][1] and len(words[-1][0]) > 1 and not typed[-1:].isspace()
    return f"{query}*" if ends_in_word else query


def _prepare(db: sqlite3.Connection) -> None:
    if db.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is None:
        raise AmanuError(
            "storageError",
            "Sessions cannot be searched: the SQLite of the Python that Amanu runs in has no FTS5.",
            hint="Install Amanu with another Python, for example that of python.org or of uv.",
        )
    db.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
    if db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    for table in _TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA:
        db.execute(statement)
    with contextlib.suppress(
        sqlite3.Error
    ):  # before SQLite 3.42 words of deleted texts, out of order, stay for a while
        db.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")


def _position(db: sqlite3.Connection, session_id: str) -> int:
    row = db.execute("SELECT position FROM journals WHERE session_id = ?", (session_id,)).fetchone()
    return 0 if row is None else row[0]


def _keep(db: sqlite3.Connection, session_id: str, updated_at: int, reading: Reading) -> None:
    if reading.anew:
        _remove(db, "SELECT id FROM places WHERE session_id = ?", (session_id,))
    for turn_id in reading.gone_turns:
        _remove(db, "SELECT id FROM places WHERE session_id = ? AND turn_id = ?", (session_id, turn_id))
    for key in reading.gone | reading.places.keys():
        _remove(db, "SELECT id FROM places WHERE session_id = ? AND key = ?", (session_id, key))
    for place in reading.places.values():
        _add(db, session_id, place)
    db.execute("INSERT OR REPLACE INTO journals VALUES (?, ?, ?)", (session_id, reading.position, updated_at))


def _add(db: sqlite3.Connection, session_id: str, place: Place) -> None:
    first = place.timestamp << _TIME_BITS
    of_that_time = "SELECT coalesce(max(id) + 1, ?) FROM places WHERE id >= ? AND id < ?"
    (place_id,) = db.execute(of_that_time, (first, first, first + (1 << _TIME_BITS))).fetchone()
    row = (place_id, session_id, place.key, place.kind, place.item_id, place.turn_id, place.timestamp)
    db.execute("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    text = _CONTROLS.sub(_shown, place.text[:LONGEST_TEXT])
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (place_id, text))


def _remove(db: sqlite3.Connection, query: str, parameters: tuple[str, ...]) -> None:
    for (place_id,) in db.execute(query, parameters).fetchall():
        db.execute("DELETE FROM words WHERE rowid = ?", (place_id,))
        db.execute("DELETE FROM places WHERE id = ?", (place_id,))


def _matching(db: sqlite3.Connection, statement: str, parameters: Any) -> list[Any]:
    """The rows; none for a query that FTS5 does not take, which is no damage."""
    try:
        return db.execute(statement, parameters).fetchall()
    except sqlite3.OperationalError as error:
        if "fts5: " in str(error) or "unterminated string" in str(error):
            return []
        raise


def _shown(control: re.Match[str]) -> str:
    """A sign instead of a control character, two of which mark what was found."""
    code = ord(control[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _parts(snippet: str) -> ExcerptParts:
    pieces = _MARKS.split(snippet)
    return [(piece, at % 2 == 1) for at, piece in enumerate(pieces) if piece]


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some failures have rolled back already
            db.execute("ROLLBACK")
        raise
