"""Files of a working tree that are not as they are staged, judged as git does first: by size and time."""

import os
from collections.abc import Sequence
from pathlib import Path

from amanu.workspace.git.folder import GitFolder, UnknownRepository
from amanu.workspace.git.index import Stamp, UnknownIndex, read_stamps
from amanu.workspace.git.present import INDEX

MAX_FILES = 5_000
"""Looking at so many takes 25 ms."""
_MAX_INDEX = 1 << 21


def changed_files(root: Path, names: Sequence[str], limit: int) -> list[str]:
    """The files, of these names relative to a repository's root, that differ from what git has, the last modified
    first. Empty where nothing is staged, or that cannot be read, or there are too many. Nothing runs.
    Blocks."""
    if len(names) > MAX_FILES:
        return []
    try:
        with GitFolder.opened(root) as folder:
            data = folder.read(INDEX, _MAX_INDEX + 1) or b""
        stamps = read_stamps(data if len(data) <= _MAX_INDEX else b"")
    except (OSError, UnknownRepository, UnknownIndex):
        return []
    changed: list[tuple[int, str]] = []
    for name in names if stamps else ():
        try:
            found = os.stat(f"{root}/{name}", follow_symlinks=False)  # noqa: PTH116  a Path takes as long as the call
        except OSError:
            continue
        if _stamp(found, noted := stamps.get(name)) != noted:
            changed.append((-found.st_mtime_ns, name))
    return [name for _, name in sorted(changed)[:limit]]


def _stamp(found: os.stat_result, noted: Stamp | None) -> Stamp:
    """Some gits note whole seconds only."""
    seconds, rest = divmod(found.st_mtime_ns, 10**9)
    return seconds & 0xFFFFFFFF, 0 if noted is not None and not noted[1] else rest, found.st_size & 0xFFFFFFFF
