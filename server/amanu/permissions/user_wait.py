"""How long a session has waited for its user: that time counts towards no limit."""

import time


class UserWait:
    """Counts the seconds in which at least one thing waits for the user."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """In all, without the wait that is going on now."""
        self._waiting = 0
        self._since = 0.0

    def begin(self) -> None:
        """One more thing waits."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += 1

    def end(self) -> None:
        """One of them no longer waits."""
        self._waiting -= 1
        if not self._waiting:
            self.seconds += time.monotonic() - self._since
