"""The port that runs an agent on a conversation. A session's turns use it, and so can anything else that needs an agent
with a conversation of its own.

    ending = await agent.run(AgentRun(turn_id, task, conversation, instructions, tools, limits, emit))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from amanu.core.conversation import Conversation, User
from amanu.core.emit import Emit
from amanu.core.ending import Ending
from amanu.core.listeners import TurnListener
from amanu.core.tool import AgentLabel, AnyTool
from amanu_protocol.items import ModelInfo, Spend

NOTHING_SPENT = Spend(
    input_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    thought_tokens=0,
    tool_tokens=0,
    cost_usd=0.0,
)


@dataclass(frozen=True)
class SystemPrompt:
    """A system prompt. Its memory is kept apart so that the user can see how much of the window it takes."""

    core: str
    memory: str = ""
    """Project memory with its introduction; "" if there is none."""

    @property
    def text(self) -> str:
        return f"{self.core}\n\n{self.memory}" if self.memory else self.core


@dataclass(frozen=True)
class AgentLimits:
    """Limits that end a run with an offer to go on; the session's cost limits come on top."""

    steps: int
    """Steps: replies of the model."""
    seconds: float
    """Wall time without the time spent waiting for the user."""


class Inbox(Protocol):
    """What an agent is told while it runs."""

    def take_notes(self) -> Sequence[User]:
        """What the model must be sent now, each note once. When this returns it is on record as sent."""
        ...

    def close(self) -> None:
        """The model is done: no further request of this run takes notes."""
        ...


@dataclass
class AgentRun:
    """What an agent is to do and with what; afterwards also what it cost."""

    turn_id: str
    """Unique to this run: the ids of its items begin with it."""
    task: str
    """In the user's words, for listeners that judge the work."""
    conversation: Conversation
    """Ends with the task as the model gets it. The agent appends to it; afterwards it ends with the answer."""
    instructions: Callable[[ModelInfo], SystemPrompt]
    """The system prompt for a model; the model may change during the run."""
    tools: Mapping[str, AnyTool]
    limits: AgentLimits
    emit: Emit
    """Gets every event. The entries belong to this conversation, so only a session's own run may write them to its
    journal."""
    inbox: Inbox | None = None
    listeners: Sequence[TurnListener] = ()
    """In addition to those every run has; asked right after the limits."""
    label: AgentLabel | None = None
    """The sub-agent it is a run of; None: the session's own agent."""
    spent: Spend = NOTHING_SPENT
    """What the run cost; final when it has ended, however it ended."""


class Agent(Protocol):
    """A model with a loop around it, and with the permissions and the money it may use."""

    async def run(self, run: AgentRun) -> Ending:
        """Work until the model is done or a limit is reached. Several runs may go on side by side, each on its own
        conversation. Cancelling stops a run anywhere and leaves a valid conversation. Failures of models and tools
        raise nothing; raises `AmanuError` (storageError) when something cannot be put on record."""
        ...
