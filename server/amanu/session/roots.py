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
    is_folder = os.path.isdir(root)  # noqa: PTH112  False for a name no system would take
    is_foreign = not is_folder and set(path) & set(":\\")  # a URI or a Windows path: there is more to say about it
    if not root.is_absolute() and not is_foreign:
        raise AmanuError("invalidParams", f"{path} is not an absolute path.", path="roots")
    if not is_folder:
        missing = missing_folder(path)
        raise AmanuError("invalidParams", missing.reason, path="roots", hint=missing.hint)
    return str(root.resolve())
