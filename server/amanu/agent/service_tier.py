"""A turn's requests at its service tier, and at the standard one where the service does not serve them so."""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from amanu.agent.turn import Turn
from amanu.core.model import AuthFailed, Delta, ModelError, QuotaExhausted, RateLimited, Request, RequestRefused
from amanu.core.notes import SystemNote
from amanu.core.service_tiers import TIER_NAMES
from amanu.models.retry import PATIENT, RetryPolicy
from amanu_protocol.events import SessionChanged

UNHURRIED = replace(
    PATIENT,
    attempts=16,
    busy_retries=15,
    longest_delay=60.0,
    longest_wait=300.0,
    idle_text=180.0,
    idle_thinking=900.0,
    idle_whole=900.0,
)
"""The retry policy of the flex tier, which answers when there is room: 15 minutes for a reply, and retries with growing
pauses, as OpenAI advises ("Flex processing"); Google names up to 15 minutes as well ("Flex inference")."""

_ABOUT_TIERS = re.compile(r"\bspeed\b|fast[ -]?mode|service[_ ]?tier|\bflex\b|\bpriority\b", re.I)
"""Words by which a refusal is known to be about a tier, whichever one."""


def policy_of(turn: Turn) -> RetryPolicy | None:
    """The retry policy that the turn's tier needs; None: any."""
    return UNHURRIED if turn.service_tier == "flex" and "flex" in turn.info.service_tiers else None


class TieredModel:
    """The turn's `Model`, asked at the turn's tier. A refusal of the tier ends it for the session, and a lack of fast
    capacity for the turn: the request goes out once more without it, and the user is told."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        turn = self._turn
        if turn.service_tier in turn.info.service_tiers:
            request = replace(request, service_tier=turn.service_tier)
        started = False
        try:
            async with aclosing(cast("Any", turn.model.stream(request))) as deltas:
                async for delta in deltas:
                    started = True
                    yield delta
            return
        except (RequestRefused, AuthFailed, RateLimited, QuotaExhausted) as failure:
            if started or not self._gave_up(request, failure):
                raise
        async with aclosing(cast("Any", turn.model.stream(replace(request, service_tier="standard")))) as deltas:
            async for delta in deltas:
                yield delta

    async def close(self) -> None:
        await self._turn.model.close()

    def _gave_up(self, request: Request, failure: ModelError) -> bool:
        """Give the tier up if the failure is about it."""
        turn, tier = self._turn, request.service_tier
        is_busy = isinstance(failure, RateLimited | QuotaExhausted)
        if tier == "standard" or (is_busy and tier == "flex"):
            return False  # a flex request waits for room: at the standard tier it would cost twice as much
        if not is_busy and _ABOUT_TIERS.search(f"{failure.message} {failure.details}") is None:
            return False
        if is_busy:
            text = f"No room for {TIER_NAMES[tier]} right now, so this turn goes on at the usual speed and price."
        else:
            text = f"The {TIER_NAMES[tier]} is off, and the usual price applies: {failure.message}"
            turn.emit(SessionChanged(service_tier="standard"))
        turn.service_tier = "standard"
        turn.add_note(SystemNote("", text, "serviceTier", level="warning"))
        return True
