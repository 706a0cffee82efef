"""Rules for the files of a workspace that approved hooks and servers run: whoever writes there decides what runs later,
perhaps outside the sandbox, so it is asked about, as it is for `.git`."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from amanu.core.rules import Rule, RuleTable
from amanu.permissions.matching import escape_glob
from amanu.session.roots import SessionFolders
from amanu.session.services import Services
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.state import SessionState

_HOOK = "a hook runs this file"
_SERVER = "an MCP server runs this file"


class ProgramRules:
    """The must-ask rules of one session."""

    def __init__(self, services: Services, state: SessionState, workspace: Workspace) -> None:
        self._services = services
        self._state = state
        self._workspace = workspace

    def rules(self) -> tuple[Rule, ...]:
        """Blocking, for an instant."""
        roots = [Path(os.path.realpath(root)) for root in self._state.roots]
        return tuple(
            RuleTable(decision="mustAsk", tool="@write", path=escape_glob(name), reason=reason).rule("built in")
            for path, reason in dict(self._files()).items()
            for name in {path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)}
        )

    def _files(self) -> Iterator[tuple[Path, str]]:
        yield from ((path, _HOOK) for path in self._of_hooks())
        if self._services.mcp is not None:
            folders = SessionFolders(self._state, lambda: self._state.trusted)
            yield from ((path, _SERVER) for path in self._services.mcp.program_files(folders))

    def _of_hooks(self) -> Sequence[Path]:
        hooks, trusted = self._services.hooks, self._state.trusted
        if not hooks.configured(self._workspace, trusted=trusted) and not self._services.home.plugins.is_dir():
            return []  # the usual case
        try:
            return hooks.program_files(self._workspace, trusted=trusted, home=str(Path.home()))
        except AmanuError:  # none of them runs
            return []
