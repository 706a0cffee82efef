"""What one session, its turns and its sub-agents spend."""

from amanu.agent.budget import CostLimits
from amanu.agent.usage import NO_USAGE, Ledger
from amanu.core.model import TokenUsage
from amanu.session.events import EventStream
from amanu.text import wording
from amanu_protocol.events import UsageChanged
from amanu_protocol.items import ModelInfo


class SessionCosts:
    """`parent`: the costs of the session that a sub-agent's session works for; what is spent here counts there, too."""

    def __init__(self, limits: CostLimits, emit: EventStream, parent: "SessionCosts | None" = None) -> None:
        self.limits = limits
        self._emit = emit
        self._parent = parent
        self._turn: Ledger | None = None

    def start_ledger(self) -> Ledger:
        """The ledger of a turn that starts."""
        self._turn = self.new_ledger()
        return self._turn

    def new_ledger(self) -> Ledger:
        """A ledger for what is done beside the turn."""
        count = None if self._parent is None else self._parent.count_beside
        return Ledger(self._emit.state.usage or NO_USAGE, self.limits, on_spend=count)

    def count_beside(self, info: ModelInfo, used: TokenUsage) -> None:
        """Count a request beside the conversation, such as a sub-agent's: as the running turn's, if there is one."""
        in_turn = self._turn is not None and self._emit.state.turn is not None
        ledger = self._turn if in_turn and self._turn is not None else self.new_ledger()
        ledger.count_beside(info, used)
        self._emit(UsageChanged(usage=wording.summarize_usage(ledger.usage)))
