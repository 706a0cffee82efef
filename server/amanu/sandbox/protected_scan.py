"""Scan folders for protected files, those that git, editors, shells and agents run or obey. Done before a command and
after it."""

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.folder_scan import FolderScan, scan_folder
from amanu.sandbox.git_dirs import GitDirs, repository

_FOLDERS = 500
"""The most folders of a root that are scanned, the nearest first …"""
_OPENED_FOLDERS = 10_000
"""… and of one that is no workspace, once for each start of what reads it: a tenth of a second."""

Identity = tuple[int, int]
"""Device and inode of a file."""


@dataclass(frozen=True)
class ProtectedScan:
    """Absolute paths of the protected files that exist."""

    names: tuple[Path, ...]
    """Protected files and folders."""
    repositories: tuple[GitDirs, ...]
    folders: frozenset[str]
    """The folders that were scanned. As text, since pathlib takes a millisecond for hundreds."""
    secrets: tuple[Path, ...]
    """Real paths of files and folders that hold secrets."""
    sockets: tuple[Path, ...]

    def executed_paths(self) -> list[Path]:
        """The existing paths that git runs or is redirected by, in the repositories. Blocking."""
        paths = dict.fromkeys(path for git_dirs in self.repositories for path in git_dirs.executed_paths())
        return [path for path in paths if os.path.lexists(path)]


def scan_protected(
    roots: Iterable[Path],
    home: Path | None,
    repositories: Iterable[GitDirs] = (),
    folders: Collection[str] = (),
    *,
    checkout: bool = False,
    opened: bool = False,
) -> ProtectedScan:
    """Scan the nearest folders of each root, the home folder if it is in a root, and the given repositories and
    folders. `checkout`: without files that a git checkout may change. `opened`: the roots are no workspaces, so more of
    each is scanned, and the names above it count as well: `~/backup/.aws`. Blocking; fast where nothing changed."""
    roots = [root for root in roots if root != Path("/")]
    names: list[Path] = []
    scanned: list[str] = []
    secrets: list[Path] = []
    sockets: list[Path] = []
    whole = [Path("/")] if opened else []
    for path, folder in _walk(roots, folders, _OPENED_FOLDERS if opened else _FOLDERS):
        scanned.append(path)
        names += (Path(name) for name in folder.protected if not (checkout and protected.is_checked_out(name)))
        secrets += (
            Path(os.path.realpath(name))
            for name in folder.perhaps_secret
            if _is_secret(name, roots) or _is_secret(name, whole)
        )
        sockets += map(Path, folder.sockets)
    gits = [git_dirs for path in names if path.name.casefold() == ".git" and (git_dirs := repository(path)) is not None]
    names += [path for path in protected_in_home(roots, home) if os.path.lexists(path)]
    return ProtectedScan(
        tuple(dict.fromkeys(names)),
        tuple(dict.fromkeys((*gits, *repositories))),
        frozenset(scanned),
        tuple(secrets),
        tuple(sockets),
    )


def protected_in_home(roots: Iterable[Path], home: Path | None) -> list[Path]:
    """The files that a login or a desktop runs, when the home folder is in a root; they need not exist."""
    if home is None or not any(root == home or root in home.parents for root in roots):
        return []
    return [home / name for name in (*protected.HOME_FILES, *protected.HOME_FOLDERS)]


def identity(path: Path) -> Identity | None:
    """The device and inode of a path; None when nothing is there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_secret(path: str, roots: Iterable[Path]) -> bool:
    """Whether a path that was found under one of the roots is a secret file."""
    root = next((candidate for candidate in roots if path.startswith(f"{str(candidate).rstrip('/')}/")), None)
    if root is None or not protected.is_secret(os.path.relpath(path, root)):
        return False
    if path.endswith("/.npmrc"):
        return protected.npmrc_holds_token(path)
    return not os.path.exists(f"{path}/pyvenv.cfg")  # noqa: PTH110 (a virtual environment of that name)


def _walk(roots: Iterable[Path], folders: Collection[str], most: int) -> Iterator[tuple[str, FolderScan]]:
    unvisited = {*folders}
    for root in roots:
        todo, visited = deque([str(root)]), 0
        while todo and visited < most:
            visited += 1
            path = todo.popleft()
            folder = scan_folder(path)
            todo += folder.below
            unvisited.discard(path)
            yield path, folder
    for path in unvisited:
        yield path, scan_folder(path)
