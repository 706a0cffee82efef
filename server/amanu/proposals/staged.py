"""The user has reviewed what they stage (`git add`, `git commit -a`): it is kept, as if they had said so.

A file counts if it is staged exactly as it is; of one that is staged in part (`git add -p`) the hunks whose new lines
are in the staged text. Blocks.
"""

import os
import stat
from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.model import LiveFile
from amanu.proposals.reanchor import reanchor
from amanu.proposals.rows import LiveRow
from amanu.workspace import disk
from amanu.workspace.git.staged import Staging
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace


class Look:
    """The text at a path, and the text staged for it."""

    def __init__(self, workspace: Workspace, path: Path, text: FileText | None, staging: Staging) -> None:
        self.path = path
        self.text = text
        self.staging = staging
        self._workspace = workspace

    @property
    def is_staged_deletion(self) -> bool:
        """The file is gone, there and in the index."""
        return self.staging.entry is None and self.staging.old != "" and not os.path.lexists(self.path)

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

    @cached_property
    def staged_text(self) -> FileText | None:
        """The staged text, in the encoding of the file; None if it cannot be had."""
        data = None if self.text is None or self.text.encoding != "utf-8" else self.staging.read()
        if data is None or self.text is None:
            return None
        try:
            return self.text.as_base(data.decode())
        except (UnicodeDecodeError, ToolError):
            return None


def keep_staged(file: LiveFile, look: Look) -> bool:
    """Mark what is staged of the file as reviewed. Returns whether anything was."""
    waiting = [hunk.hunk_id for hunk in file.hunks if hunk.state == "applied" and not hunk.reviewed]
    kept = [hunk_id for hunk_id in waiting if hunk_id in _staged(file, look)] if waiting else []
    for hunk_id in kept:
        file.update_hunk(hunk_id, reviewed=True)
    return bool(kept)


def keep_staged_row(row: LiveRow, look: Look) -> bool:
    """The same with a row."""
    change = row.change
    if row.state != "applied" or row.reviewed or look.path != change.paths[-1]:
        return False
    if change.kind == "mode":
        is_staged = look.staging.entry is not None and look.is_executable == change.is_executable
    else:
        is_staged = look.is_staged_deletion if change.after is None else look.is_exact
    row.reviewed = is_staged
    return is_staged


def _staged(file: LiveFile, look: Look) -> Collection[str]:
    """The hunks that are staged."""
    ids = [hunk.hunk_id for hunk in file.hunks]
    if file.delete:
        return ids if look.is_staged_deletion else ()
    if look.path != (file.new_path or file.base.path):
        return ()
    if look.is_exact:
        return ids
    if file.change != "edit" or look.staged_text is None:
        return ()
    copy = replace(file, hunks=list(file.hunks))
    moved = reanchor(copy, look.staged_text)
    if moved is None:
        return ()
    texts = {hunk.hunk_id: hunk.new_text for hunk in file.hunks}
    return [hunk.hunk_id for hunk in moved.hunks if hunk.state == "applied" and hunk.new_text == texts[hunk.hunk_id]]
