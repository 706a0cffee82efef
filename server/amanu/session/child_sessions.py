"""The sessions of sub-agents, as the session they work for sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from amanu.context.editor import EditorContext
from amanu.session.core import Assignment, SessionCore
from amanu_protocol.events import EventMessage, TurnEnded
from amanu_protocol.requests import PromptSendParams, PromptSendResult


@dataclass(frozen=True)
class ParentClient:
    """In whose name a sub-agent is prompted: its parent's. It shows nothing. Implements `events.Client`."""

    environment: Mapping[str, str]
    name: str = ""
    trusted_roots: None = None
    ripgrep: None = None
    context: EditorContext | None = None

    def send(self, message: EventMessage) -> None:
        pass

    def mcp_changed(self) -> None:
        pass

    def list_changed(self, session_id: str) -> None:
        pass


class ChildPrompts(Protocol):
    async def send_prompt(self, params: PromptSendParams, client: ParentClient) -> PromptSendResult: ...

    async def stop(self) -> None: ...


class ChildSession(Protocol):
    """The session of a sub-agent. Implemented by `session.Session`."""

    @property
    def core(self) -> SessionCore: ...

    @property
    def prompts(self) -> ChildPrompts: ...

    async def wait_for_turn(self, turn_id: str) -> TurnEnded: ...


@dataclass(frozen=True)
class NewChild:
    """A session that is to be made for a sub-agent."""

    session_id: str
    title: str
    model_id: str
    assignment: Assignment


class ChildSessions(Protocol):
    """Opens and closes the sessions of sub-agents. Implemented by `sessions.Sessions`."""

    async def begin_child(self, child: NewChild) -> ChildSession:
        """Raises `AmanuError`: storageError, tooManySessions."""
        ...

    async def end_child(self, session_id: str) -> None:
        """Close the session of a sub-agent whose work is over. Raises nothing."""
        ...
