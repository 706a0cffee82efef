"""The end of a transaction that a kill or a loss of power interrupted: what was approved is finished, or it is open
again; never a mix.

The note of a transaction is durable before it changes anything (see `transaction.py`). So if one file or row is on disk
as it should be, the others follow; if none is, nothing was done there, and all is open again. What somebody else has
changed since is left alone. Blocking: call it in a thread.
"""

from collections.abc import Sequence
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.decisions import unmet_need
from amanu.proposals.model import STATES_AFTER, STATES_BEFORE, FileVersion, LiveFile, LiveProposal
from amanu.proposals.row_plan import RowPlanner, Standing
from amanu.proposals.rows import LiveRow
from amanu.workspace import disk
from amanu.workspace.disk_changes import DiskChange, make_all
from amanu.workspace.replacement import Replacement
from amanu.workspace.workspace import Workspace

CHANGED_WHILE_STOPPED = "The file changed while Amanu was not running."
STOPPED_IN_EDITOR = "Amanu was stopped while the editor made this change. Look whether it is there, then try again."
STOPPED = "Amanu was stopped before this was done. Decide again."


class Recovery:
    """Recovery of one session's interrupted transactions."""

    def __init__(self, workspace: Workspace, rows: RowPlanner | None) -> None:
        self._workspace = workspace
        self._rows = rows

    def finish(self, live: LiveProposal) -> None:
        """Settle all interrupted changes of this decision by what the workspace has."""
        standings: list[tuple[LiveFile | LiveRow, Standing]] = [
            (change, self._standing(change)) for change in sorted(live.interrupted, key=_order)
        ]
        others = [change for change, each in standings if isinstance(change, LiveFile) and each == "other"]
        standings = [
            (change, "other" if each == "before" and _is_mode_of(change, others) else each)
            for change, each in standings
        ]
        is_begun = any(each in ("after", "between") and not _is_new_folder(change) for change, each in standings)
        todo = [change for change, each in standings if is_begun and self._is_to_be_made(change, each)]
        try:
            done = self._made(todo)
        except disk.NotWritten:  # all of it is tried again when the session is next opened, or decided
            for change in todo:
                if isinstance(change, LiveRow):
                    self._release(change)
            return
        for change, standing in standings:
            if change in done:
                change.settle(None)
            elif change in todo:
                self._go_on(live, change)
            else:
                self._settle(change, standing)

    def _is_to_be_made(self, change: LiveFile | LiveRow, standing: Standing) -> bool:
        is_open = isinstance(change, LiveFile) and standing == "before" and self._is_open(change)
        return standing in ("before", "between") and not is_open

    def _made(self, todo: Sequence[LiveFile | LiveRow]) -> Sequence[LiveFile | LiveRow]:
        """Make all that is on disk, and return it; nothing if somebody has changed one of them. Raises `NotWritten`."""
        on_disk = [change for change in todo if isinstance(change, LiveFile) or change.change.kind != "git"]
        try:
            changes = [made for change in on_disk for made in self._changes(change)]
            if changes:
                make_all(self._workspace.guard, changes)
        except disk.NotWritten:
            raise
        except (disk.BaseChanged, ToolError, OSError):
            return []
        return on_disk

    def _standing(self, change: LiveFile | LiveRow) -> Standing:
        for path in _paths(change):
            disk.remove_temporary_files(self._workspace.guard, path)
        if isinstance(change, LiveFile):
            return self._standing_of_text(change)
        return "other" if self._rows is None else self._rows.standing(change)

    def _go_on(self, live: LiveProposal, change: LiveFile | LiveRow) -> None:
        try:
            if isinstance(change, LiveRow) and (missing := unmet_need(live, change, self._workspace.display_path)):
                raise ToolError(missing)
            self._make(change)
        except disk.BaseChanged:
            self._settle(change, "other")
        except (ToolError, OSError) as error:
            if isinstance(change, LiveRow):
                self._release(change)
            change.settle(str(error))
        else:
            change.settle(None)

    def _make(self, change: LiveFile | LiveRow) -> None:
        """Raises `BaseChanged`, `ToolError`."""
        if self._rows is not None and isinstance(change, LiveRow) and change.change.kind == "git":
            with self._rows.prepared(change) as ready:
                ready.commit()
        else:
            make_all(self._workspace.guard, self._changes(change))

    def _changes(self, change: LiveFile | LiveRow) -> Sequence[DiskChange]:
        """The changes that a killed daemon has not made. Raises `ToolError`, `OSError`."""
        if isinstance(change, LiveFile):
            return self._changes_of_text(change)
        return [] if self._rows is None else self._rows.changes_left(change)

    def _settle(self, change: LiveFile | LiveRow, standing: Standing) -> None:
        if standing == "after":
            change.settle(None)
        elif isinstance(change, LiveRow):
            self._release(change)
            change.leave_open(STOPPED)
        elif standing == "other":
            change.settle(CHANGED_WHILE_STOPPED)
        elif change.base.from_buffer:
            change.settle(STOPPED_IN_EDITOR)
        else:
            change.leave_open(None)

    def _release(self, row: LiveRow) -> None:
        if self._rows is not None and row.change.kind == "git":
            self._rows.release(row)

    # Text -------------------------------------------------------------------------------------------

    def _standing_of_text(self, file: LiveFile) -> Standing:
        old_version, new_version = file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER)
        moves = new_version.path != old_version.path
        try:
            is_new, is_old = self._is_on_disk(file, new_version), self._is_on_disk(file, old_version)
            if moves and is_new and is_old:
                return "between"  # moved, but the old name is still there
            if is_new and (not moves or self._is_missing(old_version)):
                return "after"
            if is_old and (not moves or self._is_missing(new_version)):
                return "before"
            return "between" if self._is_half_written(file, old_version, new_version) else "other"
        except ToolError:
            return "other"

    def _is_on_disk(self, file: LiveFile, version: FileVersion) -> bool:
        stored = disk.read(self._workspace.guard, version.path)
        if stored is None or version.text is None:
            return (stored is None) == (version.text is None)
        return stored.data == file.base.encode(version.text)

    def _is_missing(self, version: FileVersion) -> bool:
        return disk.read(self._workspace.guard, version.path) is None

    def _is_half_written(self, file: LiveFile, old_version: FileVersion, new_version: FileVersion) -> bool:
        """Whether a file that is written in place, because it has several names, was left with the beginning of the new
        text and the end of the old."""
        stored = disk.read(self._workspace.guard, new_version.path)
        if stored is None or old_version.text is None or new_version.text is None or stored.names == 1:
            return False
        if old_version.path != new_version.path:
            return False
        old_bytes, new_bytes, data = file.base.encode(old_version.text), file.base.encode(new_version.text), stored.data
        same = next((at for at, (one, other) in enumerate(zip(data, new_bytes, strict=False)) if one != other), None)
        at = min(len(data), len(new_bytes)) if same is None else same
        return data[at:] == old_bytes[at:]

    def _changes_of_text(self, file: LiveFile) -> Sequence[DiskChange]:
        """The changes that a killed daemon has not made. Raises `ToolError`."""
        old_version, new_version = file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER)
        data = None if new_version.text is None else file.base.encode(new_version.text)
        stored = {path: disk.read(self._workspace.guard, path) for path in (old_version.path, new_version.path)}
        there = {path: None if each is None else each.data for path, each in stored.items()}
        made = Replacement(new_version.path, there[new_version.path], data, file.base.mode)
        if new_version.path == old_version.path:
            return [made]
        removal = Replacement(old_version.path, there[old_version.path], None)
        if there[new_version.path] is not None:
            return [removal]
        return [Replacement(new_version.path, None, data, like=old_version.path), removal]

    def _is_open(self, file: LiveFile) -> bool:
        """Whether an editor has the file open, which is then not written behind its back. An editor that must be asked
        shows any file, so it counts only if it has unsaved text."""
        document = self._workspace.find_open(file.base.path)
        return document is not None and not (document[0].must_be_asked and document[1].typed == 0)


def _is_new_folder(change: LiveFile | LiveRow) -> bool:
    """Whether it is an empty folder, which the user may have made as well."""
    return isinstance(change, LiveRow) and change.change.kind == "folder" and not change.change.is_tree


def _is_mode_of(change: LiveFile | LiveRow, files: Sequence[LiveFile]) -> bool:
    """Whether the change is to the executable bits of one of these files."""
    if isinstance(change, LiveFile) or change.change.kind != "mode":
        return False
    return any(file.has_path(change.change.path) for file in files)


def _order(change: LiveFile | LiveRow) -> tuple[int, int]:
    """Bits are set once their file is there, folders are removed once they are empty, and commits need their files."""
    if isinstance(change, LiveFile):
        return 0, 0
    _, new = change.sides
    match change.change.kind:
        case "git":
            return 3, 0
        case "mode":
            return 1, 0
        case _ if new is None:
            return 2, -len(change.change.path.parts)
        case _:
            return 0, 0


def _paths(change: LiveFile | LiveRow) -> Sequence[Path]:
    if isinstance(change, LiveRow):
        return [] if change.change.kind == "git" else change.change.paths
    return [change.version_with(states).path for states in (STATES_BEFORE, STATES_AFTER)]
