"""The cost of a session, in the chat."""

from collections.abc import Iterator, Mapping, Sequence

from amanu.cli.console import Console
from amanu.cli.text import one_line
from amanu.client.session_view import SessionView
from amanu.text.amounts import money, plural, token_count
from amanu.text.sub_agents import agent_label
from amanu_protocol.events import EventMessage, StepEnded
from amanu_protocol.items import Spend, Usage
from amanu_protocol.state import SessionState


class SessionCost:
    """`/cost`. The daemon keeps the sum; the steps of each model are counted here, from now on."""

    def __init__(self, view: SessionView, console: Console) -> None:
        self._view = view
        self._console = console
        self._steps: dict[str, list[Spend]] = {}
        view.listeners.append(self._count)

    def show(self) -> None:
        for line in cost_lines(self._view.state, self._steps):
            self._console.line(("", line))

    def _count(self, message: EventMessage, state: SessionState) -> None:
        if isinstance(message.event, StepEnded) and message.event.usage is not None:
            model_id = state.turn.model_id if state.turn is not None else state.model_id
            self._steps.setdefault(model_id, []).append(message.event.usage)


def cost_lines(state: SessionState, steps: Mapping[str, Sequence[Spend]]) -> Iterator[str]:
    """The session, its last turn, each model's `steps`, and the sub-agents."""
    if state.usage is None:
        yield "Nothing has been sent to a model yet."
        return
    yield f"session   {_cost(state.usage.cost_usd)} · {_tokens([state.usage])}"
    if state.last_turn is not None and state.last_turn.usage is not None:
        yield f"last turn {_cost(state.last_turn.usage.cost_usd)} · {_tokens([state.last_turn.usage])}"
    for model_id, spent in steps.items():
        costs = [each.cost_usd for each in spent]
        total = None if None in costs else sum(cost for cost in costs if cost is not None)
        yield f"{one_line(model_id)}  {_cost(total)} · {plural(len(spent), 'step')} since you came · {_tokens(spent)}"
    for agent in state.agents:
        if agent.cost_usd is not None:
            label = one_line(agent_label(agent.name, agent.agent_id))
            yield f"{label}  {_cost(agent.cost_usd)} · included in the session's"


def _cost(value: float | None) -> str:
    return "price unknown" if value is None else money(value)


def _tokens(spent: Sequence[Spend | Usage]) -> str:
    counts = {
        "in": sum(each.input_tokens for each in spent),
        "from cache": sum(each.cache_read_tokens for each in spent),
        "into cache": sum(each.cache_write_tokens for each in spent),
        "out": sum(each.output_tokens for each in spent),
        "thought": sum(each.thought_tokens for each in spent),
    }
    tools = sum(each.tool_tokens for each in spent)
    words = [f"{token_count(count)} {name}" for name, count in counts.items() if count or name in ("in", "out")]
    return " · ".join([*words, *([f"{token_count(tools)} of the input by the service's tools"] if tools else [])])
