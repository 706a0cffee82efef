"""Which secret files are hidden, and how they are moved back to where they were. They are hidden by their names, so a
command that moved one with its folder to a harmless name would let the next command read it."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.git_dirs import GitDirs
from amanu.sandbox.protected_scan import Identity, identity

_LARGEST_INDEX = 32 << 20  # bytes
_LARGEST = 1 << 20  # bytes of a file


def is_shown_by_git(path: Path, repositories: Iterable[GitDirs], *, keys: bool) -> bool:
    """Whether a file is in git with exactly its content. Hiding it would break `git status` and protect nothing, since
    `git show` prints it. Without `keys` private keys do not count. Blocking."""
    repository = max((git for git in repositories if git.top in path.parents), key=_depth, default=None)
    if repository is None or (protected.is_private_key(path.name) and not keys):
        return False
    try:
        if path.stat().st_size > _LARGEST or not path.is_file():
            return False
        data, status = path.read_bytes(), (repository.folder / "index").stat()
        index = _index(repository.folder / "index", status.st_mtime_ns, status.st_size)
    except OSError:
        return False
    name = os.fsencode(path.relative_to(repository.top))
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
    # An entry of the index: the blob's hash, two bytes of flags with the length of the name, the name. Where names are
    # shortened (version 4) or in another file, the file counts as not tracked.
    return blob + (min(len(name), 0xFFF)).to_bytes(2, "big") + name + b"\0" in index


def identities(paths: Iterable[Path]) -> dict[Path, Identity]:
    """The device and inode of each path that exists. Blocking."""
    return {path: file_identity for path in paths if (file_identity := identity(path)) is not None}


def restore_secrets(former: Mapping[Path, Identity], roots: Iterable[Path]) -> list[Path]:
    """Move back the files that were moved to names that do not look secret, and return them. Walks all of the roots
    when one is missing. Blocking."""
    missing = {file_identity: path for path, file_identity in former.items() if identity(path) != file_identity}
    back: list[Path] = []
    for root in roots if missing else ():
        for folder, below, names in os.walk(root):
            for name in (*below, *names):
                current_path = Path(folder, name)
                file_identity = identity(current_path) if missing else None
                path = None if file_identity is None else missing.pop(file_identity, None)
                if (
                    path is None
                    or protected.is_secret(current_path.relative_to(root).as_posix())
                    or os.path.lexists(path)
                ):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                current_path.rename(path)
                back.append(path)
    return back


def _depth(repository: GitDirs) -> int:
    return len(repository.top.parts)


@lru_cache(maxsize=4)
def _index(path: Path, mtime: int, size: int) -> bytes:
    """The index of a repository, as it was at that time."""
    return path.read_bytes() if size <= _LARGEST_INDEX else b""
