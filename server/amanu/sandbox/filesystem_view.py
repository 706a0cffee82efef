"""What a command sees of the file system, and what it can change. Determined for each command anew, since earlier
commands may have changed what is there."""

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
from amanu.sandbox.git_dirs import GitDirs, borrowed_objects, enclosing_worktree, repository, user_hooks
from amanu.sandbox.git_settings import is_settings
from amanu.sandbox.protected_scan import ProtectedScan, scan_protected
from amanu.sandbox.secret_files import is_shown_by_git
from amanu.sandbox.toolchains import find_programs, find_toolchains, is_inside, visibility
from amanu.sandbox.unix_sockets import bound_names, outside_sockets, served_sockets

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
"""How long the list of installed tools is reused."""


@dataclass(frozen=True)
class FilesystemView:
    """All paths are absolute and real, except for the last part of missing ones. The fields apply in order: a later one
    hides or shows what earlier ones show or hide."""

    hidden: tuple[Path, ...]
    """Folders that appear empty."""
    readable: tuple[Path, ...]
    """Visible again, read only."""
    links: tuple[tuple[Path, Path], ...]
    """Symbolic links below `hidden` that are visible again, each with its target."""
    roots: tuple[Path, ...]
    writable: tuple[Path, ...]
    """Includes the roots, unless nothing may be written."""
    read_only: tuple[Path, ...]
    """Read-only paths inside `writable`."""
    guarded: tuple[Path, ...]
    """Paths inside `writable`, by their own names, that are restored when the command has ended. Read only where the
    sandbox can enforce that."""
    secret: tuple[Path, ...]
    """Paths that cannot be read."""
    workspace_secrets: tuple[Path, ...]
    """Those of `secret` in the workspace. A command that the user approved with access to secrets sees them."""
    shown_secrets: tuple[Path, ...]
    """Files that contain secrets and are not hidden, since git shows them."""
    sockets: tuple[Path, ...]
    """Sockets served from outside the sandbox; connecting to them fails."""
    home: Path | None
    protected: ProtectedScan
    """The protected files that are there, which git, editors and agents obey."""

    def hides(self, path: Path, temporary: Path) -> bool:
        """Whether the command does not see what there is at that absolute path. `temporary`: what it sees as `/tmp`."""
        real, shared = _real(path), _real("/tmp")
        if not os.path.lexists(real) or real in self.hidden:
            return False
        if is_inside(real, [shared]) and os.path.lexists(temporary / real.relative_to(shared)):
            return False
        visible = (*self.readable, *self.roots, *self.writable)
        secret = is_inside(real, self.secret) and not is_inside(real, self.workspace_secrets)
        return secret or (is_inside(real, self.hidden) and not is_inside(real, visible))


def filesystem_view(
    need: SandboxRequirements,
    roots: Sequence[Path],
    environment: Mapping[str, str],
    settings: Settings,
    ours: Home,
) -> FilesystemView:
    """What a command with these requirements sees in these roots, which are real paths. `ours` holds Amanu's own
    folders, which it never sees. Blocking: milliseconds."""
    own, homes = _homes(environment)
    home = own[0] if own else None
    closed = dict.fromkeys(path for each in own or (None,) for path in _user_paths(settings.hide, each))
    outside = [root for root in roots if root != Path("/")]  # the whole machine is never meant as the workspace
    hidden = [*_system(*_EMPTY, *_SERVICES), *homes, *closed]
    also_written = [path for path in (*_user_paths(settings.write, home), *need.writable) if path.exists()]
    chosen = [path for path in (*_user_paths(settings.read, home), *need.readable) if path.exists()]
    above = [tree for root in outside if (tree := enclosing_worktree(root, homes)) is not None]
    others: list[GitDirs] = []
    reach = need.place.reach
    if reach.writes_git:
        chosen += [hooks for hooks in (user_hooks(home),) if hooks is not None and hooks.exists()]
        others = [git_dirs for tree in above if (git_dirs := repository(tree / ".git")) is not None]
    scan = scan_protected(outside, home, others, checkout=reach.checks_out)
    repositories = scan.repositories
    installed = find_toolchains(environment.get("PATH", ""), home, homes, int(time.monotonic() / _TOOLS_SECONDS))
    called = find_programs(need.programs, homes)
    opened = [path for path in need.opened if visibility(path, homes) == "on request"]
    readable = [*installed.readable, *called.readable, *chosen, *opened, *above, *_resolver(need)]
    readable += [git_dirs.common for git_dirs in repositories]
    readable += [git_dirs.folder for git_dirs in repositories]
    readable += [objects for git_dirs in repositories if need.borrowing for objects in borrowed_objects(git_dirs)]
    writable, read_only, guarded = _write_access(need, outside, scan)
    writable = [*also_written, *writable]
    visible = [*outside, *readable, *also_written]
    secret = [
        *(path for each in own for path in _secrets(each) if not is_inside(path, chosen) and is_inside(path, visible)),
        *(path for path in _secrets_in(opened, home) if not is_inside(path, (*chosen, *called.files))),
        *(path for path in map(Path, _SYSTEM_SECRETS) if os.access(path, os.R_OK)),
        *_amanu_folders(ours),
        *(path for path in closed if path.exists()),
    ]
    workspace_secrets = [] if reach.secrets else [path for path in scan.secrets if not is_inside(path, chosen)]
    shown_secrets = [path for path in workspace_secrets if is_shown_by_git(path, repositories, keys=need.tracked_keys)]
    workspace_secrets = [path for path in workspace_secrets if path not in shown_secrets]
    secret += workspace_secrets
    return FilesystemView(
        hidden=_outermost(path for path in hidden if path.is_dir() and path != Path("/")),
        readable=_outermost(path for path in readable if _reachable(path) and not is_inside(path, outside)),
        links=tuple(
            link
            for link in dict.fromkeys((*installed.links, *called.links))
            if not is_inside(link[0], (*readable, *outside))
        ),
        roots=tuple(dict.fromkeys(roots)),
        writable=tuple(dict.fromkeys(writable)),
        read_only=tuple(
            dict.fromkeys(
                real for path in read_only for real in (_real(path),) if is_inside(real, writable) and real.exists()
            )
        ),
        guarded=tuple(
            dict.fromkeys(path for name in guarded for path in (name, _real(name)) if is_inside(path, writable))
        ),
        secret=_outermost(secret),
        workspace_secrets=tuple(workspace_secrets),
        shown_secrets=tuple(shown_secrets),
        sockets=_outside(scan.sockets, environment, hidden, visible),
        home=home,
        protected=scan,
    )


def _secrets_in(opened: Sequence[Path], home: Path | None) -> Sequence[Path]:
    return scan_protected(opened, home, opened=True).secrets if opened else ()


def home_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """All home folders, as a program with that environment knows them. Blocking."""
    return _homes(environment)[1]


def _write_access(
    need: SandboxRequirements, roots: Sequence[Path], scan: ProtectedScan
) -> tuple[list[Path], list[Path], list[Path]]:
    """What of the workspace is writable, and inside that, what is read only and what is guarded."""
    reach = need.place.reach
    if not need.place.writes:
        return [], [], []
    gits = dict.fromkeys(folder for git_dirs in scan.repositories for folder in (git_dirs.folder, git_dirs.common))
    names, runs = [path for path in scan.names if path not in gits], scan.executed_paths()
    read_only = [*names, *(runs if reach.writes_git else gits)]
    return (
        [*roots, *(gits if reach.writes_git else ())],
        [path for path in read_only if not (reach.git == "settings" and is_settings(path))],
        [*names, *runs],
    )


def _outside(
    sockets: Sequence[Path], environment: Mapping[str, str], hidden: Sequence[Path], visible: Sequence[Path]
) -> tuple[Path, ...]:
    """Sockets that a command sees but did not make: those in the roots that are served (all of them where that is not
    known), and those elsewhere."""
    names = bound_names()
    ours = tuple(sockets) if names is None else served_sockets(sockets, names)

    def is_visible(path: str) -> bool:
        real_path = _real(path)
        return is_inside(real_path, visible) or not is_inside(real_path, (*hidden, *_system("/dev", "/proc", "/sys")))

    return tuple(dict.fromkeys((*ours, *outside_sockets(names or (), {**os.environ, **environment}, is_visible))))


def _homes(environment: Mapping[str, str]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The user's home folder as the command knows it and, where that differs, as we do; and all home folders."""
    named = [environment.get("HOME", ""), os.path.expanduser("~")]  # noqa: PTH111
    real_homes = [_real(path) for path in named if os.path.isabs(path)]  # noqa: PTH117
    real_homes = [path for path in real_homes if path != Path("/") and path.is_dir()]
    own = tuple(dict.fromkeys(real_homes))
    return own, tuple(dict.fromkeys((*own, *_system(*_HOMES))))


def _user_paths(paths: Iterable[str], home: Path | None) -> list[Path]:
    """Absolute real paths from the user's settings, with `~` expanded."""
    spelled = [path.replace("~", str(home), 1) if home and path.startswith("~") else path for path in paths]
    return [_real(path) for path in spelled if os.path.isabs(path)]  # noqa: PTH117


def _secrets(home: Path) -> Iterator[Path]:
    for name in (*protected.SECRETS, *protected.HOME_SECRETS):
        if "*" in name:
            continue
        path = f"{home}/{name}"  # as text, since pathlib takes ten times as long
        if os.path.lexists(path):
            yield _real(path)


def _amanu_folders(ours: Home) -> list[Path]:
    return [path for path in map(_real, (ours.config, ours.state, ours.logs, ours.runtime)) if path.exists()]


def _resolver(need: SandboxRequirements) -> list[Path]:
    """The resolver configuration, which is often a file in `/run`."""
    return [_real("/etc/resolv.conf")] if need.place.reach.network else []


def _reachable(path: Path) -> bool:
    try:
        folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False
    return os.access(path, os.R_OK | os.X_OK if folder else os.R_OK)


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    by_path = {str(folder): folder for folder in folders}
    return tuple(folder for path, folder in by_path.items() if not any(above in by_path for above in _above(path)))


def _above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:  # noqa: PTH120
        yield above
        path = above


@cache
def _system(*paths: str) -> tuple[Path, ...]:
    """The real paths of system folders, which only root can change."""
    return tuple(map(_real, paths))


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
