"""Workspace folders as clients name them."""

import os
from pathlib import Path

from amanu_protocol.errors import AmanuError


def real_root(path: str) -> str:
    """A workspace folder, absolute and real. Raises `AmanuError` (invalidParams) when it is not a folder."""
    root = Path(path)
    if not root.is_absolute() or not os.path.isdir(root):  # noqa: PTH112  False for a name no system would take
        raise AmanuError("invalidParams", f"{_short(path)} is not the absolute path of a folder.", path="roots")
    return str(root.resolve())


def _short(path: str) -> str:
    return path if len(path) <= 300 else f"{path[:300]}…"
