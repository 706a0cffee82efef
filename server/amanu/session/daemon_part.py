"""One feature in the daemon: what its parts in all sessions share, and what belongs to no session."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from amanu.config import Settings
from amanu.core.session_part import Request, SessionPart
from amanu.home import Home
from amanu.session.child_sessions import ChildSessions
from amanu.session.core import SessionCore
from amanu.session.parts import Parts


class DaemonPart:
    """Made once per daemon, or per program that has a single session. `session_part` is the class of its parts in
    sessions; see `core/session_part.py`."""

    session_part: ClassVar[type[SessionPart]]

    def __init__(self, home: Home, settings: Settings, sessions: ChildSessions | None) -> None:
        """`sessions` opens the sessions of sub-agents; None where there is only one session."""
        self.sessions = sessions

    def part_of(self, core: SessionCore) -> SessionPart | None:
        """A new part for that session, which may be a sub-agent's (`core.assignment`); None if it gets none."""
        raise NotImplementedError

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        """Method → request about no session. Its `call` takes this object instead of a part of a session."""
        return {}


def parts_of(core: SessionCore, daemon_parts: Iterable[DaemonPart]) -> Parts:
    """New parts for that session."""
    made = [each.part_of(core) for each in daemon_parts]
    return Parts([part for part in made if part is not None])
