"""After a crash in the middle of a decision: what was approved is finished, or was never begun; never a mix.

Editors are asked before the first file on disk changes (`apply.py`), and all pre-images and the decision are on record
by then. So when one file on disk is as it should be, the others may follow; when none is, nothing was written there,
and the hunks are open again. What somebody else changed since is left alone. Blocking: call it in a thread.
"""

from collections.abc import Iterable
from typing import Literal

from amanu.core.tool import ToolError
from amanu.proposals.apply import settle
from amanu.proposals.model import STATES_AFTER, STATES_BEFORE, FileVersion, LiveFile, LiveProposal
from amanu.proposals.rows import LiveRow, RowFiles
from amanu.workspace import disk
from amanu.workspace.workspace import Workspace

CHANGED_WHILE_STOPPED = "The file changed while Amanu was not running."
STOPPED_IN_EDITOR = "Amanu was stopped while the editor applied it; it may be there. Try again."

_Standing = Literal["before", "after", "between", "other"]


def interrupted_files(live: LiveProposal) -> list[LiveFile]:
    """The files something was being done to."""
    return [file for file in live.files if any(hunk.state in ("accepted", "undoing") for hunk in file.hunks)]


def interrupted_rows(live: LiveProposal) -> list[LiveRow]:
    """The rows that were being applied or undone."""
    return [row for row in live.rows if row.state in ("accepted", "undoing")]


async def recover_rows(rows: Iterable[LiveRow], files: RowFiles | None) -> None:
    """Settle these rows by what the workspace has."""
    for row in rows:
        if files is not None and await files.is_done(row):
            row.settle(None)
        else:
            row.leave_open("Amanu was stopped before this was done. Decide again.")


def recover(workspace: Workspace, files: Iterable[LiveFile]) -> None:
    """Settle every hunk of these files of one decision by what is on disk."""
    standings = {id(file): _standing(workspace, file) for file in files}
    begun = any(each in ("after", "between") for each in standings.values())
    for file in files:
        standing = standings[id(file)]
        if standing == "between" or (standing == "before" and begun and not _is_open(workspace, file)):
            standing = _finish(workspace, file)
        if standing == "after":
            settle(file, succeeded=True)
        elif standing == "other":
            settle(file, succeeded=False, reason=CHANGED_WHILE_STOPPED)
        elif file.base.from_buffer:
            settle(file, succeeded=False, reason=STOPPED_IN_EDITOR)
        else:
            for hunk in list(file.hunks):
                if hunk.state in ("accepted", "undoing"):
                    file.update_hunk(
                        hunk.hunk_id, state="pending" if hunk.state == "accepted" else "applied", reason=None
                    )


def _standing(workspace: Workspace, file: LiveFile) -> _Standing:
    old_version, new_version = file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER)
    for path in {old_version.path, new_version.path}:
        disk.remove_temporary_files(workspace.guard, path)
    try:
        if _is_on_disk(workspace, file, new_version) and (
            new_version.path == old_version.path or _is_missing(workspace, old_version)
        ):
            return "after"
        if (
            new_version.path != old_version.path
            and _is_on_disk(workspace, file, old_version)
            and _is_on_disk(workspace, file, new_version)
        ):
            return "between"  # moved, but the old name is still there
        if _is_on_disk(workspace, file, old_version) and (
            new_version.path == old_version.path or _is_missing(workspace, new_version)
        ):
            return "before"
        return "between" if _is_half_written(workspace, file, old_version, new_version) else "other"
    except ToolError:
        return "other"


def _is_on_disk(workspace: Workspace, file: LiveFile, form: FileVersion) -> bool:
    stored = disk.read(workspace.guard, form.path)
    if stored is None or form.text is None:
        return (stored is None) == (form.text is None)
    return stored.data == file.base.encode(form.text)


def _is_missing(workspace: Workspace, form: FileVersion) -> bool:
    return disk.read(workspace.guard, form.path) is None


def _is_half_written(workspace: Workspace, file: LiveFile, old_version: FileVersion, new_version: FileVersion) -> bool:
    """A file that is written in place, because it has several names, was left with the beginning of the one and the
    end of the other."""
    stored = disk.read(workspace.guard, new_version.path)
    if stored is None or old_version.text is None or new_version.text is None or old_version.path != new_version.path:
        return False
    old_bytes, new_bytes, data = file.base.encode(old_version.text), file.base.encode(new_version.text), stored.data
    same = next((at for at, (one, other) in enumerate(zip(data, new_bytes, strict=False)) if one != other), None)
    at = min(len(data), len(new_bytes)) if same is None else same
    return data[at:] == old_bytes[at:]


def _finish(workspace: Workspace, file: LiveFile) -> _Standing:
    old_version, new_version = file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER)
    data = None if new_version.text is None else file.base.encode(new_version.text)
    try:
        stored_files = {path: disk.read(workspace.guard, path) for path in (old_version.path, new_version.path)}
        expected = {path: None if each is None else each.data for path, each in stored_files.items()}
        replacements = [disk.Replacement(new_version.path, expected[new_version.path], data, file.base.mode)]
        if new_version.path != old_version.path:
            removal = disk.Replacement(old_version.path, expected[old_version.path], None)
            replacements = (
                [removal]
                if expected[new_version.path] is not None
                else [disk.Replacement(new_version.path, None, data, like=old_version.path), removal]
            )
        disk.replace(workspace.guard, replacements)
    except (ToolError, disk.BaseChanged):
        return "other"
    return "after"


def _is_open(workspace: Workspace, file: LiveFile) -> bool:
    """An editor has it: it is not written behind its back. One that must be asked shows any file; of it only unsaved
    text counts."""
    document = workspace.find_open(file.base.path)
    return document is not None and not (document[0].must_be_asked and document[1].typed == 0)
