"""What sub-agents spend is part of what their session spends, and each may spend a share of what is left."""

from amanu.agent.budget import CostLimits
from amanu.core.model import TokenUsage
from amanu.session.costs import SessionCosts
from amanu.session.events import EventStream
from amanu_protocol.events import Event
from amanu_protocol.items import ModelInfo
from amanu_protocol.state import SessionState, TurnState, fold

PRICED = ModelInfo(
    model_id="x:y", name="Y", context_window=1, max_output=1, input_price=1, output_price=1, thinking=False,
    images=False, available=True,
)  # fmt: skip
A_CENT = TokenUsage(input=10_000)


def state_of(name: str) -> SessionState:
    return SessionState(session_id=name, title="", roots=[], mode="ask", model_id="x:y", trusted=False, read_only=False)


class Stream(EventStream):
    """Events that are folded and kept nowhere."""

    def __init__(self, state: SessionState) -> None:
        self.state = state

    def __call__(self, event: Event, entry: object = None) -> None:
        fold(self.state, event)


def costs(name: str, turn_usd: float | None, parent: SessionCosts | None = None) -> tuple[SessionCosts, SessionState]:
    state = state_of(name)
    return SessionCosts(CostLimits(turn_usd, None, state), Stream(state), parent), state


def test_what_an_agent_spends_counts_for_the_turn_it_works_for() -> None:
    parent, state = costs("parent", 0.10)
    child, _ = costs("child", 0.02, parent)
    parent.limits.start_turn()
    turn = parent.start_ledger()
    state.turn = TurnState(turn_id="t", model_id="x:y", steps=0)
    turn.count_request(PRICED, A_CENT)
    work = child.start_ledger()
    work.count_request(PRICED, A_CENT)
    assert turn.spent.cost_usd == 0.02 and state.usage is not None and state.usage.cost_usd == 0.02
    assert parent.limits.left is not None and round(parent.limits.left, 6) == 0.08
    assert child.limits.limit_reached() is None
    work.count_request(PRICED, A_CENT)
    assert "limit is $0.02" in (child.limits.limit_reached() or "")
    for _ in range(8):
        turn.count_request(PRICED, A_CENT)
    assert round(parent.limits.left, 6) == 0 and parent.limits.limit_reached() is not None


def test_in_the_background_it_counts_for_the_session() -> None:
    parent, state = costs("parent", None)
    child, _ = costs("child", None, parent)
    turn = parent.start_ledger()
    child.start_ledger().count_request(PRICED, A_CENT)
    assert turn.spent.cost_usd == 0 and state.usage is not None and state.usage.cost_usd == 0.01
    assert parent.limits.left is None
    child.new_ledger().count_request(PRICED, A_CENT)
    assert state.usage.cost_usd == 0.02
