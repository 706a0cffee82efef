"""Says in the log when the event loop was held up: while it is, every session waits.

Measured where the loop asks the system what to do next (`select`): the time between two such calls is what others had
to wait. That costs two looks at the clock per turn of the loop and, unlike a task that wakes to look, nothing at rest.
"""

import asyncio
import logging
import selectors
import time
from collections.abc import Callable

LATE = 0.05
"""Seconds; no step of ours may hold the loop longer (CONTRIBUTING.md)."""
AGAIN = 10.0
"""Seconds between two lines in the log; what came between is summed up in the next."""

log = logging.getLogger(__name__)


class StallMonitor:
    """Told how long each turn of the loop took, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self.longest = 0.0
        self._now = clock
        self._said = -AGAIN
        self._since = (0, 0.0)
        """How many since the last line, and the longest of them."""

    def on_iteration(self, seconds: float) -> None:
        if seconds < LATE:
            return
        self.count += 1
        self.longest = max(self.longest, seconds)
        count, longest = self._since
        self._since = (count + 1, max(longest, seconds))
        time_now = self._now()
        if time_now - self._said >= AGAIN:
            count, longest = self._since
            log.warning("everybody waited %.0f ms (%d such since this was last said)", longest * 1000, count)
            self._said, self._since = time_now, (0, 0.0)


class _Watched(selectors.DefaultSelector):
    """A selector that tells how long its caller was away."""

    def __init__(self, stalls: StallMonitor) -> None:
        super().__init__()
        self._stalls = stalls
        self._left: float | None = None
        self._started = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._left is not None:
            if self._started:  # in the first turn of all there is nobody yet who could wait: all is imported in it
                self._stalls.on_iteration(time.monotonic() - self._left)
            self._started = True
        ready = super().select(timeout)
        self._left = time.monotonic()
        return ready


def watched_loop(stalls: StallMonitor | None = None) -> asyncio.AbstractEventLoop:
    """An event loop that reports its stalls. Not for Windows, whose loop for processes has no selector."""
    return asyncio.SelectorEventLoop(_Watched(stalls or StallMonitor()))
