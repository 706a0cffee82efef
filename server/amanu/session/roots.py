"""Workspace folders as clients name them, and as servers are told of them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    if not root.is_absolute() or not os.path.isdir(root):  # noqa: PTH112  False for a name no system would take
        raise AmanuError("invalidParams", f"{_short(path)} is not the absolute path of a folder.", path="roots")
    return str(root.resolve())


def _short(path: str) -> str:
    return path if len(path) <= 300 else f"{path[:300]}…"
