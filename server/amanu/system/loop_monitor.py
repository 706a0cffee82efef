"""Logs when the event loop was blocked: while it is, every session waits.

The time between two calls of `select`, in which the loop waits for events, is the time others had to wait. Measuring it
costs two readings of the clock per iteration and, unlike a task that wakes up to check, nothing while the loop is idle.
"""

import asyncio
import logging
import selectors
import time
from collections.abc import Callable

STALL = 0.05
"""Seconds; no callback may block the loop for longer (AGENTS.md)."""
LOG_INTERVAL = 10.0
"""Seconds between two lines in the log; each line sums up the stalls since the last."""

log = logging.getLogger(__name__)


class StallMonitor:
    """Counts and logs iterations of the event loop that took too long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self.longest = 0.0
        self._clock = clock
        self._logged_at = -LOG_INTERVAL
        self._unlogged = (0, 0.0)
        """Number of stalls since the last line, and the longest of them in seconds."""

    def on_iteration(self, seconds: float) -> None:
        """An iteration of the loop took that long."""
        if seconds < STALL:
            return
        self.count += 1
        self.longest = max(self.longest, seconds)
        count, longest = self._unlogged
        count, longest = self._unlogged = (count + 1, max(longest, seconds))
        time_now = self._clock()
        if time_now - self._logged_at >= LOG_INTERVAL:
            log.warning(
                "the event loop was blocked for up to %.0f ms (%d times since the last report)", longest * 1000, count
            )
            self._logged_at, self._unlogged = time_now, (0, 0.0)


class _Watched(selectors.DefaultSelector):
    """A selector that reports how long its caller did other things between two calls."""

    def __init__(self, stalls: StallMonitor) -> None:
        super().__init__()
        self._stalls = stalls
        self._returned_at: float | None = None
        self._started = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._returned_at is not None:
            if self._started:  # the first iteration imports everything, and nobody waits yet
                self._stalls.on_iteration(time.monotonic() - self._returned_at)
            self._started = True
        ready = super().select(timeout)
        self._returned_at = time.monotonic()
        return ready


def watched_loop(stalls: StallMonitor | None = None) -> asyncio.AbstractEventLoop:
    """An event loop that reports its stalls. Not for Windows, where the loop that can run processes has no selector."""
    return asyncio.SelectorEventLoop(_Watched(stalls or StallMonitor()))
