"""Where things are kept: XDG folders, or everything under `AMANU_HOME`. Standard library only, and no dataclass:
the relay uses it, and that import costs it as much as all others together."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class HomeError(PermissionError):
    """The user's folders cannot be used: a sentence that says why, and what to do."""


class Home(NamedTuple):
    """The user's folders. Made private (0700) when first asked for by `make`."""

    config: Path
    """`config.toml`, `hooks.json`, `mcp.toml`, `rules.toml`, `trust.json`; `auth.json`, `chatgpt.json`,
    `mcp-auth.json`; the user's own agents, commands and skills."""
    state: Path
    """Sessions and their index; the audit log; the texts of what was trusted; approved hooks and servers; records of
    running commands; files that commands wrote but were not allowed to (`aside`)."""
    logs: Path
    runtime: Path
    """Socket, its token, and locks."""
    root: Path | None = None
    """What `AMANU_HOME` names: all of these are in it."""
    data: Path | None = None
    """What commands and tools may read, and nobody needs to hide; None: beside `state`."""

    @property
    def private(self) -> tuple[Path, ...]:
        """What no tool reads or writes, whatever the workspace."""
        return (self.config, self.state, self.logs, self.runtime)

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"

    @property
    def layers(self) -> Path:
        """What commands have changed and is not in the workspace."""
        return self.state / "layers"

    @property
    def slash_commands(self) -> Path:
        """The user's own slash commands."""
        return self.config / "commands"

    @property
    def agents(self) -> Path:
        """The user's own definitions of sub-agents."""
        return self.config / "agents"

    @property
    def skills(self) -> Path:
        """The user's own skills."""
        return self.config / "skills"

    @property
    def plugins(self) -> Path:
        """Copies of the plug-ins that the user has added. Not in a private folder: their programs must run in the
        sandbox. What they hold is pinned (`context/plugins.py`)."""
        return (self.data or self.state.parent / "data") / "plugins"

    @property
    def memory(self) -> Path:
        """What the user tells every model."""
        return self.config / "AGENTS.md"

    @property
    def settings(self) -> Path:
        """The user's settings."""
        return self.config / "config.toml"

    @property
    def audit(self) -> Path:
        return self.state / "audit"

    @property
    def auth(self) -> Path:
        """The user's keys; a sign-in is beside them."""
        return self.config / "auth.json"

    @property
    def local_models(self) -> Path:
        """The model servers on this machine that the user has allowed."""
        return self.state / "local-models.json"

    @property
    def catalogue(self) -> Path:
        """What vendors said of their models."""
        return self.state / "catalogue"

    @property
    def socket(self) -> Path:
        return self.runtime / "daemon.sock"

    @property
    def token(self) -> Path:
        """What opens the socket (daemon/sockets.py)."""
        return self.runtime / "daemon.token"

    def make(self) -> "Home":
        """Create the folders, private to the user; one that others may read is closed to them. Returns itself. Raises
        `HomeError` when that cannot be done, for a folder of somebody else, and for one that strangers could write to:
        what is in it by now need not be this user's."""
        if self.root is not None and self.root.is_symlink():
            raise HomeError(f"AMANU_HOME is {self.root}, which is a symbolic link; set it to the folder itself")
        for folder in (self.root, self.config, self.state, self.logs, self.runtime):
            if folder is not None:
                try:
                    _make(folder, private=folder != self.root)
                except FileExistsError:
                    raise HomeError(f"{folder} is not a folder; remove it, or set AMANU_HOME to a folder") from None
                except NotADirectoryError:
                    raise HomeError(
                        f"{folder} cannot be created: its parent is not a folder; set AMANU_HOME to a folder"
                    ) from None
                except HomeError:
                    raise
                except OSError as error:
                    raise HomeError(
                        f"{folder} cannot be used ({error.strerror}); set AMANU_HOME to a folder you may write to"
                    ) from None
        return self


def _make(folder: Path, *, private: bool) -> None:
    """`private`: nobody else may even read it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise HomeError(f"{folder} belongs to another user; remove it, or set AMANU_HOME")
    if status.st_mode & stat.S_IWOTH:
        raise HomeError(f"everybody may write to {folder}: check what is in it, then run: chmod 700 {folder}")
    if private and stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)


def find_home(environ: Mapping[str, str] = os.environ) -> Home:
    """The folders named by `AMANU_HOME`, else by the XDG Base Directory Specification, else the platform's."""
    own_folder = environ.get("AMANU_HOME")
    if own_folder:
        root = Path(own_folder).absolute()
        return Home(root / "config", root / "state", root / "logs", root / "run", root, root / "data")
    user = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        base = user / "Library" / "Application Support" / "amanu"
        return Home(
            base / "config", base / "state", user / "Library" / "Logs" / "amanu", base / "run", data=base / "data"
        )
    state = Path(environ.get("XDG_STATE_HOME") or user / ".local" / "state") / "amanu"
    config = Path(environ.get("XDG_CONFIG_HOME") or user / ".config") / "amanu"
    runtime = environ.get("XDG_RUNTIME_DIR")
    data = Path(environ.get("XDG_DATA_HOME") or user / ".local" / "share") / "amanu"
    return Home(config, state, state / "logs", Path(runtime) / "amanu" if runtime else state / "run", data=data)


def hide_memory() -> None:
    """No other process of this user may read this one's memory or environment, commands it starts included: keys are
    in it. Also no core dump. (PR_SET_DUMPABLE, prctl(2).)"""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
