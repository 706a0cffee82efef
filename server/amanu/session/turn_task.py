"""Runs the turn of a session: every turn that starts ends, once."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

from amanu.core.agent import AgentRun
from amanu.core.ending import DAEMON_STOPPED, Ending
from amanu.session.access import Access
from amanu_protocol.errors import AmanuError

log = logging.getLogger(__name__)


Ended = Callable[[AgentRun, Ending], Awaitable[None]]


class TurnTask:
    """The running turn of a session; there is at most one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.starting = asyncio.Lock()
        """Held while a turn starts."""
        self._task: asyncio.Task[Ending] | None = None
        self._end: asyncio.Task[None] | None = None
        """Never cancelled itself."""
        self.stopping = False
        """The turn was cancelled and has not ended yet."""
        self._interrupted = False

    def __bool__(self) -> bool:
        return self._task is not None

    def start(self, run: AgentRun, turn: Coroutine[Any, Any, Ending], save: Ended, ended: Ended) -> None:
        """Run a turn. When it has stopped, for whatever reason, `save` is called while it still counts as running, then
        `ended`; each once."""
        self._task = asyncio.create_task(turn, name=f"turn {run.turn_id}")
        self._end = asyncio.create_task(self._finish(run, self._task, save, ended), name=f"end of {run.turn_id}")

    async def stop(self, seconds: float | None = None, *, daemon_stops: bool = False) -> None:
        """Cancel the turn and wait for its end, at most so long. It is cancelled once: a second cancellation would cut
        short what the first one waits for. If the `daemon_stops`, nobody has cancelled it: it was interrupted."""
        if self._task is not None and not self.stopping:
            self.stopping = True
            self._interrupted = daemon_stops
            self._task.cancel(DAEMON_STOPPED if daemon_stops else None)
        if self._end is not None:
            await asyncio.wait({self._end}, timeout=seconds)

    @contextlib.asynccontextmanager
    async def idle(self) -> AsyncGenerator[None]:
        """A context in which no turn runs or starts. Raises `AmanuError` (turnInProgress, sessionReadOnly,
        sessionNotFound)."""
        async with self.starting:
            self._access.require_writable()
            if self:
                raise AmanuError("turnInProgress", "A turn is running.", hint="Stop it first.")
            yield

    async def _finish(self, run: AgentRun, task: "asyncio.Task[Ending]", save: Ended, ended: Ended) -> None:
        try:
            ending = await task
        except asyncio.CancelledError:
            ending = Ending("cancelled")
            if self._interrupted:
                ending = Ending("interrupted", DAEMON_STOPPED, can_continue=True)
        except AmanuError as error:
            ending = Ending("failed", str(error), can_continue=True, kind=error.kind)
        except Exception:
            log.exception("turn %s failed unexpectedly", run.turn_id)
            ending = Ending(
                "failed", "Internal error in Amanu: the turn was ended. See `amanu logs`.", can_continue=True
            )
        await save(run, ending)
        self._task = None
        self.stopping = False
        await ended(run, ending)
