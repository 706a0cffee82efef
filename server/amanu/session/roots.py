"""Workspace folders as clients name them, and as servers are told of them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.system.missing_folder import missing_folder
from amanu_protocol.errors import AmanuError
from amanu_protocol.state import SessionState


@dataclass(frozen=True)
class SessionFolders:
    """Implements `mcp.model.Workspace`."""

    state: SessionState
    is_trusted: Callable[[], bool]

    @property
    def roots(self) -> Sequence[Path]:
        return [Path(root) for root in self.state.roots]

    @property
    def trusted(self) -> bool:
        return self.is_trusted()

    @property
    def session_id(self) -> str:
        """A sub-agent uses what was offered to the session it works for."""
        return self.state.parent_session_id or self.state.session_id


def real_root(path: str) -> str:
    """A workspace folder, absolute and real. Raises `AmanuError` (invalidParams) when it is not a folder."""
    root = Path(path)
    if not os.path.isdir(root):  # noqa: PTH112  False for a name no system would take
        missing = missing_folder(path)
        raise AmanuError("invalidParams", missing.reason, path="roots", hint=missing.hint)
    if not root.is_absolute():
        raise AmanuError("invalidParams", f"{path} is not an absolute path.", path="roots")
    return str(root.resolve())
