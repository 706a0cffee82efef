"""What a session and its turns may cost, and what is said when that is spent."""

import time

from amanu.core.agent import AgentLimits
from amanu.core.ending import Ending
from amanu.core.listeners import Notes, TurnListener, TurnView
from amanu.core.notes import SystemNote
from amanu.permissions.approvals import Approvals
from amanu_protocol.items import ModelInfo
from amanu_protocol.state import SessionState

SESSION_SPENT = "This session has spent"
"""Begins the message with which the session's limit asks; by it a session that is opened again knows how often."""


class Allowance:
    """Of one session, for as long as it is open. `turn_usd` and `session_usd` are US dollars, None for no limit; `past`
    is the session as it was found.

    The session's limit asks once per `session_usd`: it ends the turn, and the prompt after that allows as much again.
    Costs that are not known count nothing; `doubt` says so.
    """

    def __init__(self, turn_usd: float | None, session_usd: float | None, past: SessionState) -> None:
        self._turn_usd = turn_usd
        self._session_usd = session_usd
        self._turn = 0.0
        self._session = (past.usage.cost_usd if past.usage is not None else None) or 0.0
        prompt_tokens = sum(
            item.kind == "notice" and item.code == "costLimit" and item.text.startswith(SESSION_SPENT)
            for item in past.items
        )
        self._asking = past.last_turn is not None and past.last_turn.message.startswith(SESSION_SPENT)
        self._times = prompt_tokens + (0 if self._asking else 1)
        """How many times `session_usd` may be spent."""
        self._doubted = False

    def start_turn(self) -> None:
        """The user has said something: if the session's limit had asked, that is the yes."""
        self._turn = 0.0
        if self._asking and self._session_usd is not None:
            self._asking = False
            self._times = max(self._times, int(self._session / self._session_usd)) + 1

    def add(self, cost: float | None) -> None:
        self._turn += cost or 0.0
        self._session += cost or 0.0

    def spent(self) -> str | None:
        """What to tell the user when the next request must not be sent any more; None when it may."""
        if self._turn_usd is not None and self._turn >= self._turn_usd:
            return f"This turn has spent {_money(self._turn)}; its limit is {_money(self._turn_usd)}."
        if self._session_usd is not None and self._session >= self._times * self._session_usd:
            self._asking = True
            limit, allowance = _money(self._times * self._session_usd), _money(self._session_usd)
            return (
                f"{SESSION_SPENT} {_money(self._session)}; its limit is {limit}. "
                f"The next prompt lets it go on and spend up to {allowance} more."
            )
        return None

    def doubt(self, info: ModelInfo) -> str | None:
        """Once: that a limit cannot hold with this model, because its price is not known."""
        limited = self._turn_usd is not None or self._session_usd is not None
        if self._doubted or not limited or info.input_price is not None:
            return None
        self._doubted = True
        return f"The price of {info.name} is not known, so the limit on costs cannot hold while it is used."


class Budgets(TurnListener):
    """Steps, seconds and money of one turn. The clock starts now, and stands while the user is asked."""

    def __init__(self, limits: AgentLimits, allowance: Allowance, approvals: Approvals) -> None:
        self._limits = limits
        self._allowance = allowance
        self._approvals = approvals
        self._started = time.monotonic() - approvals.seconds_waited

    async def before_request(self, turn: TurnView, step: int) -> Notes | Ending | None:
        seconds = time.monotonic() - self._approvals.seconds_waited - self._started
        if step > self._limits.steps:
            return Ending("stepLimit", f"Stopped after {step - 1} steps.", can_continue=True)
        if seconds >= self._limits.seconds:
            return Ending("timeLimit", f"Stopped after {seconds:.0f} seconds.", can_continue=True)
        if (spent := self._allowance.spent()) is not None:
            return Ending("costLimit", spent, can_continue=True)
        if (doubt := self._allowance.doubt(turn.info)) is not None:
            return [SystemNote("", doubt, "costUnknown", level="warning")]
        return None


def _money(value: float) -> str:
    return f"${value:.2f}" if value >= 0.1 else f"${value:.4f}"
