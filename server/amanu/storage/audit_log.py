"""What was decided and done, in one log per user in which a change shows (`audit_chain.py`).

It is in the state folder, apart from the sessions: deleting one takes nothing out of it. Whatever has an effect waits
for `durable` first, so nothing is done that is not on record. No entry holds a secret, nor what a tool read or printed:
of that only size and hash.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from amanu.storage import audit_chain as chain
from amanu.storage.errors import storage_error
from amanu.storage.group_commit import GroupCommit
from amanu.text.redaction import Secrets
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import AuditEntry, AuditKind, AuditQueryParams, AuditQueryResult

LONGEST = 8_000
"""Characters of a text in an entry; of a longer one the beginning, its length and its hash."""


class AuditLog:
    """One per process. Belongs to the event loop that first adds to it."""

    def __init__(self, folder: Path, secrets: Secrets, keep_mb: int = 0) -> None:
        """`keep_mb`: the oldest entries go when the log is larger; 0: none does."""

        def write(entries: Sequence[chain.Fields]) -> None:
            chain.append(folder, [self._worked_out(entry) for entry in entries], keep_mb << 20)

        self._folder = folder
        self._mask = secrets.mask
        self._commits = GroupCommit[chain.Fields](folder, "amanu-audit", write)
        self._closed = False

    def add(
        self,
        kind: AuditKind,
        text: str,
        *,
        session_id: str | None = None,
        tool_call_id: str | None = None,
        **data: Any,
    ) -> None:
        """Record what happened, at once. `text` is a sentence for the user. `data` are JSON values (None is left out),
        or functions that compute one, called in the thread that writes. Never fails: `durable` tells whether the entry
        is safe."""
        told = {name: _copied(value) for name, value in data.items() if value is not None}
        about = {"session": session_id, "call": tool_call_id}
        named = {name: value for name, value in about.items() if value is not None}
        self._commits.add({"at": int(time.time() * 1000), "kind": kind, "text": text, **named, "data": told})

    async def durable(self) -> None:
        """Return when everything added so far is on the disk. Raises `AmanuError` (storageError) when it is not; it
        stays in memory, and the next time tries again."""
        await self._commits.durable()

    async def query(self, params: AuditQueryParams) -> AuditQueryResult:
        """What is on record of a session, or of one call; and whether the log is whole. Raises `AmanuError`
        (storageError)."""
        with contextlib.suppress(AmanuError):  # what is there can be shown
            await self.durable()
        wanted = about(params.session_id, params.tool_call_id)

        def look() -> AuditQueryResult:
            found = [entry for entry in chain.read(self._folder, wanted) if _before(entry, params.before)]
            verdict = chain.verify(self._folder)
            entries = [shown(entry) for entry in found[-params.limit :]]
            return AuditQueryResult(entries=entries, intact=not verdict.fault, message=sentence(verdict))

        try:
            return await asyncio.to_thread(look)
        except OSError as error:
            raise storage_error(error, self._folder) from error

    async def close(self) -> None:
        """Write what waits. Closing twice is harmless; what could not be written is lost, and logged."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(AmanuError):
            await self.durable()
        self._commits.close()

    def _worked_out(self, entry: chain.Fields) -> chain.Fields:
        """The entry as it is written. In the thread that writes: masking a text takes longer than all else here."""
        told = {name: value() if callable(value) else value for name, value in entry["data"].items()}
        data = {name: self._plain(value) for name, value in told.items() if value is not None}
        return {**entry, "text": self._cut(entry["text"]), "data": data}

    def _plain(self, value: Any) -> Any:
        match value:
            case str():
                return self._cut(value)
            case dict():
                members = cast("dict[str, Any]", value).items()
                return {self._cut(name): self._plain(each) for name, each in members}
            case list() | tuple():
                return [self._plain(each) for each in cast("list[Any]", value)]
            case _:
                return value

    def _cut(self, text: str) -> str:
        plain = self._mask(text)
        if len(plain) <= LONGEST:
            return plain
        whole = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{plain[:LONGEST]} [… {len(plain):,} characters in all, sha256 {whole}]"


def _copied(value: Any) -> Any:
    """The JSON value, which nobody else changes."""
    match value:
        case dict():
            return {name: _copied(each) for name, each in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_copied(each) for each in cast("list[Any]", value)]
        case _:
            return value


def about(session_id: str | None, tool_call_id: str | None) -> Callable[[bytes], bool]:
    """Tells the lines of the log that are about a session, and a call."""
    named = (("session", session_id), ("call", tool_call_id))
    signs = [f'"{name}":{json.dumps(value)}'.encode() for name, value in named if value is not None]
    return lambda line: all(sign in line for sign in signs)


def shown(entry: chain.ChainEntry) -> AuditEntry:
    """An entry as clients get it."""
    fields = entry.fields
    return AuditEntry(
        number=entry.link.number,
        at=fields.get("at", 0),
        kind=fields.get("kind", "log"),
        session_id=fields.get("session"),
        tool_call_id=fields.get("call"),
        text=fields.get("text", ""),
        data=fields.get("data", {}),
        hash=entry.link.hash,
    )


def sentence(verdict: chain.ChainReport) -> str:
    """What a verdict says, for the user."""
    count = verdict.last.number - verdict.first + 1 if verdict.first else 0
    if verdict.fault:
        return f"The audit log is broken: {verdict.fault}. {count} entries before that are intact."
    if not count:
        return "The audit log is empty."
    unfinished = f" A crash left {verdict.unfinished} bytes of one more." if verdict.unfinished else ""
    return f"All {count} entries of the audit log are intact, {verdict.first} to {verdict.last.number}.{unfinished}"


def _before(entry: chain.ChainEntry, number: int | None) -> bool:
    return number is None or entry.link.number < number
