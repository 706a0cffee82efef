"""The models a turn can go to: the one it begins with, and those that stand in for it when it cannot be asked."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from amanu.agent.side_query import SideQuery
from amanu.core.model import AuthFailed, Model, RequestRefused
from amanu.models.availability import UNAVAILABLE, Availability
from amanu_protocol.items import ModelInfo

FITS = 0.75
"""Share of a stand-in's window that the conversation may take: the rest is for its reply."""
REPLACEABLE = (*UNAVAILABLE, AuthFailed, RequestRefused)
"""The errors after which another model is asked: in the place of the utility model, or of one that stands in itself."""


@dataclass(frozen=True)
class Candidate:
    """A model that can be asked."""

    model: Model
    info: ModelInfo


@dataclass
class Fallbacks:
    """Of one turn."""

    availability: Availability = field(default_factory=Availability)
    candidates: Sequence[Candidate] = ()
    """In order of preference; the first is the one the turn is meant for."""
    judge: Callable[[SideQuery], Awaitable[tuple[Candidate, str] | None]] | None = None
    """Asked before the first request, with what asks a model aside: another model to begin with, and why."""
    replaced: str | None = None
    """Id of the model another one stands in for."""

    def alternatives(self, tried: Collection[str], tokens: int) -> list[Candidate]:
        """Where else a conversation of so many tokens could go: not where it has been in vain, and not where it is too
        long; making it fit would lose for good what is missing for a minute."""
        return [
            candidate
            for candidate in self.candidates
            if candidate.info.model_id not in tried
            and candidate.info.context_window * FITS > tokens
            and self.availability.why_not(candidate.model, candidate.info) is None
        ]
