"""Keeps the list of sessions true, a moment after something of one changed.

Each entry costs two fsyncs, and the beginning of a turn is when everything else wants the disk: what changes within
that moment becomes one entry, and is written when the request to the model is on its way. The list is a convenience;
the session's journal is the truth.
"""

import asyncio
from collections.abc import Awaitable, Callable

from amanu_protocol.state import SessionState

LINGER = 0.05
"""Seconds an entry that nobody waits for may wait."""


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
        """Its entry is being written now, by somebody else: one that waits would take what is older for newer."""
        self._waiting.pop(state.session_id, None)

    async def settled(self) -> None:
        """Return when nothing waits."""
        self._write()
        await asyncio.gather(*self._writing)

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for state in waiting.values():
            task = asyncio.ensure_future(self._put(state))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)
