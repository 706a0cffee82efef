"""The list of a user's sessions.

The truth about a session's summary is `summary.json` in its folder; `index.sqlite` beside the folders only makes
the list fast. Opening compares the two by names, so a lost or damaged index mends itself, and a folder that
was copied in or removed by hand is noticed.

    <sessions>/index.sqlite
    <sessions>/<session id>/summary.json, and what journal.py keeps
"""

import contextlib
import json
import re
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from amanu.storage import files, lease
from amanu.storage.index_file import IndexFile
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionSummary

NAME = "index.sqlite"
SCHEMA_VERSION = 1
SUMMARY = "summary.json"

_SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_REMOVED = ".removed-"
_TABLE = "CREATE TABLE sessions (session_id TEXT PRIMARY KEY, updated_at INTEGER NOT NULL, summary TEXT NOT NULL)"
_LISTED = """
    FROM sessions WHERE (:root IS NULL OR EXISTS (SELECT 1 FROM json_each(summary, '$.roots') WHERE value = :root))
    AND (:archived OR json_extract(summary, '$.archived') IS NOT 1)
    AND (:agents OR json_extract(summary, '$.parentSessionId') IS NULL)
    AND (:agents OR json_extract(summary, '$.purpose') IS NOT 'rewrite' OR json_extract(summary, '$.changes') > 0)
    ORDER BY updated_at DESC, session_id LIMIT :limit
"""
_HEADS = "SELECT session_id, updated_at, json_extract(summary, '$.title'), json_extract(summary, '$.roots')"


@dataclass(frozen=True)
class SessionHead:
    """A session in few words, for what looks at all of them."""

    session_id: str
    updated_at: int
    title: str
    roots: list[str]


class SessionIndex:
    """All sessions of one user; one per process, several processes may have one. Made by `open`."""

    def __init__(self, folder: Path, file: IndexFile) -> None:
        self._folder = folder
        self._file = file

    @classmethod
    async def open(cls, folder: Path) -> "SessionIndex":
        """Open the index in the folder of all sessions, made if there is none. Raises `AmanuError`
        `storageError`."""
        return cls(folder, await IndexFile.open(folder / NAME, lambda db: _prepare(db, folder)))

    def folder(self, session_id: str) -> Path:
        """Where the session's journal lives, whether it exists or not. Raises `AmanuError` `sessionNotFound`
        for what cannot be a session's id (it may come from a command line)."""
        if not _SESSION_ID.match(session_id):
            raise AmanuError("sessionNotFound", f"“{session_id}” is not a session id.")
        return self._folder / _name(session_id)

    async def put(self, summary: SessionSummary) -> None:
        """Add a session or replace its summary; durable on return. Raises `AmanuError` `storageError`."""
        folder = self.folder(summary.session_id)
        await self._file.run(lambda db: _put(db, folder, summary))

    async def get(self, session_id: str) -> SessionSummary | None:
        """The summary last put, read from the session's folder; None when there is none."""
        folder = self.folder(session_id)
        return await self._file.run(lambda _: _summary(folder))

    async def list(
        self, root: str | None = None, limit: int = 50, *, agents: bool = True, archived: bool = True
    ) -> list[SessionSummary]:
        """Sessions, newest first; of one root, or all; with those of sub-agents and archived ones, or without. A
        rewrite is listed without them only while its changes wait. A session that was running
        in a process that is gone is `interrupted`. Raises `AmanuError` `storageError`."""
        parameters = {"root": root, "limit": limit, "agents": agents, "archived": archived}
        rows = await self._file.run(lambda db: db.execute(f"SELECT summary {_LISTED}", parameters).fetchall())
        return [self._as_it_is(SessionSummary.model_validate_json(row[0])) for row in rows]

    async def heads(
        self, root: str | None = None, *, agents: bool = True, archived: bool = True
    ) -> "list[SessionHead]":
        """All of those that `list` has, in its order."""
        parameters = {"root": root, "limit": -1, "agents": agents, "archived": archived}
        rows = await self._file.run(lambda db: db.execute(f"{_HEADS} {_LISTED}", parameters).fetchall())
        return [
            SessionHead(session_id, updated_at, title, json.loads(roots))
            for session_id, updated_at, title, roots in rows
        ]

    async def listed(self, session_ids: "list[str]") -> "dict[str, SessionSummary]":
        """The summaries of these sessions, as `list` has them; of those that are there."""
        query = "SELECT summary FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))"
        rows = await self._file.run(lambda db: db.execute(query, (json.dumps(session_ids),)).fetchall())
        summaries = [self._as_it_is(SessionSummary.model_validate_json(row[0])) for row in rows]
        return {summary.session_id: summary for summary in summaries}

    async def left(self) -> "list[str]":
        """Sessions that somebody has open, or died with: who puts one away gives its lease back."""
        ids = "SELECT session_id FROM sessions"
        return await self._file.run(lambda db: [row[0] for row in db.execute(ids) if lease.left(self.folder(row[0]))])

    async def delete(self, session_id: str) -> None:
        """Remove a session and all that was kept of it, for good. Unknown ids are fine.

        Raises `AmanuError` `sessionReadOnly` while somebody has it open (close it first), `storageError`.
        """
        folder = self.folder(session_id)
        await self._file.run(lambda db: _delete(db, folder, session_id))

    async def close(self) -> None:
        """Give the file back."""
        await self._file.close()

    def _as_it_is(self, summary: SessionSummary) -> SessionSummary:
        if summary.status not in ("running", "waiting"):
            return summary
        if lease.holder(self.folder(summary.session_id)) is not None:
            return summary
        questions = [question for question in summary.questions if question.question_id is not None]  # these survive
        return summary.model_copy(update={"status": "waiting" if questions else "interrupted", "questions": questions})


def _prepare(db: sqlite3.Connection, folder: Path) -> None:
    if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
        db.execute("DROP TABLE IF EXISTS sessions")
        db.execute(_TABLE)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    _reconcile(db, folder)


def _reconcile(db: sqlite3.Connection, folder: Path) -> None:
    """Make the rows those of the folders that are there. Reads only the folders that have no row."""
    existing = {entry.name for entry in folder.iterdir() if entry.is_dir()}
    indexed = {_name(row[0]): row[0] for row in db.execute("SELECT session_id FROM sessions")}
    for name in indexed.keys() - existing:
        db.execute("DELETE FROM sessions WHERE session_id = ?", (indexed[name],))
    for name in existing - indexed.keys():
        if name.startswith(_REMOVED):
            shutil.rmtree(folder / name, ignore_errors=True)
        elif (summary := _summary(folder / name)) is not None and _name(summary.session_id) == name:
            _put_row(db, summary)


def _put(db: sqlite3.Connection, folder: Path, summary: SessionSummary) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    files.write_whole(folder / SUMMARY, summary.model_dump_json().encode())
    _put_row(db, summary)


def _put_row(db: sqlite3.Connection, summary: SessionSummary) -> None:
    row = (summary.session_id, summary.updated_at, summary.model_dump_json())
    db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", row)


def _delete(db: sqlite3.Connection, folder: Path, session_id: str) -> None:
    if folder.is_dir():
        own_lease = lease.take(folder)
        try:
            removed = folder.with_name(_REMOVED + folder.name)
            shutil.rmtree(removed, ignore_errors=True)
            folder.rename(removed)  # gone at once, or not at all; the rest can be done by the next opening
            shutil.rmtree(removed, ignore_errors=True)
        finally:
            own_lease.release()
    db.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))


def _summary(folder: Path) -> SessionSummary | None:
    with contextlib.suppress(OSError, ValidationError):
        return SessionSummary.model_validate_json((folder / SUMMARY).read_bytes())
    return None


def _name(session_id: str) -> str:
    """The folder of a session. A dot in front would hide it, and `..` would be somewhere else."""
    return f"%2E{session_id[1:]}" if session_id.startswith(".") else session_id
