"""The user has reviewed a file that they stage exactly as it is (`git add`): it is kept, as if they had said so.

All of it blocks.
"""

import os
import stat
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from amanu.proposals.model import LiveFile
from amanu.proposals.rows import LiveRow
from amanu.workspace import disk
from amanu.workspace.git.staged import Staging
from amanu.workspace.workspace import Workspace


class Look:
    """The content at a path, and the one staged for it."""

    def __init__(self, workspace: Workspace, path: Path, staging: Staging) -> None:
        self.path = path
        self.staging = staging
        self._workspace = workspace

    @property
    def is_staged_deletion(self) -> bool:
        """The file is gone, there and in the index."""
        return self.staging.entry is None and not os.path.lexists(self.path)

    @cached_property
    def is_exact(self) -> bool:
        """The file is staged as it is. Raises `OSError`, `ToolError`."""
        if self.path.is_symlink():
            return self.staging.is_exactly(os.fsencode(self.path.readlink()))
        stored = disk.read(self._workspace.guard, self.path)
        return stored is not None and self.staging.is_exactly(stored.data)

    @property
    def is_executable(self) -> bool:
        return self.staging.entry is not None and bool(self.staging.entry.mode & stat.S_IXUSR)


def keep_staged(file: LiveFile, look: Look, given_back: Collection[str]) -> bool:
    """Mark the file as reviewed if it is staged. Returns whether anything was. `given_back`: hunks that were gone once,
    and that git may have brought back along with the index."""
    waiting = [hunk.hunk_id for hunk in file.hunks if hunk.state == "applied" and not hunk.reviewed]
    waiting = [hunk_id for hunk_id in waiting if hunk_id not in given_back]
    if not waiting or not _is_staged(file, look):
        return False
    for hunk_id in waiting:
        file.update_hunk(hunk_id, reviewed=True)
    return True


def keep_staged_row(row: LiveRow, look: Look) -> bool:
    """The same with a row."""
    change = row.change
    if row.state != "applied" or row.reviewed or look.path != change.paths[-1]:
        return False
    is_staged = look.is_staged_deletion if change.after is None and change.kind != "mode" else look.is_exact
    row.reviewed = is_staged and (change.kind != "mode" or look.is_executable == change.is_executable)
    return row.reviewed


def _is_staged(file: LiveFile, look: Look) -> bool:
    if file.delete:
        return look.is_staged_deletion
    return look.path == (file.new_path or file.base.path) and look.is_exact
