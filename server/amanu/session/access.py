"""Whether anything may be changed in a session."""

from amanu_protocol.errors import AmanuError
from amanu_protocol.state import SessionState


class Access:
    """Whether one session is open, and may be changed here."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.closed = False

    @property
    def writable(self) -> bool:
        return not self.closed and not self._state.read_only

    def require_open(self) -> None:
        """Raises `AmanuError` sessionNotFound."""
        if self.closed:
            raise AmanuError("sessionNotFound", "This session has just been closed.", hint="Open it again, then retry.")

    def require_writable(self) -> None:
        """Raises `AmanuError` sessionNotFound, sessionReadOnly."""
        self.require_open()
        if self._state.read_only:
            raise AmanuError(
                "sessionReadOnly",
                "Read-only: another Amanu process has this session open.",
                hint="Use the editor that has it open, or close it there.",
            )
