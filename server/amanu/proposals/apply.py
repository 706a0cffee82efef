"""What was decided → the files: through the editor that has one open, else on disk; all of them or none.

A change is made only to the exact text it was computed from. When one file does not fit any more, or cannot be
written, none of them changes: its hunks say why, the others that they waited for it. Nothing is overwritten and nothing
is tried twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.model import AFTER, BEFORE, MOVED, FileVersion, LiveFile
from amanu.workspace import disk
from amanu.workspace.text_file import FileText, sha256, survives
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import HunkState
from amanu_protocol.requests import TextEdit

CLOSED = "The file was closed in the editor at that moment. Try again."

SavePreimage = Callable[[str, Path, bytes | None, int | None], Awaitable[None]]
"""(turn id, path, bytes, permission bits); durable when it returns."""


@dataclass(frozen=True)
class _Plan:
    """What is to be done to one file, found right by looking at what it says now."""

    file: LiveFile
    now: FileText | None
    before: FileVersion
    after: FileVersion


class _Refused(Exception):
    """That file cannot be changed, for this reason."""

    def __init__(self, file: LiveFile, why: str) -> None:
        super().__init__(why)
        self.file = file


async def apply(workspace: Workspace, files: Sequence[LiveFile], save: SavePreimage, turn_id: str) -> None:
    """Bring accepted hunks to these files and take back those that are `undoing`; all are settled when this returns.

    Editors come first: once a file on disk is changed, only the disk is left, and what a crash interrupts can be
    finished (`crash_recovery.py`)."""
    in_editor: list[_Plan] = []
    try:
        plans = await _plans(workspace, files)
        for plan in plans:
            before = None if plan.now is None else await asyncio.to_thread(plan.now.encode, plan.now.text)
            await save(turn_id, plan.before.path, before, None if plan.now is None else plan.now.mode)
        for plan in plans:
            if _by_editor(plan):
                await _edit(workspace, plan)
                in_editor.append(plan)
        await _write(workspace, [plan for plan in plans if not _by_editor(plan)])
    except _Refused as refused:
        for plan in reversed(in_editor):
            await _reverse(workspace, plan)
        shown = workspace.shown(refused.file.place(BEFORE))
        for file in files:
            own = file is refused.file
            settle(file, done=False, reason=str(refused) if own else f"Not done alone: {shown} failed. {refused}")
    else:
        for plan in plans:
            settle(plan.file, done=True)
            _seen(workspace, plan)


def _seen(workspace: Workspace, plan: _Plan) -> None:
    moves = plan.after.path != plan.before.path
    workspace.seen.edited(plan.before.path, plan.now, None if moves else plan.after.text)
    if moves:
        workspace.seen.edited(plan.after.path, None, plan.after.text)


def settle(file: LiveFile, *, done: bool, reason: str | None = None) -> None:
    """Everything that was to be done to the file is done, or is not, for that reason."""
    states: dict[HunkState, HunkState] = (
        {"accepted": "applied", "undoing": "reverted"} if done else {"accepted": "conflicted", "undoing": "applied"}
    )
    for hunk in list(file.hunks):
        if hunk.state in states:
            file.put(hunk.hunk_id, state=states[hunk.state], reason=reason)


def lossy(workspace: Workspace, now: FileText) -> str:
    """Why such a file cannot be edited at the moment."""
    return (
        f"{workspace.shown(now.path)} has unsaved changes in the editor and its bytes on disk (encoding "
        f"{now.encoding}, line ends) would not survive a change through it. Ask the user to save it first."
    )


async def _plans(workspace: Workspace, files: Sequence[LiveFile]) -> list[_Plan]:
    """Of the files that are not yet as they shall be. Raises `_Refused`."""
    plans: list[_Plan] = []
    for file in files:
        try:
            plan = await _plan(workspace, file)
        except ToolError as error:
            raise _Refused(file, str(error)) from None
        if plan is None:
            settle(file, done=True)
        else:
            plans.append(plan)
    return plans


async def _plan(workspace: Workspace, file: LiveFile) -> _Plan | None:
    """None when the file is already as it shall be: a crash came after the write, or somebody did the same. Raises
    `ToolError` when it is neither that nor what the change was computed from."""
    before, after = await asyncio.to_thread(lambda: (file.form(BEFORE), file.form(AFTER)))
    now = await workspace.look(before.path)
    moves = after.path != before.path
    there = await workspace.look(after.path) if moves else now
    if _text(there) == after.text and not (moves and now is not None):
        if there is None or there.exists or before.text is not None:
            file.unsaved = there is not None and there.unsaved
            return None
        now = None  # an editor shows it, but it is on no disk, as of a file that was deleted and is wanted again
    if (now is None) != (before.text is None):
        raise ToolError("The file is no longer there." if now is None else "A file of that name was made meanwhile.")
    if moves and there is not None:
        raise ToolError(f"There is a file {workspace.shown(after.path)} now.")
    if now is not None:
        if now.text != before.text or _other_bytes(now, file):
            raise ToolError(MOVED)
        if now.lossy:
            raise ToolError(lossy(workspace, now))
        if now.unsaved and (moves or after.text is None):
            verb = "moved" if moves else "deleted"
            raise ToolError(f"The file has unsaved changes in the editor; it was not {verb}.")
    await asyncio.to_thread((now or file.base).encode, after.text or "")
    return _Plan(file, now, before, after)


def _text(now: FileText | None) -> str | None:
    return None if now is None else now.text


def _other_bytes(now: FileText, file: LiveFile) -> bool:
    """The same text, but in other bytes than those the change was computed from."""
    return not file.base.from_buffer and now.encoding != file.base.encoding


def _by_editor(plan: _Plan) -> bool:
    if plan.now is None or not plan.now.from_buffer or plan.after.text is None or plan.after.path != plan.before.path:
        return False
    return plan.now.unsaved or survives(plan.after.text, plan.now.encoding)


async def _write(workspace: Workspace, plans: Sequence[_Plan]) -> None:
    todo = await asyncio.to_thread(lambda: [each for plan in plans for each in _replacements(plan)])
    try:
        await workspace.replace(todo)
    except (disk.BaseChanged, disk.NotWritten) as error:
        at = next(each for each in plans if error.path in (each.before.path, each.after.path))
        raise _Refused(at.file, MOVED if isinstance(error, disk.BaseChanged) else str(error)) from None
    for plan in plans:
        plan.file.unsaved = False


def _replacements(plan: _Plan) -> list[disk.Replacement]:
    base, now, before, after = plan.file.base, plan.now, plan.before, plan.after
    data = None if after.text is None else (now or base).encode(after.text)
    if now is None:
        return [disk.Replacement(after.path, None, data, base.mode)]
    expected = sha256(now.encode(now.text))
    if after.path == before.path:
        return [disk.Replacement(after.path, expected, data)]
    return [
        disk.Replacement(after.path, None, data, like=before.path),
        disk.Replacement(before.path, expected, None),
    ]


async def _edit(workspace: Workspace, plan: _Plan) -> None:
    """Raises `_Refused` when the editor did not make the change."""
    assert plan.now is not None and plan.after.text is not None
    found = workspace.find(plan.before.path, plan.now.text)
    if found is None:  # closed just now: what it held is on disk, or was dropped
        raise _Refused(plan.file, CLOSED)
    editor, buffer = found
    edits = await asyncio.to_thread(plan.file.edits)
    result = await editor.apply(buffer.path, plan.now.sha256, edits, plan.after.text, save=not plan.now.unsaved)
    if result.status == "success":
        plan.file.unsaved = not result.saved
        return
    why = {"conflict": MOVED, "notOpen": CLOSED}
    told = result.message or "the editor did not make the change."
    raise _Refused(plan.file, why.get(result.status, f"{editor.name or 'The editor'}: {told}"))


async def _reverse(workspace: Workspace, plan: _Plan) -> None:
    """Another file failed: take this one back in its editor. Where that fails too it stays, and says that it is there:
    the user can undo it."""
    assert plan.before.text is not None and plan.after.text is not None
    found = workspace.find(plan.before.path, plan.after.text)
    if found is not None and plan.now is not None:
        editor, buffer = found
        there = sha256(plan.after.text.encode("utf-8", "surrogatepass"))
        edits = _inverse(plan.file.edits(), plan.before.text)
        result = await editor.apply(buffer.path, there, edits, plan.before.text, save=not plan.now.unsaved)
        if result.status == "success":
            return
    settle(plan.file, done=True)


def _inverse(edits: Sequence[TextEdit], text: str) -> list[TextEdit]:
    """What takes these edits of `text` back."""
    inverse: list[TextEdit] = []
    shift = 0
    for each in edits:
        start = each.start + shift
        inverse.append(TextEdit(start=start, end=start + len(each.new_text), new_text=text[each.start : each.end]))
        shift += len(each.new_text) - (each.end - each.start)
    return inverse
