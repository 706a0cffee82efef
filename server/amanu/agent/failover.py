"""Sends a request to the turn's model or, when that is unavailable, to the next one that is available."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from amanu.agent.fallback import REPLACEABLE, Candidate
from amanu.agent.markup.model import MarkupRead
from amanu.agent.service_tier import TieredModel, policy_of
from amanu.agent.turn import Turn
from amanu.core.model import Delta, ModelError, ReplyCompleted, Request, TokenUsage
from amanu.core.notes import SystemNote
from amanu.models.availability import UNAVAILABLE, stands_in
from amanu.models.retry import PATIENT, AttemptWithdrawn, RetryPolicy, RetryScheduled, stream_with_retry
from amanu_protocol.events import TurnRouted

BRIEF = RetryPolicy(busy_retries=2, longest_wait=20.0)
"""The retry policy while another model is available. A second or two gets over a hiccup, and a busy service rarely
recovers within the two minutes of `PATIENT`. A longer wait costs the user more than changing the model, which loses the
prompt cache and the thoughts so far."""


async def route_first_request(turn: Turn) -> None:
    """Before the first request: use the model that the turn's judge chooses, if it chooses one."""
    judge = turn.fallbacks.judge
    if judge is not None and (choice := await judge(turn)) is not None:
        candidate, reason = choice
        turn.use_model(candidate)
        turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=candidate.info.model_id, reason=reason))


async def stream_with_failover(
    turn: Turn, request: Request, count: Callable[[TokenUsage], object]
) -> AsyncGenerator[Delta | RetryScheduled | AttemptWithdrawn]:
    """`stream_with_retry` for the turn's model. When that is unavailable, the turn changes to the next available model
    and stays with it. `count` is told while the turn's model is still the one it is about. Raises the first model's
    `ModelError` when no model is left."""
    fallbacks = turn.fallbacks
    tried: set[str] = set()
    first: ModelError | None = None
    while True:
        tried.add(turn.info.model_id)
        policy = policy_of(turn) or (BRIEF if fallbacks.alternatives(tried, turn.context.tokens) else PATIENT)
        try:
            model = MarkupRead(TieredModel(turn), turn.tools, turn.quotes)
            async with aclosing(stream_with_retry(model, request, policy, count)) as deltas:
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
            raise _final_error(turn, first, failure)
        yield AttemptWithdrawn(failure.message)
        _fall_back(turn, others[0], failure)
        request = replace(request, model=turn.info, system=turn.system, max_output=turn.budget.max_output)


def _fall_back(turn: Turn, candidate: Candidate, failure: ModelError) -> None:
    """Change to that model, and tell the user why."""
    why = turn.fallbacks.availability.why_not(turn.model, turn.info) or "cannot be used"
    reason = stands_in(candidate.info.name, turn.info.name, why)
    first = turn.fallbacks.candidates[0].info.model_id
    turn.fallbacks.replaced = None if candidate.info.model_id == first else first
    turn.add_note(SystemNote("", f"{failure.message} {reason}", "fallback", level="warning"))
    turn.use_model(candidate)
    turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=candidate.info.model_id, reason=reason))


def _final_error(turn: Turn, first: ModelError, failure: ModelError) -> ModelError:
    """The error the turn ends with when there is no other model."""
    if first is not failure:
        return replace(first, message=f"{first.message} {failure.message}")
    if len(turn.fallbacks.candidates) > 1:
        return replace(first, message=f"{first.message} No other model is available right now either.")
    return first
