"""The models a turn can go to: the one it begins with, and those that stand in for it when it cannot be asked."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from amanu.agent.notes import notice
from amanu.core.model import AuthFailed, Delta, Done, Model, ModelError, Request, RequestRefused
from amanu.models.availability import UNAVAILABLE, Availability, stands_in
from amanu.models.retry import PATIENT, Policy, Retrying, Withdrawn, stream_with_retry
from amanu_protocol.events import TurnRouted
from amanu_protocol.items import ModelInfo

if TYPE_CHECKING:
    from amanu.agent.turn import Turn

BRIEF = Policy(busy_retries=2, longest_wait=20.0)
"""With another model at hand: a second or two gets over a hiccup, and a busy service does not recover in the two
minutes the patient policy would give it. A longer wait that is asked for costs the person more than what a change of
model costs: its prompt cache, and its thoughts so far."""

FITS = 0.75
"""Share of a stand-in's window that the conversation may take: the rest is for its reply."""
REPLACEABLE = (*UNAVAILABLE, AuthFailed, RequestRefused)
"""The errors after which another model is asked: in the place of the utility model, or of one that stands in itself."""


@dataclass(frozen=True)
class Way:
    """A model one can go to."""

    model: Model
    info: ModelInfo


@dataclass
class Ways:
    """Of one turn."""

    availability: Availability = field(default_factory=Availability)
    ways: Sequence[Way] = ()
    """In order of preference; the first is the one the turn is meant for."""
    judge: "Callable[[Turn], Awaitable[tuple[Way, str] | None]] | None" = None
    """Asked before the first request: another way to begin with, and why."""
    left: str | None = None
    """Id of the model another one stands in for."""
    notices: int = 0

    def others(self, turn: "Turn", tried: set[str]) -> list[Way]:
        """Where else the turn could go now: not where it has been in vain, and not where the conversation is too
        long; making it fit would lose for good what is missing for a minute."""
        return [
            way
            for way in self.ways
            if way.info.model_id not in tried
            and way.info.context_window * FITS > turn.context.tokens
            and self.availability.why_not(way.model, way.info) is None
        ]


async def set_out(turn: "Turn") -> None:
    """Before the first request: go where the judge says."""
    if turn.ways.judge is not None and (judged := await turn.ways.judge(turn)) is not None:
        way, why = judged
        turn.use(way.model, way.info)
        turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=way.info.model_id, reason=why))


async def stream_any(turn: "Turn", request: Request) -> AsyncGenerator[Delta | Retrying | Withdrawn]:
    """`stream_with_retry` of the turn's model; when that cannot be asked, of the next one that can: the turn stays
    with it. Raises `ModelError` when there is no other, of the first failure."""
    tried: set[str] = set()
    first: ModelError | None = None
    while True:
        tried.add(turn.info.model_id)
        policy = BRIEF if turn.ways.others(turn, tried) else PATIENT
        try:
            async with aclosing(stream_with_retry(turn.model, request, policy)) as deltas:
                async for each in deltas:
                    if isinstance(each, Done):
                        turn.ways.availability.answered(turn.model, turn.info)
                    yield each
            return
        except ModelError as error:
            failure = error
        standing_in = first is not None
        first = first or failure
        if not isinstance(failure, REPLACEABLE if standing_in else UNAVAILABLE):
            raise failure
        turn.ways.availability.lost(turn.model, turn.info, failure)
        others = turn.ways.others(turn, tried)
        if not others:
            raise _nowhere(turn, first, failure)
        yield Withdrawn(failure.message)
        _change(turn, others[0], failure)
        request = replace(request, model=turn.info, system=turn.system, max_output=turn.max_output)


def _change(turn: "Turn", way: Way, failure: ModelError) -> None:
    why = turn.ways.availability.why_not(turn.model, turn.info) or "cannot be used"
    reason = stands_in(way.info.name, turn.info.name, why)
    first = turn.ways.ways[0].info.model_id
    turn.ways.left = None if way.info.model_id == first else first
    tell_of(turn, "warning", "fallback", f"{failure.message} {reason}")
    turn.use(way.model, way.info)
    turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=way.info.model_id, reason=reason))


def _nowhere(turn: "Turn", first: ModelError, failure: ModelError) -> ModelError:
    """The error the turn ends with when there is no other model."""
    if first is not failure:
        return replace(first, message=f"{first.message} {failure.message}")
    if len(turn.ways.ways) > 1:
        return replace(first, message=f"{first.message} No other model can be asked now either.")
    return first


def tell_of(turn: "Turn", level: Literal["info", "warning"], code: str, text: str) -> None:
    """A notice about where the turn goes."""
    turn.ways.notices += 1
    notice(turn, f"way.{turn.ways.notices}", level, code, text)
