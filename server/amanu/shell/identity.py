"""Find the file that a program's name would run, and whether its name can be trusted to say what it does."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from amanu.shell.state import State

_FOLDERS = 100  # of PATH that are looked at
_VERSION_MANAGERS = ("volta-shim", "mise", "rtx", "asdf", "proto", "proto-shim")
_SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin")
"""Folders whose programs are also trusted when called by path."""


@dataclass(frozen=True)
class Identity:
    """The program that a name resolves to."""

    program: str | None
    """Absolute path as found in PATH; links are not resolved, since a link's name can decide what it does. None when
    there is no such program, or it is not certain which."""
    trusted: bool
    """It belongs to the system or the user: nobody else can have put it there."""
    runs: tuple[str, ...] = ()
    """The file, when it is inside the roots."""
    shadows: bool = False
    """It is a file inside the roots that replaces another program of this name."""


def identify(name: str, state: State) -> Identity:
    """Find the program as bash would. A path needs a known folder; PATH is taken from the command's environment."""
    if "/" in name:
        if not name.startswith("/") and state.folder is None:
            return Identity(None, False)
        return _identity_of(Path(state.folder or "/") / name, state, by_name=False)
    if state.forgotten or "PATH" in state.variables:
        return Identity(None, False)
    folders = state.context.environment.get("PATH", "").split(os.pathsep)[:_FOLDERS]
    certain = True
    for index, entry in enumerate(folders):
        folder = Path(entry)
        if not folder.is_absolute():
            certain = False  # depends on the current folder
            if state.folder is None:
                return Identity(None, False)
            folder = state.folder / folder
        if not _runnable(folder / name):
            continue
        identity = _identity_of(folder / name, state, by_name=True)
        if not certain or not identity.trusted:
            others = any(_runnable(Path(later) / name) for later in folders[index + 1 :] if later.startswith("/"))
            return Identity(identity.program, False, identity.runs, shadows=others and not _leads_out(identity, state))
        return identity
    return Identity(None, False)


def stand_in(program: str) -> bool:
    """Whether it is a version manager's (asdf, mise, proto, Volta): it runs what files of the folder name."""
    path = Path(program)
    return path.parent.name == "shims" or path.resolve().name in _VERSION_MANAGERS


def _identity_of(path: Path, state: State, *, by_name: bool) -> Identity:
    try:
        real = path.resolve(strict=True)
        named = path.parent.resolve() / path.name
        runnable = _runnable(path)
        open_to_all = any(part.stat().st_mode & stat.S_IWOTH for part in (named.parent, real.parent, real))
    except (OSError, RuntimeError, ValueError):
        return Identity(None, False)
    inside = tuple(str(candidate) for candidate in dict.fromkeys((named, real)) if _in_roots(candidate, state))
    system = by_name or any(str(named.parent) == system_folder for system_folder in _SYSTEM)
    return Identity(str(path) if runnable else None, runnable and system and not inside and not open_to_all, inside)


def _leads_out(identity: Identity, state: State) -> bool:
    """Whether it links out of the roots, as the `python` of a virtual environment links to the system's."""
    return identity.program is not None and not _in_roots(Path(identity.program).resolve(), state)


def _runnable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _in_roots(path: Path, state: State) -> bool:
    return any(root == path or root in path.parents for root in state.context.roots)
