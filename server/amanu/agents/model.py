"""Work for a sub-agent, and how it ended."""

from dataclasses import dataclass
from typing import Literal

AgentEnd = Literal[
    "completed", "noResult", "turnLimit", "timeLimit", "costLimit", "stalled", "hook", "cancelled", "closed", "failed"
]
"""The end of a sub-agent's work. `noResult`: it stopped without calling `complete_task`. `stalled`: nothing came from
it for too long. `closed`: its session, or the one it worked for, was closed."""


@dataclass(frozen=True)
class AgentTask:
    """Work for a sub-agent."""

    agent: str
    """The name of its definition."""
    prompt: str
    """All that it is told, apart from project memory and where it works."""
    description: str
    """The task in a few words, for the user."""
    background: bool = False


@dataclass(frozen=True)
class AgentReport:
    """The end of a sub-agent's work; with `end` None, it is still working in the background."""

    agent_id: str
    name: str
    session_id: str
    end: AgentEnd | None
    message: str
    """The end as a sentence for the model and the user."""
    text: str
    """Its result or, if it did not complete its task, what it said last; "" for nothing."""

    @property
    def completed(self) -> bool:
        return self.end in ("completed", None)
