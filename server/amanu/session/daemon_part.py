"""One feature as the daemon has it: what its parts of all sessions share, and what has no session."""

from collections.abc import Mapping
from typing import ClassVar

from amanu.config import Settings
from amanu.core.session_part import Request, SessionPart
from amanu.home import Home
from amanu.session.child_sessions import ChildSessions
from amanu.session.core import SessionCore


class DaemonPart:
    """Made once, with the daemon or the program that has one session. `session_part` is the class of its parts of
    sessions; see `core/session_part.py`."""

    session_part: ClassVar[type[SessionPart]]

    def __init__(self, home: Home, settings: Settings, sessions: ChildSessions | None) -> None:
        """`sessions` opens the sessions of sub-agents; None where there is only one session."""
        self.sessions = sessions

    def part_of(self, core: SessionCore) -> SessionPart | None:
        """Make the part of that session, which may be a sub-agent's (`core.assignment`); None if it has none."""
        raise NotImplementedError

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        """Requests about no session. Their `call` takes this instead of a part of a session."""
        return {}
