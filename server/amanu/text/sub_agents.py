"""Sub-agents in words, where their work stands beside that of others: which one is meant, how it stands."""

from collections.abc import Sequence

from amanu.text.amounts import plural, seconds
from amanu.text.display import one_line
from amanu_protocol.items import Approval, Item, Question, SubAgent, ToolCall

MAX_NAME = 30
"""Characters of an agent's name, which is its definition's."""
MAX_WORDS = 60
"""Characters of what it is for, and of what it does."""


def agent_label(name: str, agent_id: str) -> str:
    """Its name with the number by which it is stopped and opened: "investigator 1". Two agents may have one name."""
    return f"{_short(name, MAX_NAME)} {agent_number(agent_id)}".lstrip()


def agent_number(agent_id: str) -> str:
    """The number in its id."""
    return _short(agent_id.removeprefix("agent-"), MAX_NAME)


def label_of(agents: Sequence[SubAgent], agent_id: str) -> str:
    """The label of the agent with that id; the id itself when the session has forgotten the agent."""
    agent = find_agent(agents, agent_id)
    return _short(agent_id, MAX_NAME) if agent is None else agent_label(agent.name, agent.agent_id)


def find_agent(agents: Sequence[SubAgent], agent_id: str) -> SubAgent | None:
    """The agent with that id."""
    return next((agent for agent in agents if agent.agent_id == agent_id), None)


def started_agent(agents: Sequence[SubAgent], call: ToolCall) -> SubAgent | None:
    """The agent that a call of `run_agent` started."""
    return next((agent for agent in agents if agent.tool_call_id == call.item_id), None)


def owner_of(item: Item) -> str | None:
    """The id of the sub-agent whose work an item is; None: the session's own."""
    return getattr(item, "agent_id", None)


def asked_by(asked: Approval | Question) -> str:
    """What stands before the title of what is asked: "investigator 1: ", or nothing for the session's own."""
    if asked.agent_id is None:
        return ""
    name = asked.agent if isinstance(asked, Approval) else asked.asker
    return f"{agent_label(name, asked.agent_id)}: "


def asker_of(question: Question) -> str:
    """Who asks: the sub-agent with its number, or who the question names."""
    return asked_by(question).removesuffix(": ") or one_line(question.asker)


def working(agents: Sequence[SubAgent]) -> list[SubAgent]:
    """Those that run or wait."""
    return [agent for agent in agents if agent.works]


def count_working(agents: Sequence[SubAgent]) -> str:
    """ "2 agents"; "" when none works."""
    return plural(count, "agent") if (count := len(working(agents))) else ""


def describe_agent(agent: SubAgent, now: float) -> str:
    """An agent on one line: what it is, what for, how it stands, for how long, what it does. `now` in seconds since the
    epoch."""
    return f"{agent_label(agent.name, agent.agent_id)}: {agent_standing(agent, now)}"


def agent_standing(agent: SubAgent, now: float) -> str:
    """Its purpose, its state, for how long, and what it does."""
    parts = [_short(agent.description, MAX_WORDS), one_line(agent.summary)]
    if agent.works:
        parts.append(seconds(max(0.0, now - agent.started_at / 1000)))
        parts.append(_short(agent.activity, MAX_WORDS) if agent.state == "running" else "")
    elif agent.ended_at is not None:
        parts.append(seconds(max(0.0, (agent.ended_at - agent.started_at) / 1000)))
    return " · ".join(filter(None, parts))


def doing(agent: SubAgent) -> str:
    """What it is doing now: "investigator 1: Read cart.py"."""
    return f"{agent_label(agent.name, agent.agent_id)}: {_short(agent.activity or agent.description, MAX_WORDS)}"


def _short(text: str, limit: int) -> str:
    text = one_line(text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
