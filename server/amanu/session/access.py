"""Whether anything may be changed in a session."""

from amanu_protocol.errors import AmanuError
from amanu_protocol.state import SessionState


class Access:
    """Of one session."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.closed = False

    @property
    def writable(self) -> bool:
        return not self.closed and not self._state.read_only

    def require_open(self) -> None:
        """Raises `AmanuError` sessionNotFound."""
        if self.closed:
            raise AmanuError(
                "sessionNotFound", "This session was closed a moment ago.", hint="Open it again and repeat that."
            )

    def require_writable(self) -> None:
        """Raises `AmanuError` sessionNotFound, sessionReadOnly."""
        self.require_open()
        if self._state.read_only:
            raise AmanuError(
                "sessionReadOnly",
                "Read-only: another Amanu process has this session open.",
                hint="Use the editor that has it, or close it there.",
            )
