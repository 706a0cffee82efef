"""The line of a session to its models: what listens in on it (a recording), or answers in the models' place (a
replay). Clients and connections are shared by all sessions; the line is found by the task a request is made in."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from amanu.models.recording import Exchange, Recorder


class Player(Protocol):
    """Answers in the place of a service."""

    def answer(self, method: str, url: str, body: bytes) -> "Exchange":
        """What to answer with. Raises `ModelError`."""
        ...


class SessionTransport:
    """One per session. Both may change at any time, and count from the next request on."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.player: Player | None = None

    @contextmanager
    def used(self) -> Generator[None]:
        """Requests made in here, and by tasks started in here, go over this line."""
        token = _line.set(self)
        try:
            yield
        finally:
            _line.reset(token)


def line() -> SessionTransport | None:
    """The line of the present task; None outside of a session."""
    return _line.get()


_line: ContextVar[SessionTransport | None] = ContextVar("line", default=None)
