"""The models a turn can use: the one it is meant for, and those that replace it when it is unavailable."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from amanu.core.listeners import TurnView
from amanu.core.model import Model, RequestRefused
from amanu.models.availability import UNAVAILABLE, Availability
from amanu_protocol.items import ModelInfo

MAX_FILL = 0.75
"""Share of a replacement's window that the conversation may take: the rest is for its reply."""
REPLACEABLE = (*UNAVAILABLE, RequestRefused)
"""Errors after which a utility model, or a model that is already a replacement, is replaced by another."""


@dataclass(frozen=True)
class Candidate:
    """A model a turn can use."""

    model: Model
    info: ModelInfo


@dataclass
class Fallbacks:
    """The models one turn can use, and whether another one replaces the first."""

    availability: Availability = field(default_factory=Availability)
    candidates: Sequence[Candidate] = ()
    """In order of preference; the turn is meant for the first."""
    judge: Callable[[TurnView], Awaitable[tuple[Candidate, str] | None]] | None = None
    """Chooses the model to begin with before the first request, and says why."""
    replaced: str | None = None
    """Id of the model that was replaced."""

    def alternatives(self, tried: Collection[str], tokens: int) -> list[Candidate]:
        """The other models a conversation of `tokens` tokens can go to: not those already tried, and not those it is
        too long for. Compacting it to fit would lose for good what is only needed for a minute's outage."""
        return [
            candidate
            for candidate in self.candidates
            if candidate.info.model_id not in tried
            and candidate.info.context_window * MAX_FILL > tokens
            and self.availability.why_not(candidate.model, candidate.info) is None
        ]
