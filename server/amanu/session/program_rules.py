"""Rules for files of a workspace that parts and servers run later: whoever writes them decides what runs then, perhaps
outside the sandbox, so the user is asked, as for `.git`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from amanu.core.rules import Rule, RuleTable
from amanu.permissions.matching import escape_glob
from amanu.session.parts import Parts
from amanu.session.roots import SessionFolders
from amanu.session.services import Services
from amanu_protocol.state import SessionState

_SERVER = "an MCP server runs this file"


class ProgramRules:
    """The must-ask rules of one session."""

    def __init__(self, services: Services, state: SessionState, parts: Callable[[], Parts]) -> None:
        self._services = services
        self._state = state
        self._parts = parts

    def rules(self) -> tuple[Rule, ...]:
        """Blocking, for an instant."""
        roots = [Path(os.path.realpath(root)) for root in self._state.roots]
        return tuple(
            RuleTable(decision="mustAsk", tool="@write", path=escape_glob(name), reason=reason).rule("built in")
            for path, reason in dict(self._files()).items()
            for name in {path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)}
        )

    def _files(self) -> Iterator[tuple[Path, str]]:
        yield from self._parts().program_files()
        if self._services.mcp is not None:
            folders = SessionFolders(self._state, lambda: self._state.trusted)
            yield from ((path, _SERVER) for path in self._services.mcp.program_files(folders))
