"""Tier 1: namespaces made by bubblewrap, version 0.8 or newer, which can bind by descriptor and disable user
namespaces."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.filesystem_view import FilesystemView

PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""Only here: a copy elsewhere could be anyone's, and Ubuntu allows user namespaces only to the first
(github.com/openai/codex/issues/14919)."""
HOLDERS = 2
"""How many processes of bubblewrap surround the command."""

_NAMESPACES = (
    *("--new-session", "--die-with-parent", "--unshare-user", "--unshare-all", "--disable-userns"),
    *("--cap-drop", "ALL"),
)


@dataclass(frozen=True)
class LayerBinds:
    """What is bound of a layer, which must be mounted when bubblewrap starts."""

    merged: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    """Root → where the layer mounts it. The root itself is bound read only, and this over it."""
    mounted: tuple[Path, ...] = ()
    """What is mounted below the roots, which the layer does not contain: seen, and read only."""
    secret_folders: frozenset[Path] = frozenset()
    """Those of the secret paths that are folders, and in the layer only."""
    lock: int | None = None
    """The descriptor that locks the layer: held until the last process of the sandbox has ended."""
    identity: tuple[int, int] | None = None
    """User and group the command runs as. None: those bubblewrap has; where it runs in a user namespace made for the
    mount, it is root."""


def program() -> Path | None:
    """The system's bubblewrap, which belongs to root and is writable by nobody else. Blocking."""
    for candidate in map(Path, PLACES):
        try:
            status = candidate.stat()
        except OSError:
            continue
        if status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return candidate
    return None


def command(
    program: Path,
    argv: Sequence[str],
    need: SandboxRequirements,
    view: FilesystemView,
    *,
    temporary: Path,
    folder: Path,
    roots: Mapping[Path, int],
    pinned: Mapping[str, int],
    filter: int,
    as_root: bool,
    layer: LayerBinds | None = None,
) -> list[str]:
    """The command line that runs `argv` in this sandbox. `roots` are descriptors of the roots, `pinned` of files'
    bytes, and `filter` of the system call filter; bubblewrap reads and closes them. `temporary` becomes `/tmp`; the
    command starts in `folder`."""
    place, layer = need.place, layer or LayerBinds()
    network = ("--share-net",) if place.reach.network else ()
    # The host name must be one that no name server is asked for.
    out = [str(program), *_NAMESPACES, "--hostname", "localhost", *network]
    if layer.identity is not None:
        out += ["--uid", str(layer.identity[0]), "--gid", str(layer.identity[1])]
    if layer.lock is not None:
        out += ["--sync-fd", str(layer.lock)]
    out += ["--ro-bind", "/", "/"]
    out += ["--dev", "/dev", "--proc", "/proc", *(("--remount-ro", "/proc") if as_root else ())]
    tmp = Path(os.path.realpath("/tmp"))
    for path in view.hidden:
        out += ["--tmpfs", str(path)] if path != tmp else []
    if view.home is not None:
        out += ["--perms", "0700", "--dir", str(view.home)]
    out += _bound("--bind", temporary, tmp)
    for path in view.readable:
        out += _bound("--ro-bind-try", path)
    for name, target in view.links:
        out += ["--symlink", str(target), str(name)]
    for path in sorted({*view.roots, *view.writable}, key=lambda path: len(path.parts)):
        writable, merged = path in view.writable, layer.merged.get(path)
        if path in roots:
            is_bound_writable = writable and merged is None
            out += ["--bind-fd" if is_bound_writable else "--ro-bind-fd", str(roots[path]), str(path)]
            if merged is not None:
                out += _bound("--bind" if writable else "--ro-bind", merged, path)
        elif path != Path("/"):
            out += _bound("--bind" if writable else "--ro-bind", path)
    for path in layer.mounted:
        out += _bound("--ro-bind-try", path)
    if place.writes:
        for path in sorted(view.read_only, key=lambda path: len(path.parts)):
            out += _bound("--ro-bind-try", path)
    for path, handle in pinned.items():
        out += ["--perms", "0755", "--ro-bind-data", str(handle), path]
    closed = {path: path in layer.secret_folders or path.is_dir() for path in view.secret}
    closed |= dict.fromkeys(view.sockets, False)
    # bubblewrap reads the mount table for each bind, but not for other mounts: folders come last, as tmpfs.
    for path, _ in sorted(closed.items(), key=lambda path_and_kind: path_and_kind[1]):
        out += _empty(path, folder=closed[path])
    return [*out, "--seccomp", str(filter), "--chdir", str(folder), "--", *argv]


def variables(environment: Mapping[str, str]) -> bytes:
    """Options that set these variables for the command, as `--args` reads them from a descriptor."""
    options = (("--setenv", name, value) for name, value in environment.items())
    return b"".join(os.fsencode(part) + b"\0" for option in options for part in option)


def _bound(how: str, source: Path, target: Path | None = None) -> list[str]:
    return [how, str(source), str(target or source)]


def _empty(path: Path, *, folder: bool) -> list[str]:
    """Cover a path: a folder becomes empty and unwritable, a file a device that cannot be opened where it is bound."""
    if folder:
        return ["--perms", "0555", "--tmpfs", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]
