"""A client of sessions in this process: folds what it is sent."""

import asyncio
from collections.abc import Callable, Mapping

from amanu.context.editor import EditorContext
from amanu.session.session import Session
from amanu_protocol.events import EventMessage
from amanu_protocol.state import SessionState, fold


class Client:
    """Implements `stream.Client`."""

    def __init__(
        self, environment: Mapping[str, str], name: str = "one", trusted_roots: tuple[str, ...] | None = None
    ) -> None:
        self.name = name
        self.environment = dict(environment)
        self.trusted_roots = trusted_roots
        self.ripgrep: str | None = None
        self.context: EditorContext | None = None
        self.state: SessionState | None = None
        self.messages: list[EventMessage] = []
        self.changed: list[str] = []
        self.mcp_changes = 0

    def send(self, message: EventMessage) -> None:
        self.messages.append(message)
        if self.state is not None:
            fold(self.state, message.event)

    def list_changed(self, session_id: str) -> None:
        self.changed.append(session_id)

    def mcp_changed(self) -> None:
        self.mcp_changes += 1


async def until(session: Session, reached: Callable[[SessionState], object], seconds: float = 50) -> SessionState:
    """Wait until the session's state is as wanted."""
    async with asyncio.timeout(seconds):
        while not reached(session.state):
            await asyncio.sleep(0.005)
    return session.state
