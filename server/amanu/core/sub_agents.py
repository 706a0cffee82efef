"""Sub-agents: agents with a conversation of their own, to which a session's model hands work (`tools/run_agent.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from amanu.core.tool import CallContext

COMPLETE_TASK = "complete_task"
"""The tool with which a sub-agent ends its work."""
AgentEnd = Literal[
    "completed", "noResult", "turnLimit", "timeLimit", "costLimit", "stalled", "hook", "cancelled", "closed", "failed"
]
"""How a sub-agent ended. `noResult`: it stopped without calling `complete_task`. `stalled`: nothing came from it for
too long. `closed`: its session was closed, or the one it worked for."""


@dataclass(frozen=True)
class AgentDefinition:
    """What kind of agent it is."""

    name: str
    """What the model calls it by: `[a-z0-9_-]`."""
    description: str
    """For the model, on one line: when to use it."""
    prompt: str
    """Its instructions, in place of the session's own."""
    tools: Sequence[str] | None = None
    """Of the session's tools those it may use; None: all a sub-agent may have."""
    without_tools: Sequence[str] = ()
    """Those it may not use all the same."""
    model: str | None = None
    """`vendor:model`; None: as `[routing] subagent` says, else the turn's own. Never from a workspace's file."""
    steps: int | None = None
    """Replies of its model, if fewer than the settings allow."""
    seconds: float | None = None
    """Without waits, if fewer than the settings allow."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of its result, an object; None: the result is a text."""
    background: bool = False
    """It goes on in the background unless the call says otherwise."""
    source: str = "built in"
    """For the user: the file it comes from."""


@dataclass(frozen=True)
class AgentTask:
    """Work for a sub-agent."""

    agent: str
    """Name of its definition."""
    prompt: str
    """All it is told, beside project memory and where it works."""
    description: str
    """The same in a few words, for the user."""
    background: bool = False


@dataclass(frozen=True)
class AgentReport:
    """How a sub-agent ended, or that it goes on in the background (`end` is None)."""

    agent_id: str
    name: str
    session_id: str
    end: AgentEnd | None
    message: str
    """How it ended, as a sentence for the model and the user."""
    text: str
    """Its result; if it did not complete its task, what it said last; "" for nothing."""

    @property
    def completed(self) -> bool:
        return self.end in ("completed", None)


class SubAgents(Protocol):
    """The sub-agents of one session. Implemented by `session/agents.py`."""

    def available(self) -> Sequence[AgentDefinition]:
        """The agents there are; they change only between turns."""
        ...

    async def run(self, task: AgentTask, call: CallContext) -> AgentReport:
        """Have an agent do the work for that call, and wait until it ended; with `background` only until it runs.
        Cancelling stops it. Raises `ToolError` when it cannot start."""
        ...
