"""After a crash in the middle of a decision: what was approved is finished, or was never begun; never a mix.

Editors are asked before the first file on disk changes (`apply.py`), and all pre-images and the decision are on record
by then. So when one file on disk is as it shall be, the others may follow; when none is, nothing was written there, and
the hunks are open again. What somebody else changed since is left alone. Blocking: call it in a thread.
"""

from collections.abc import Iterable
from typing import Literal

from amanu.core.tool import ToolError
from amanu.proposals.apply import settle
from amanu.proposals.model import AFTER, BEFORE, FileVersion, LiveFile, LiveProposal
from amanu.workspace import disk
from amanu.workspace.text_file import sha256
from amanu.workspace.workspace import Workspace

LOST = "The file changed while Amanu was not running."
STOPPED = "Amanu was stopped while the editor applied it; it may be there. Try again."

_Standing = Literal["before", "after", "between", "other"]


def torn(live: LiveProposal) -> list[LiveFile]:
    """The files something was being done to."""
    return [file for file in live.files if any(hunk.state in ("accepted", "undoing") for hunk in file.hunks)]


def recover(workspace: Workspace, files: Iterable[LiveFile]) -> None:
    """Settle every hunk of these files of one decision by what is on disk."""
    standing = {id(file): _standing(workspace, file) for file in files}
    begun = any(each in ("after", "between") for each in standing.values())
    for file in files:
        where = standing[id(file)]
        if where == "between" or (where == "before" and begun and not _open(workspace, file)):
            where = _finish(workspace, file)
        if where == "after":
            settle(file, done=True)
        elif where == "other":
            settle(file, done=False, reason=LOST)
        elif file.base.from_buffer:
            settle(file, done=False, reason=STOPPED)
        else:
            for hunk in list(file.hunks):
                if hunk.state in ("accepted", "undoing"):
                    file.put(hunk.hunk_id, state="pending" if hunk.state == "accepted" else "applied", reason=None)


def _standing(workspace: Workspace, file: LiveFile) -> _Standing:
    before, after = file.form(BEFORE), file.form(AFTER)
    for path in {before.path, after.path}:
        disk.sweep(workspace.guard, path)
    try:
        if _is(workspace, file, after) and (after.path == before.path or _missing(workspace, before)):
            return "after"
        if after.path != before.path and _is(workspace, file, before) and _is(workspace, file, after):
            return "between"  # moved, but the old name is still there
        if _is(workspace, file, before) and (after.path == before.path or _missing(workspace, after)):
            return "before"
        return "between" if _half(workspace, file, before, after) else "other"
    except ToolError:
        return "other"


def _is(workspace: Workspace, file: LiveFile, form: FileVersion) -> bool:
    stored = disk.read(workspace.guard, form.path)
    if stored is None or form.text is None:
        return (stored is None) == (form.text is None)
    return stored.data == file.base.encode(form.text)


def _missing(workspace: Workspace, form: FileVersion) -> bool:
    return disk.read(workspace.guard, form.path) is None


def _half(workspace: Workspace, file: LiveFile, before: FileVersion, after: FileVersion) -> bool:
    """A file that is written in place, because it has several names, was left with the beginning of the one and the
    end of the other."""
    stored = disk.read(workspace.guard, after.path)
    if stored is None or before.text is None or after.text is None or before.path != after.path:
        return False
    old, new, data = file.base.encode(before.text), file.base.encode(after.text), stored.data
    same = next((at for at, (one, other) in enumerate(zip(data, new, strict=False)) if one != other), None)
    at = min(len(data), len(new)) if same is None else same
    return data[at:] == old[at:]


def _finish(workspace: Workspace, file: LiveFile) -> _Standing:
    before, after = file.form(BEFORE), file.form(AFTER)
    data = None if after.text is None else file.base.encode(after.text)
    try:
        found = {path: disk.read(workspace.guard, path) for path in (before.path, after.path)}
        expected = {path: None if each is None else sha256(each.data) for path, each in found.items()}
        todo = [disk.Replacement(after.path, expected[after.path], data, file.base.mode)]
        if after.path != before.path:
            gone = disk.Replacement(before.path, expected[before.path], None)
            todo = (
                [gone] if expected[after.path] else [disk.Replacement(after.path, None, data, like=before.path), gone]
            )
        disk.replace(workspace.guard, todo)
    except (ToolError, disk.BaseChanged):
        return "other"
    return "after"


def _open(workspace: Workspace, file: LiveFile) -> bool:
    """An editor has it: it is not written behind its back."""
    return workspace.find(file.base.path) is not None
