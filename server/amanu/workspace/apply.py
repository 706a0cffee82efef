"""Accepted hunks → the file: through the editor that has it open, else on disk.

A change is made only to the exact text it was computed from. What does not fit any more, or cannot be written,
becomes `conflicted` with the reason; nothing is overwritten and nothing is tried twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.tools.base import ToolError
from amanu.workspace import disk
from amanu.workspace.draft import DraftFile
from amanu.workspace.files import FileText, sha256, survives
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import HunkState

MOVED = "The file changed after this was proposed. Read it again before proposing anew."

SavePreimage = Callable[[str, Path, bytes | None, int | None], Awaitable[None]]
"""(turn id, path, bytes, permission bits); durable when it returns."""


@dataclass(frozen=True)
class _Plan:
    """What is to be written to one file, found right by looking at what it says now."""

    file: DraftFile
    now: FileText | None
    target: str


async def apply(workspace: Workspace, files: Sequence[DraftFile], save: SavePreimage, turn_id: str) -> None:
    """Bring the accepted hunks of these files to the files, setting each hunk `applied` or `conflicted`.

    Files on disk are written all or none; one that moved in between does not hold up the others."""
    on_disk: list[_Plan] = []
    in_editor: list[_Plan] = []
    for file in files:
        try:
            plan = await _plan(workspace, file)
        except ToolError as error:
            settle(file, "conflicted", str(error))
            continue
        if plan is not None:
            by_editor = plan.now is not None and _by_editor(plan.now, plan)
            (in_editor if by_editor else on_disk).append(plan)
    for plan in (*on_disk, *in_editor):
        before = None if plan.now is None else plan.now.encode(plan.now.text)
        await save(turn_id, plan.file.base.path, before, None if plan.now is None else plan.now.mode)
    await _write(workspace, on_disk)
    for plan in in_editor:
        await _edit(workspace, plan)


def settle(file: DraftFile, state: HunkState, reason: str | None = None) -> None:
    """Give every accepted hunk of the file that state."""
    for hunk in list(file.hunks):
        if hunk.state == "accepted":
            file.put(hunk.hunk_id, state=state, reason=reason)


async def _plan(workspace: Workspace, file: DraftFile) -> _Plan | None:
    """None when there is nothing to do any more: settled already."""
    now = await workspace.look(file.base.path)
    expected, target = file.having("applied"), file.having("applied", "accepted")
    deletes = file.delete and target == ""
    if deletes and now is None:
        settle(file, "applied")
    elif now is not None and now.text == target and not deletes:
        file.unsaved = now.unsaved
        settle(file, "applied")  # a crash came after the write, or somebody did the same
    elif (now is None) != (file.change == "create"):
        gone = "The file is no longer there." if now is None else "A file of that name was made meanwhile."
        settle(file, "conflicted", gone)
    elif now is not None and (now.text != expected or _other_bytes(now, file)):
        settle(file, "conflicted", MOVED)
    elif now is not None and now.lossy:
        settle(file, "conflicted", lossy(workspace, now))
    elif deletes and now is not None and now.unsaved:
        settle(file, "conflicted", "The file has unsaved changes in the editor; it was not deleted.")
    else:
        if now is not None:
            now.encode(target)
        return _Plan(file, now, target)
    return None


def lossy(workspace: Workspace, now: FileText) -> str:
    """Why such a file cannot be edited at the moment."""
    return (
        f"{workspace.shown(now.path)} has unsaved changes in the editor and its bytes on disk (encoding "
        f"{now.encoding}, line ends) would not survive a change through it. Ask the person to save it first."
    )


def _other_bytes(now: FileText, file: DraftFile) -> bool:
    """The same text, but in other bytes than those the change was computed from."""
    return not file.base.from_buffer and now.encoding != file.base.encoding


def _by_editor(now: FileText, plan: _Plan) -> bool:
    if not now.from_buffer or (plan.file.delete and plan.target == ""):
        return False
    return now.unsaved or survives(plan.target, now.encoding)


async def _write(workspace: Workspace, plans: list[_Plan]) -> None:
    while plans:
        try:
            await workspace.replace([_replacement(plan) for plan in plans])
        except disk.Moved as moved:
            for plan in [each for each in plans if each.file.base.path == moved.path]:
                settle(plan.file, "conflicted", MOVED)
                plans.remove(plan)
        except ToolError as error:
            for plan in plans:
                settle(plan.file, "conflicted", str(error))
            return
        else:
            for plan in plans:
                plan.file.unsaved = False
                settle(plan.file, "applied")
                _seen(workspace, plan)
            return


def _seen(workspace: Workspace, plan: _Plan) -> None:
    gone = plan.file.delete and plan.target == ""
    workspace.seen.edited(plan.file.base.path, plan.now, None if gone else plan.target)


def _replacement(plan: _Plan) -> disk.Replacement:
    path = plan.file.base.path
    if plan.now is None:
        return disk.Replacement(path, None, plan.file.base.encode(plan.target))
    data = None if plan.file.delete and plan.target == "" else plan.now.encode(plan.target)
    return disk.Replacement(path, sha256(plan.now.encode(plan.now.text)), data)


async def _edit(workspace: Workspace, plan: _Plan) -> None:
    found = workspace.find(plan.file.base.path, plan.now and plan.now.text)
    if found is None or plan.now is None:  # closed just now: what it held is on disk, or was dropped
        settle(plan.file, "conflicted", "The file was closed in the editor at that moment. Try again.")
        return
    editor, buffer = found
    result = await editor.apply(buffer.path, plan.now.sha256, plan.file.edits(), plan.target, save=not plan.now.unsaved)
    if result.status == "success":
        plan.file.unsaved = not result.saved
        settle(plan.file, "applied")
        _seen(workspace, plan)
        return
    why = {"conflict": MOVED, "notOpen": "The file was closed in the editor at that moment. Try again."}
    told = result.message or "the editor did not make the change."
    settle(plan.file, "conflicted", why.get(result.status, f"{editor.name or 'The editor'}: {told}"))
