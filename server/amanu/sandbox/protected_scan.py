"""What of some folders git, editors, shells and agents run or obey. Looked at before a command and after it."""

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.folder_scan import FolderScan, scan_folder
from amanu.sandbox.git_dirs import GitDirs, repository

_FOLDERS = 500
"""Of a root that are looked through, the nearest first."""

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True)
class ProtectedScan:
    """Whole paths of what is there."""

    names: tuple[Path, ...]
    """Protected files and folders."""
    repositories: tuple[GitDirs, ...]
    folders: frozenset[str]
    """That were looked through. As text: pathlib takes a millisecond for hundreds."""
    secrets: tuple[Path, ...]
    """Real paths of files and folders that hold secrets."""
    sockets: tuple[Path, ...]

    def executed_paths(self) -> list[Path]:
        """Of the repositories: what git runs, or is led elsewhere by. Blocking."""
        paths = dict.fromkeys(path for git_dirs in self.repositories for path in git_dirs.executed_paths())
        return [path for path in paths if os.path.lexists(path)]


def scan_protected(
    roots: Iterable[Path],
    home: Path | None,
    repositories: Iterable[GitDirs] = (),
    folders: Collection[str] = (),
    *,
    checkout: bool = False,
) -> ProtectedScan:
    """What there is in the nearest folders of each root, in the home folder where that is one or below one, and in
    those repositories and folders besides; `checkout`: without what git may change. Blocking; short where nothing
    changed."""
    roots = [root for root in roots if root != Path("/")]
    names: list[Path] = []
    scanned: list[str] = []
    secrets: list[Path] = []
    sockets: list[Path] = []
    for path, folder in _walk(roots, folders):
        scanned.append(path)
        names += (Path(name) for name in folder.protected if not (checkout and protected.is_checked_out(name)))
        secrets += (Path(os.path.realpath(name)) for name in folder.perhaps_secret if _is_secret(name, roots))
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
    """What a login or a desktop runs, where the home folder can be written; it need not be there."""
    if home is None or not any(root == home or root in home.parents for root in roots):
        return []
    return [home / name for name in (*protected.HOME_FILES, *protected.HOME_FOLDERS)]


def identity(path: Path) -> Identity | None:
    """None: nothing is there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_secret(path: str, roots: Iterable[Path]) -> bool:
    """`path` is of a folder that was looked through for one of the roots."""
    root = next((candidate for candidate in roots if path.startswith(f"{candidate}/")), None)
    if root is None or not protected.is_secret(os.path.relpath(path, root)):
        return False
    if path.endswith("/.npmrc"):
        return protected.npmrc_holds_token(path)
    return not os.path.exists(f"{path}/pyvenv.cfg")  # noqa: PTH110 (a virtual environment of that name)


def _walk(roots: Iterable[Path], folders: Collection[str]) -> Iterator[tuple[str, FolderScan]]:
    unvisited = {*folders}
    for root in roots:
        todo, visited = deque([str(root)]), 0
        while todo and visited < _FOLDERS:
            visited += 1
            path = todo.popleft()
            folder = scan_folder(path)
            todo += folder.below
            unvisited.discard(path)
            yield path, folder
    for path in unvisited:
        yield path, scan_folder(path)
