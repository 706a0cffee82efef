"""Updates the list of sessions a moment after one of them has changed.

Each entry costs two fsyncs, and at the beginning of a turn everything else needs the disk: changes within that moment
become one entry, which is written while the request to the model is on its way. The list is a convenience; the
session's journal is the truth.
"""

import asyncio
from collections.abc import Awaitable, Callable

from amanu_protocol.state import SessionState

LINGER = 0.05
"""Seconds until a changed entry is written."""


class SummaryWriter:
    """`put` writes the entry of a session as it is then; it does not raise."""

    def __init__(self, put: Callable[[SessionState], Awaitable[None]]) -> None:
        self._put = put
        self._waiting: dict[str, SessionState] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Future[None]] = set()

    def changed(self, state: SessionState) -> None:
        """Write its entry soon."""
        self._waiting[state.session_id] = state
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._write)

    def written(self, state: SessionState) -> None:
        """Drop a waiting entry, because the caller writes a newer one now."""
        self._waiting.pop(state.session_id, None)

    async def settled(self) -> None:
        """Return when nothing waits."""
        self._write()
        await asyncio.gather(*self._writing)

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for session_id in self._waiting:
            task = asyncio.ensure_future(self._put_waiting(session_id))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _put_waiting(self, session_id: str) -> None:
        """Write a waiting entry, unless a newer one was written since the task was made."""
        if (state := self._waiting.pop(session_id, None)) is not None:
            await self._put(state)
