"""One request to the turn's model, or to the next one that can be asked."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from amanu.agent.fallback import REPLACEABLE, Candidate
from amanu.agent.turn import Turn
from amanu.core.model import Delta, ModelError, ReplyCompleted, Request
from amanu.core.notes import SystemNote
from amanu.models.availability import UNAVAILABLE, stands_in
from amanu.models.retry import PATIENT, AttemptWithdrawn, RetryPolicy, RetryScheduled, stream_with_retry
from amanu_protocol.events import TurnRouted

BRIEF = RetryPolicy(busy_retries=2, longest_wait=20.0)
"""With another model at hand: a second or two gets over a hiccup, and a busy service does not recover in the two
minutes the patient policy would give it. A longer wait that is asked for costs the user more than what a change of
model costs: its prompt cache, and its thoughts so far."""


async def route_first_request(turn: Turn) -> None:
    """Before the first request: go to the model that the judge names."""
    judge = turn.fallbacks.judge
    if judge is not None and (choice := await judge(turn.side_query)) is not None:
        candidate, reason = choice
        turn.use_model(candidate)
        turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=candidate.info.model_id, reason=reason))


async def stream_with_failover(
    turn: Turn, request: Request
) -> AsyncGenerator[Delta | RetryScheduled | AttemptWithdrawn]:
    """`stream_with_retry` of the turn's model; when that cannot be asked, of the next one that can: the turn stays
    with it. Raises `ModelError` when there is no other, of the first failure."""
    fallbacks = turn.fallbacks
    tried: set[str] = set()
    first: ModelError | None = None
    while True:
        tried.add(turn.info.model_id)
        policy = BRIEF if fallbacks.alternatives(tried, turn.context.tokens) else PATIENT
        try:
            async with aclosing(stream_with_retry(turn.model, request, policy)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, ReplyCompleted):
                        fallbacks.availability.answered(turn.model, turn.info)
                    yield delta
            return
        except ModelError as error:
            failure = error
        standing_in = first is not None
        first = first or failure
        if not isinstance(failure, REPLACEABLE if standing_in else UNAVAILABLE):
            raise failure
        fallbacks.availability.lost(turn.model, turn.info, failure)
        others = fallbacks.alternatives(tried, turn.context.tokens)
        if not others:
            raise _nowhere(turn, first, failure)
        yield AttemptWithdrawn(failure.message)
        _change(turn, others[0], failure)
        request = replace(request, model=turn.info, system=turn.system, max_output=turn.budget.max_output)


def _change(turn: Turn, candidate: Candidate, failure: ModelError) -> None:
    why = turn.fallbacks.availability.why_not(turn.model, turn.info) or "cannot be used"
    reason = stands_in(candidate.info.name, turn.info.name, why)
    first = turn.fallbacks.candidates[0].info.model_id
    turn.fallbacks.replaced = None if candidate.info.model_id == first else first
    turn.add_note(SystemNote("", f"{failure.message} {reason}", "fallback", level="warning"))
    turn.use_model(candidate)
    turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=candidate.info.model_id, reason=reason))


def _nowhere(turn: Turn, first: ModelError, failure: ModelError) -> ModelError:
    """The error the turn ends with when there is no other model."""
    if first is not failure:
        return replace(first, message=f"{first.message} {failure.message}")
    if len(turn.fallbacks.candidates) > 1:
        return replace(first, message=f"{first.message} No other model can be asked now either.")
    return first
