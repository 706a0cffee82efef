"""What ends a turn with an offer to go on: its steps, its seconds, and the money that it and its session may spend."""

import time

from amanu.core.agent import AgentLimits
from amanu.core.ending import Ending
from amanu.core.listeners import Notes, TurnListener, TurnView
from amanu.core.notes import SystemNote
from amanu.permissions.approvals import Approvals
from amanu.text.amounts import money
from amanu_protocol.items import ModelInfo
from amanu_protocol.state import SessionState

SESSION_SPENT = "This session has spent"
"""Begins the message with which the session's limit stops a turn. A reopened session counts these messages."""


class CostLimits:
    """What one open session, and each of its turns, may spend: `session_usd` and `turn_usd` US dollars, None for no
    limit. `past` is the session's state when it was opened.

    The session's limit stops a turn each time another `session_usd` is spent; the next prompt allows as much again.
    Unknown costs count as nothing; `unknown_price` warns of them.
    """

    def __init__(self, turn_usd: float | None, session_usd: float | None, past: SessionState) -> None:
        self._turn_usd = turn_usd
        self._session_usd = session_usd
        self._turn = 0.0
        self._session = (past.usage.cost_usd if past.usage is not None else None) or 0.0
        stops = sum(
            item.kind == "notice" and item.code == "costLimit" and item.text.startswith(SESSION_SPENT)
            for item in past.items
        )
        self._asking = past.last_turn is not None and past.last_turn.message.startswith(SESSION_SPENT)
        self._times = stops + (0 if self._asking else 1)
        """How many times `session_usd` may be spent so far."""
        self._warned = False
        self._doubtful = False
        """Something was counted at more than it is thought to cost."""

    def start_turn(self) -> None:
        """A prompt starts a turn; if the session's limit stopped the last one, it allows more spending."""
        self._turn = 0.0
        if self._asking and self._session_usd is not None:
            self._asking = False
            self._times = max(self._times, int(self._session / self._session_usd)) + 1

    def add(self, cost: float | None, most: float | None = None) -> None:
        """Count US dollars: `most` of them where a price is in doubt, or else `cost`."""
        counted = most or cost or 0.0
        self._doubtful |= counted > (cost or 0.0)
        self._turn += counted
        self._session += counted

    @property
    def left(self) -> float | None:
        """US dollars that may still be spent in this turn; None for no limit."""
        turn = None if self._turn_usd is None else self._turn_usd - self._turn
        session = None if self._session_usd is None else self._times * self._session_usd - self._session
        amounts = [amount for amount in (turn, session) if amount is not None]
        return max(0.0, min(amounts)) if amounts else None

    def limit_reached(self) -> str | None:
        """The message for the user when no further request may be sent; None while one may."""
        if self._turn_usd is not None and self._turn >= self._turn_usd:
            return f"This turn has spent {self._spent(self._turn)}; its limit is {money(self._turn_usd)}."
        if self._session_usd is not None and self._session >= self._times * self._session_usd:
            self._asking = True
            limit, allowance = money(self._times * self._session_usd), money(self._session_usd)
            return (
                f"{SESSION_SPENT} {self._spent(self._session)}; its limit is {limit}. "
                f"Send another prompt to continue and spend up to {allowance} more."
            )
        return None

    def _spent(self, dollars: float) -> str:
        return f"up to {money(dollars)} (two prices are known, the dearer counts)" if self._doubtful else money(dollars)

    def unknown_price(self, info: ModelInfo) -> str | None:
        """A warning, once, when no limit can hold because the price of this model is unknown; otherwise None."""
        limited = self._turn_usd is not None or self._session_usd is not None
        if self._warned or not limited or info.input_price is not None:
            return None
        self._warned = True
        return f"The price of {info.name} is unknown, so the cost limit cannot apply while it is in use."


class LimitGuard(TurnListener):
    """Ends one turn at its limits of steps, seconds and money. The clock starts when this is made, and stops while the
    user is asked."""

    def __init__(self, limits: AgentLimits, cost_limits: CostLimits, approvals: Approvals) -> None:
        self._limits = limits
        self._cost_limits = cost_limits
        self._approvals = approvals
        self._started = time.monotonic() - approvals.wait.seconds

    async def before_request(self, turn: TurnView, step: int) -> Notes | Ending | None:
        seconds = time.monotonic() - self._approvals.wait.seconds - self._started
        if step > self._limits.steps:
            return Ending("stepLimit", f"Stopped after {step - 1} steps.", can_continue=True)
        if seconds >= self._limits.seconds:
            return Ending("timeLimit", f"Stopped after {seconds:.0f} seconds.", can_continue=True)
        if (message := self._cost_limits.limit_reached()) is not None:
            return Ending("costLimit", message, can_continue=True)
        if (warning := self._cost_limits.unknown_price(turn.info)) is not None:
            return [SystemNote("", warning, "costUnknown", level="warning")]
        return None
