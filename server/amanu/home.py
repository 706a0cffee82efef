"""Where things are kept: XDG folders, or everything under `AMANU_HOME`. Standard library only, and no dataclass:
the relay uses it, and that import costs it as much as all others together."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Home(NamedTuple):
    """The user's folders. Made private (0700) when first asked for by `make`."""

    config: Path
    """`config.toml`, `rules.toml`, `auth.json`, `trust.json`."""
    state: Path
    """Sessions and their index; the texts of what was trusted."""
    logs: Path
    runtime: Path
    """Socket, its token, and locks."""

    @property
    def private(self) -> tuple[Path, ...]:
        """What no tool reads or writes, whatever the workspace."""
        return (self.config, self.state, self.logs, self.runtime)

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"

    @property
    def audit(self) -> Path:
        return self.state / "audit"

    @property
    def socket(self) -> Path:
        return self.runtime / "daemon.sock"

    @property
    def token(self) -> Path:
        """What opens the socket (sockets.py)."""
        return self.runtime / "daemon.token"

    def make(self) -> "Home":
        """Create the folders, private to the user; one that others may read is closed to them. Returns itself. Raises
        `PermissionError` for a folder of somebody else, and for one that strangers could write to: what is in it by now
        need not be this user's."""
        for folder in (self.config, self.state, self.logs, self.runtime):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.stat()
            if hasattr(os, "getuid") and found.st_uid != os.getuid():
                raise PermissionError(f"{folder} belongs to another user; remove it, or set AMANU_HOME")
            if found.st_mode & stat.S_IWOTH:
                raise PermissionError(
                    f"everybody may write to {folder}: look through what is in it, then: chmod 700 {folder}"
                )
            if stat.S_IMODE(found.st_mode) & 0o077:
                folder.chmod(0o700)
        return self


def find_home(environ: Mapping[str, str] = os.environ) -> Home:
    """The folders named by `AMANU_HOME`, else by the XDG Base Directory Specification, else the platform's."""
    own = environ.get("AMANU_HOME")
    if own:
        root = Path(own).absolute()
        return Home(root / "config", root / "state", root / "logs", root / "run")
    user = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        base = user / "Library" / "Application Support" / "amanu"
        return Home(base / "config", base / "state", user / "Library" / "Logs" / "amanu", base / "run")
    state = Path(environ.get("XDG_STATE_HOME") or user / ".local" / "state") / "amanu"
    config = Path(environ.get("XDG_CONFIG_HOME") or user / ".config") / "amanu"
    runtime = environ.get("XDG_RUNTIME_DIR")
    return Home(config, state, state / "logs", Path(runtime) / "amanu" if runtime else state / "run")


def hide_memory() -> None:
    """No other process of this user may read this one's memory or environment, commands it starts included: keys are
    in it. Also no core dump. (PR_SET_DUMPABLE, facts/security.md §6.)"""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
