"""What of the file system a command sees, and what of that it can change. Found anew for each command: nothing that an
earlier one left behind was there when it was looked at once."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amanu.config import SandboxSettings as Settings
from amanu.core import protected_paths as protected
from amanu.core.requirements import SandboxRequirements
from amanu.home import Home
from amanu.sandbox.git_dirs import GitDirs, borrowed, enclosing, repository, user_hooks
from amanu.sandbox.git_settings import is_settings
from amanu.sandbox.protected_scan import ProtectedScan, obeyed
from amanu.sandbox.toolchains import inside, tools
from amanu.sandbox.unix_sockets import bound, elsewhere, served

_HOMES = ("/root", "/home", "/Users", "/mnt/c/Users", "/var/root")
_EMPTY = ("/tmp", "/var/tmp", "/run")
"""Other programs' temporary files, and the sockets of services."""
_SERVICES = ("/var/run", "/var/snap/lxd/common/lxd", "/var/lib/lxd", "/var/lib/incus", "/var/lib/docker", "/var/spool")
"""Sockets and files of services that are not in `/run`; who reaches them can be more than its user."""
_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/kubernetes"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/krb5.keytab", "/etc/NetworkManager/system-connections", "/etc/wireguard"),
)
_TOOLS_SECONDS = 10.0
"""What is installed is looked for anew after that long."""


@dataclass(frozen=True)
class FilesystemView:
    """All paths are absolute, and real but for the last part of those that are not there. Later ones hide or show what
    earlier ones show or hide, in the order of the fields."""

    hidden: tuple[Path, ...]
    """Folders that are empty."""
    readable: tuple[Path, ...]
    """Shown again, read only."""
    links: tuple[tuple[Path, Path], ...]
    """Names below `hidden` → what they lead to, shown again."""
    roots: tuple[Path, ...]
    writable: tuple[Path, ...]
    """Roots among them, unless nothing may be written."""
    kept: tuple[Path, ...]
    """Inside what can be written: read only."""
    guarded: tuple[Path, ...]
    """Inside what can be written, by its own name: as before when the command has ended. Read only, where the sandbox
    can do that."""
    secret: tuple[Path, ...]
    """Cannot be read."""
    unseen: tuple[Path, ...]
    """Of those, the ones of the workspace, which a command the user was asked about sees."""
    sockets: tuple[Path, ...]
    """Served by somebody outside: nobody answers."""
    home: Path | None
    obeyed: ProtectedScan
    """All that was there of that which git, editors and agents obey."""


def view(
    need: SandboxRequirements, roots: Sequence[Path], environment: Mapping[str, str], settings: Settings, ours: Home
) -> FilesystemView:
    """What a command with that need sees in those roots, which are real paths. Blocking: milliseconds."""
    home, homes = _homes(environment)
    outside = [each for each in roots if each != Path("/")]  # nobody means the whole machine by "the workspace"
    hidden = [*_system(*_EMPTY, *_SERVICES), *homes, *_own(settings.hide, home)]
    also_written = [each for each in _own(settings.write, home) if each.exists()]
    chosen = [each for each in (*_own(settings.read, home), *need.readable) if each.exists()]
    above = [tree for root in outside if (tree := enclosing(root, homes)) is not None]
    others: list[GitDirs] = []
    if need.git:
        chosen += [each for each in (user_hooks(home),) if each is not None and each.exists()]
        others = [each for tree in above if (each := repository(tree / ".git")) is not None]
    seen = obeyed(outside, home, others, checkout=need.checkout)
    repositories = seen.repositories
    installed = tools(environment.get("PATH", ""), home, homes, int(time.monotonic() / _TOOLS_SECONDS))
    readable = [*installed.readable, *chosen, *above, *_resolver(need)]
    readable += [each.common for each in repositories]
    readable += [each.folder for each in repositories]
    readable += [objects for each in repositories if need.borrowing for objects in borrowed(each)]
    writable = [*also_written]
    kept: list[Path] = []
    guarded: list[Path] = []
    if need.writes == "workspace":
        gits = dict.fromkeys(place for each in repositories for place in (each.folder, each.common))
        writable += [*outside, *(gits if need.git else ())]
        names, runs = [each for each in seen.names if each not in gits], seen.runs()
        guarded = [*names, *runs]
        kept = [*names, *(runs if need.git else gits)]
        kept = [each for each in kept if not (need.settings and is_settings(each))]
    visible = [*outside, *readable, *also_written]
    secret = [
        *(each for each in _secrets(home) if not inside(each, chosen) and (inside(each, visible))),
        *(each for each in map(Path, _SYSTEM_SECRETS) if os.access(each, os.R_OK)),
        *(each for each in map(_real, (ours.config, ours.state, ours.logs, ours.runtime)) if each.exists()),
        *(each for each in _own(settings.hide, home) if each.exists()),
    ]
    unseen = [] if need.secrets else [each for each in seen.secrets if not inside(each, chosen)]
    secret += unseen
    return FilesystemView(
        hidden=_outermost(each for each in hidden if each.is_dir() and each != Path("/")),
        readable=_outermost(each for each in readable if _reachable(each) and not inside(each, outside)),
        links=tuple(each for each in installed.links if not inside(each[0], (*readable, *outside))),
        roots=tuple(dict.fromkeys(roots)),
        writable=tuple(dict.fromkeys(writable)),
        kept=tuple(
            dict.fromkeys(real for each in kept for real in (_real(each),) if inside(real, writable) and real.exists())
        ),
        guarded=tuple(
            dict.fromkeys(path for each in guarded for path in (each, _real(each)) if inside(path, writable))
        ),
        secret=_outermost(secret),
        unseen=tuple(unseen),
        sockets=_outside(seen.sockets, environment, hidden, visible),
        home=home,
        obeyed=seen,
    )


def _outside(
    sockets: Sequence[Path], environment: Mapping[str, str], hidden: Sequence[Path], visible: Sequence[Path]
) -> tuple[Path, ...]:
    """Sockets that a command sees and that are not of its own making: those of the roots that are served (all of them
    where that is not known), and those elsewhere."""
    names = bound()
    ours = tuple(sockets) if names is None else served(sockets, names)

    def seen(path: str) -> bool:
        each = _real(path)
        return inside(each, visible) or not inside(each, (*hidden, *_system("/dev", "/proc", "/sys")))

    return tuple(dict.fromkeys((*ours, *elsewhere(names or (), {**os.environ, **environment}, seen))))


def _homes(environment: Mapping[str, str]) -> tuple[Path | None, tuple[Path, ...]]:
    """The user's home folder as the command knows it, and all home folders."""
    named = [environment.get("HOME", ""), os.path.expanduser("~")]  # noqa: PTH111
    found = [_real(each) for each in named if os.path.isabs(each)]  # noqa: PTH117
    found = [each for each in found if each != Path("/") and each.is_dir()]
    return (found[0] if found else None), tuple(dict.fromkeys((*found, *_system(*_HOMES))))


def _own(paths: Iterable[str], home: Path | None) -> list[Path]:
    """Paths of the user's settings."""
    spelled = [each.replace("~", str(home), 1) if home and each.startswith("~") else each for each in paths]
    return [_real(each) for each in spelled if os.path.isabs(each)]  # noqa: PTH117


def _secrets(home: Path | None) -> Iterator[Path]:
    if home is not None:
        for each in (*protected.SECRETS, *protected.HOME_SECRETS):
            if "*" in each:
                continue
            path = f"{home}/{each}"  # as text: pathlib takes ten times as long
            if os.path.lexists(path):
                yield _real(path)


def _resolver(need: SandboxRequirements) -> list[Path]:
    """How names are looked up is often described in `/run`."""
    return [_real("/etc/resolv.conf")] if need.network else []


def _reachable(path: Path) -> bool:
    try:
        folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False
    return os.access(path, os.R_OK | os.X_OK if folder else os.R_OK)


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    found = {str(each): each for each in folders}
    return tuple(each for path, each in found.items() if not any(above in found for above in _above(path)))


def _above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:  # noqa: PTH120
        yield above
        path = above


@cache
def _system(*paths: str) -> tuple[Path, ...]:
    """Where these are, which only the system's owner can change."""
    return tuple(map(_real, paths))


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
