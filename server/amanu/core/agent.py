"""The port that runs an agent on a conversation: the turns of a session use it, and so can whatever needs an agent
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
from amanu.core.tool import AnyTool
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
    """Its memory is told apart because a user wants to know what it takes of the window."""

    core: str
    memory: str = ""
    """With what is said about it; "" if there is none."""

    @property
    def text(self) -> str:
        return f"{self.core}\n\n{self.memory}" if self.memory else self.core


@dataclass(frozen=True)
class AgentLimits:
    """What ends a run with an offer to go on, besides the money its session may spend."""

    steps: int
    """Replies of the model."""
    seconds: float
    """Of wall time, waiting for the user not counted."""


class Inbox(Protocol):
    """What somebody says to an agent while it runs."""

    def take_notes(self) -> Sequence[User]:
        """What the model must hear now, each note once; on record as heard when this returns."""
        ...


@dataclass
class AgentRun:
    """What an agent is to do and with what; and, as it goes, what that took."""

    turn_id: str
    """No other run has it: ids of items begin with it."""
    task: str
    """In the user's words."""
    conversation: Conversation
    """Ends with the task, as the model gets it; the agent appends to it, and its answer stands at the end."""
    instructions: Callable[[ModelInfo], SystemPrompt]
    """For the model that is asked, which may change."""
    tools: Mapping[str, AnyTool]
    limits: AgentLimits
    emit: Emit
    """Where what happens goes. Its entries tell of this conversation: only one may go into a session's journal."""
    inbox: Inbox | None = None
    listeners: Sequence[TurnListener] = ()
    """Besides those every run has; asked right after the limits."""
    spent: Spend = NOTHING_SPENT
    """Final when the run has ended, however it ended."""


class Agent(Protocol):
    """A model with a loop around it, the permissions and the money it may use."""

    async def run(self, run: AgentRun) -> Ending:
        """Work until the model is done or a limit is met. Several runs may go on side by side, each on a conversation
        of its own. Cancelling stops it anywhere and leaves a valid conversation. What models, tools and users do raises
        nothing; raises `AmanuError` (storageError) when something cannot be put on record."""
        ...
