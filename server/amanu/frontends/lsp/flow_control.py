"""How long one client may hold up all others by what it sends.

A message is parsed and taken in one go; of a very large one that is a tenth of a second in which nobody else is served.
Once, that is no harm: a user opened a large file. Again and again, it would be: so each client has a small credit of
such time that comes back slowly, and one that has used it up is read no further until it has some again.
"""

import time
from collections.abc import Callable

FREE_SECONDS = 0.02
"""Seconds of one message that are free; others do not notice."""
MAX_CREDIT = 1.0
"""Seconds of credit: a handful of files of 50 MB."""
REFILL_RATE = 0.005
"""Seconds of credit that come back in a second: of a hundred requests of others, less than one meets such a message."""
MAX_WAIT = 10.0
"""Seconds until a client is read again, whatever it owes: what it sends may be the order to stop."""


class Credit:
    """Of one connection."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._balance = MAX_CREDIT
        self._at = clock()

    def charge(self, seconds: float) -> float:
        """A message took so long: the seconds until the next may be looked at."""
        if seconds <= FREE_SECONDS:
            return 0.0
        current_time = self._clock()
        self._balance = min(MAX_CREDIT, self._balance + (current_time - self._at) * REFILL_RATE) - seconds
        self._at = current_time
        if self._balance >= 0:
            return 0.0
        wait = min(-self._balance / REFILL_RATE, MAX_WAIT)
        self._balance = max(self._balance, -MAX_WAIT * REFILL_RATE)
        return wait
