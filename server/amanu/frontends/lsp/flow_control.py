"""How long one client may hold up all others by what it sends.

A message is parsed and taken in one go; of a very large one that is a tenth of a second in which nobody else is served.
Once, that is no harm: a person opened a large file. Again and again, it would be: so each client has a small credit of
such time that comes back slowly, and one that has used it up is read no further until it has some again.
"""

import time
from collections.abc import Callable

COSTS = 0.02
"""Seconds of one message that are free; others do not notice."""
MOST = 1.0
"""Seconds of credit: a handful of files of 50 MB."""
BACK = 0.005
"""Seconds of credit that come back in a second: of a hundred requests of others, less than one meets such a message."""
LONGEST = 10.0
"""Seconds until a client is read again, whatever it owes: what it sends may be the order to stop."""


class Credit:
    """Of one connection."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = clock
        self._left = MOST
        self._at = clock()

    def charge(self, seconds: float) -> float:
        """A message took so long: the seconds until the next may be looked at."""
        if seconds <= COSTS:
            return 0.0
        time_now = self._now()
        self._left = min(MOST, self._left + (time_now - self._at) * BACK) - seconds
        self._at = time_now
        if self._left >= 0:
            return 0.0
        wait = min(-self._left / BACK, LONGEST)
        self._left = max(self._left, -LONGEST * BACK)
        return wait
