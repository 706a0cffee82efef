"""The models that cannot be asked just now or take less than was thought, for all sessions of the daemon."""

import time
from collections.abc import Callable

from amanu.core.model import (
    AuthFailed,
    Model,
    ModelError,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    Unreachable,
)
from amanu.core.model_families import in_window
from amanu_protocol.items import ModelInfo

BUSY = 60.0
"""Seconds a model that was overloaded or out of reach is left alone, when its service did not say how long: twice what
Gemini CLI waits, whose next request then meets the same minute's quota."""
AT_LEAST = 10.0
"""However soon a service says it may be asked again: it said so before each attempt that failed."""
LEARNT = 24 * 3600.0
"""Seconds to remember a window that a service named: accounts change tiers, servers restart with larger ones."""
USED_UP = 30 * 60.0
"""The same for a quota that is used up: credit may be added at any time, a day's quota comes back once."""

_WHY: dict[type[ModelError], str] = {
    Overloaded: "is overloaded",
    RateLimited: "is taking no more requests for now",
    QuotaExhausted: "has no quota or credit left",
    Unreachable: "cannot be reached",
    ModelNotFound: "is not offered to you by its service",
    AuthFailed: "cannot be used with your key",
}
UNAVAILABLE = tuple(_WHY)
"""The errors that say something of the model's service and nothing of the request: another model may well answer."""


class Availability:
    """Kept by the connection as well as the model: a quota belongs to a key, and clients may bring different ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._away: dict[tuple[Model, str], tuple[float, str]] = {}
        """The time it ends, and the reason."""
        self._narrow: dict[tuple[Model, str], tuple[float, int, int]] = {}
        """The time it ends, the window that was believed, and the one that the service named."""

    def lost(self, model: Model, info: ModelInfo, error: ModelError) -> None:
        """It failed for good with that error."""
        seconds = USED_UP if isinstance(error, QuotaExhausted) else BUSY
        if error.retry_after is not None:
            seconds = max(AT_LEAST, error.retry_after)
        why = next((reason for kind, reason in _WHY.items() if isinstance(error, kind)), "cannot be used")
        self._away[model, info.model_id] = (self._clock() + seconds, why)

    def answered(self, model: Model, info: ModelInfo) -> None:
        """It can be asked, whatever was thought of it."""
        self._away.pop((model, info.model_id), None)

    def narrow(self, model: Model, info: ModelInfo, window: int) -> None:
        """Its service named that window, in tokens, when it refused a request."""
        _, believed, known = self._narrow.get((model, info.model_id), (0.0, 0, 0))
        believed = believed if info.context_window == known else info.context_window
        self._narrow[model, info.model_id] = (self._clock() + LEARNT, believed, window)

    def fitted(self, model: Model, info: ModelInfo) -> ModelInfo:
        """The facts with the window that the service named, unless they have changed since."""
        until, believed, window = self._narrow.get((model, info.model_id), (0.0, 0, 0))
        return in_window(info, window) if info.context_window == believed and self._clock() < until else info

    def why_not(self, model: Model, info: ModelInfo) -> str | None:
        """Why it is not to be asked now, as "is overloaded"; None when it may be."""
        until, why = self._away.get((model, info.model_id), (0.0, None))
        if why is not None and self._clock() >= until:
            self.answered(model, info)
            return None
        return why


def stands_in(standin: str, name: str, why: str) -> str:
    """The sentence that explains it, from names and the words of `Availability.why_not`."""
    return f"{name} {why}; {standin} is used instead."
