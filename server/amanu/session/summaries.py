"""The list of all sessions, open or not. It is a convenience: the truth about a session is its journal."""

import asyncio
import contextlib
import time
from pathlib import Path

from amanu.session.roots import real_root
from amanu.session.summary import summarize
from amanu.session.summary_writer import SummaryWriter
from amanu.storage.session_index import SessionIndex
from amanu.system.tasks import run_to_completion
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionListParams, SessionListResult, SessionSummary
from amanu_protocol.state import SessionState

_ALL = 1_000_000


class Summaries:
    """One per process, of the sessions in `folder`. The index is opened when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: SessionIndex | None = None
        self._opening = asyncio.Lock()
        self._created: dict[str, int] = {}
        """Milliseconds since the epoch, of the sessions that were opened here."""
        self._writer = SummaryWriter(self.put)

    async def list(self, params: SessionListParams) -> SessionListResult:
        root = None if params.root is None else real_root(params.root)
        await self._writer.settled()
        index = await self.index()
        listed = await index.list(root, params.limit, agents=params.agents, archived=params.archived)
        return SessionListResult(sessions=listed)

    async def settled(self) -> None:
        """Return when the list says how things are now."""
        await self._writer.settled()

    async def all(self) -> "list[SessionSummary]":
        """Sub-agents' included."""
        await self._writer.settled()
        return await (await self.index()).list(limit=_ALL)

    def opened(self, session_id: str, created_at: int | None) -> None:
        """Call before its summary is put. `created_at`: milliseconds since the epoch; None for a new one."""
        self._created[session_id] = int(time.time() * 1000) if created_at is None else created_at

    def changed(self, state: SessionState) -> None:
        """Write its summary soon."""
        self._writer.changed(state)

    async def put(self, state: SessionState, *, closed: bool = False) -> None:
        """Write its summary now."""
        self._writer.written(state)
        if state.read_only:
            return
        created_at, now = self._created[state.session_id], int(time.time() * 1000)
        summary = summarize(state, created_at=created_at, updated_at=now, closed=closed)
        with contextlib.suppress(AmanuError):
            await (await self.index()).put(summary)

    async def archive(self, session_id: str, archived: bool) -> None:
        """Until its summary is put again. Raises `AmanuError` (sessionNotFound, storageError)."""
        index = await self.index()
        if (summary := await index.get(session_id)) is None:
            raise AmanuError("sessionNotFound", f"There is no session {session_id}.")
        await index.put(summary.model_copy(update={"archived": archived}))

    async def index(self) -> SessionIndex:
        async with self._opening:
            return self._index or await run_to_completion(self._open())

    async def close(self) -> None:
        await self._writer.settled()
        if self._index is not None:
            await self._index.close()

    async def _open(self) -> SessionIndex:
        self._index = await SessionIndex.open(self._folder)
        return self._index
