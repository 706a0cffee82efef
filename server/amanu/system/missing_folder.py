"""Why a folder that a client named cannot be worked in: often it is on the machine where the editor runs, and Amanu
runs on another one."""

import os
import platform
import re
import sys
from dataclasses import dataclass
from urllib.parse import unquote

MAX_NAME = 300

_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_WINDOWS = re.compile(r"/?[A-Za-z]:(?:[\\/]|$)|\\\\")
_SYSTEMS = {"darwin": "macOS", "win32": "Windows"}
_HOMES = {"macOS": "/Users/", "Linux": "/home/"}
_HERE = _SYSTEMS.get(sys.platform, "Linux")


@dataclass(frozen=True)
class MissingFolder:
    reason: str
    """A sentence."""
    hint: str
    """A sentence that says what the user can do."""

    def __str__(self) -> str:
        return f"{self.reason} {self.hint}"


def missing_folder(name: str, host: str | None = None, here: str = _HERE) -> MissingFolder:
    """`name` is a path or a URI, as it was given, where `host`, which is this machine, has no folder. Its system
    is `here`: Linux, macOS or Windows."""
    host = host or platform.node() or "this machine"
    path = unquote(name[match.end() :]) if (match := _FILE.match(name)) else name
    elsewhere = (
        f"Run Amanu on the machine that has the folder, or open it on {host} through your editor's remote connection."
    )
    shown = path if len(path) <= MAX_NAME else f"{path[:MAX_NAME]}…"
    if path != name and os.path.isdir(path):  # noqa: PTH112  is_dir may raise
        return MissingFolder(f"{name} is a URI, not a path.", f"Name the folder by its path: {path}")
    reason = f"{shown} is not a folder on {host}, where Amanu runs"
    if os.path.isfile(path):  # noqa: PTH113  is_file may raise
        return MissingFolder(f"{shown} is a file on {host}, not a folder.", "Name the folder it is in.")
    if _WINDOWS.match(path) and here != "Windows":
        return MissingFolder(f"{reason}: it is a Windows path.", elsewhere)
    if _SCHEME.match(path):
        return MissingFolder(f"{reason}: it is not a path on this machine.", elsewhere)
    for system, home in _HOMES.items():
        if path.startswith(home) and system != here:
            return MissingFolder(f"{reason}: it looks like a {system} path.", elsewhere)
    return MissingFolder(f"{reason}.", "Check the path; if the folder is on another machine, run Amanu there.")
