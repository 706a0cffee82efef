"""The running turn of a session, seen to its end: every turn that starts ends, once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from amanu.agent.turn import Ending, Turn, run_turn
from amanu_protocol.errors import AmanuError

log = logging.getLogger(__name__)


class Running:
    """At most one turn. `ended` is called once for each, when it has stopped for whatever reason."""

    def __init__(self, ended: Callable[[Turn, Ending], Awaitable[None]]) -> None:
        self._ended = ended
        self._work: asyncio.Task[Ending] | None = None
        self._end: asyncio.Task[None] | None = None
        """Never cancelled itself."""
        self.stopping = False
        """The turn was cancelled and has not ended yet."""

    def __bool__(self) -> bool:
        return self._work is not None

    def start(self, turn: Turn, work: Callable[[Turn], Coroutine[Any, Any, Ending]] = run_turn) -> None:
        self._work = asyncio.create_task(work(turn), name=f"turn {turn.turn_id}")
        self._end = asyncio.create_task(self._see_to_its_end(turn, self._work), name=f"end of {turn.turn_id}")

    async def stop(self, seconds: float | None = None) -> None:
        """Cancel the turn and wait for its end, at most so long. Once: a second cancellation would cut short what
        the first one waits for."""
        if self._work is not None and not self.stopping:
            self.stopping = True
            self._work.cancel()
        if self._end is not None:
            await asyncio.wait({self._end}, timeout=seconds)

    async def _see_to_its_end(self, turn: Turn, work: "asyncio.Task[Ending]") -> None:
        try:
            ending = await work
        except asyncio.CancelledError:
            ending = Ending("cancelled")
        except AmanuError as error:
            ending = Ending("failed", str(error), can_continue=True, kind=error.kind)
        except Exception:
            log.exception("turn %s failed unexpectedly", turn.turn_id)
            ending = Ending("failed", "An internal error of Amanu ended the turn; see `amanu logs`.", can_continue=True)
        self._work = None
        self.stopping = False
        await self._ended(turn, ending)
