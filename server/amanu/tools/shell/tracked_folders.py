"""The folders of a workspace that hold files tracked by git."""

from functools import lru_cache
from pathlib import Path

from amanu.sandbox.git_dirs import repository_of
from amanu.workspace.git.index import UnknownIndex, read_index


def tracked_folders(root: Path) -> frozenset[str]:
    """The folders below a root that hold files tracked by git, relative to it; none without a repository, or if its
    index cannot be read. Blocking."""
    found = repository_of(root)
    if found is None:
        return frozenset()
    try:
        index = found.folder / "index"
        status = index.stat()
        folders = _folders(index, (status.st_ino, status.st_mtime_ns, status.st_size))
        below = root.relative_to(found.top).as_posix()
    except (OSError, UnknownIndex, ValueError):
        return frozenset()
    return (
        folders
        if below == "."
        else frozenset(each[len(below) + 1 :] for each in folders if each.startswith(f"{below}/"))
    )


@lru_cache(maxsize=8)
def _folders(index: Path, _stamp: tuple[int, int, int]) -> frozenset[str]:
    """The folders named in an index; the stamp tells versions of the file apart."""
    folders: set[str] = set()
    for path, _ in read_index(index.read_bytes()):
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)
