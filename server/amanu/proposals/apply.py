"""What was decided → the files: through the editor that has one open, else on disk; all of them or none.

A change is made only to the exact text it was computed from. When one file does not fit any more, or cannot be
written, none of them changes: its hunks are in conflict and say why, the others are open again and name it. Nothing is
overwritten and nothing is tried twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.model import (
    FILE_CHANGED,
    FILE_GONE,
    FILE_MADE,
    STATES_AFTER,
    STATES_BEFORE,
    FileVersion,
    LiveFile,
)
from amanu.workspace import disk
from amanu.workspace.overlay import Buffer, Editor
from amanu.workspace.shown_files import ShownFiles
from amanu.workspace.text_file import FileText, same_bytes, sha256, survives
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import HunkState
from amanu_protocol.requests import TextEdit

_SAVE_ONE = "Save it in one of them and close it in the others, then accept the change again."
CLOSED = "The file was closed in the editor at that moment. Try again."

SavePreimage = Callable[[str, Path, bytes | None, int | None], Awaitable[None]]
"""(turn id, path, bytes, permission bits); durable when it returns."""


@dataclass(frozen=True)
class _Plan:
    """What is to be done to one file, found right by looking at what it says now."""

    file: LiveFile
    current: FileText | None
    old_version: FileVersion
    new_version: FileVersion
    old_bytes: bytes | None
    new_bytes: bytes | None
    """The file before and after, as it is on disk; None where there is none."""
    new_sha256: str | None
    """Of the new text in UTF-8."""


class _Refused(Exception):
    """That file cannot be changed, for this reason."""

    def __init__(self, file: LiveFile, why: str) -> None:
        super().__init__(why)
        self.file = file


async def apply(
    workspace: Workspace,
    files: Sequence[LiveFile],
    save_preimage: SavePreimage,
    turn_id: str,
    shown_files: ShownFiles,
) -> list[Path]:
    """Bring accepted hunks to these files and take back those that are `undoing`; all are settled when this returns.
    Returns the paths that changed. `shown_files`: of the agent whose edits they are.

    Editors come first: once a file on disk is changed, only the disk is left, and what a crash interrupts can be
    finished (`crash_recovery.py`)."""
    in_editor: list[_Plan] = []
    try:
        plans = await _plans_for(workspace, files)
        for plan in plans:
            mode = None if plan.current is None else plan.current.mode
            await save_preimage(turn_id, plan.old_version.path, plan.old_bytes, mode)
        for plan in plans:
            if _is_written_by_editor(plan):
                await _write_in_editor(workspace, plan)
                in_editor.append(plan)
        await _write_on_disk(workspace, [plan for plan in plans if not _is_written_by_editor(plan)])
    except _Refused as refused:
        for plan in reversed(in_editor):
            await _undo_in_editor(workspace, plan)
        settle(refused.file, succeeded=False, reason=str(refused))
        failed_path = workspace.display_path(refused.file.path_with(STATES_BEFORE))
        for file in files:
            leave_open(file, f"{failed_path} failed, so nothing was applied. {refused}")
        return []
    else:
        for plan in plans:
            settle(plan.file, succeeded=True)
            _note_shown(workspace, plan, shown_files)
        return [version.path for plan in plans for version in (plan.old_version, plan.new_version)]


def _note_shown(workspace: Workspace, plan: _Plan, shown_files: ShownFiles) -> None:
    if plan.old_version.path == workspace.guard.memory:  # told with the next prompt; no tool reads it again
        return
    moves = plan.new_version.path != plan.old_version.path
    shown_files.edited(plan.old_version.path, plan.current, None if moves else plan.new_sha256)
    if moves:
        shown_files.edited(plan.new_version.path, None, plan.new_sha256)


def settle(file: LiveFile, *, succeeded: bool, reason: str | None = None) -> None:
    """Everything that was to be done to the file is done, or is not, for that reason."""
    states: dict[HunkState, HunkState] = (
        {"accepted": "applied", "undoing": "reverted"}
        if succeeded
        else {"accepted": "conflicted", "undoing": "applied"}
    )
    for hunk in list(file.hunks):
        if hunk.state in states:
            file.update_hunk(hunk.hunk_id, state=states[hunk.state], reason=reason)


def _changed_message(workspace: Workspace, path: Path) -> str:
    """Why a change does not fit the file any more. Where editors disagree about it, reading it again does not help."""
    if len({buffer.text for _, buffer in workspace.overlay.documents(path)}) > 1:
        return f"{workspace.display_path(path)} is open in several editors with different text. {_SAVE_ONE}"
    return FILE_CHANGED


def leave_open(file: LiveFile, reason: str) -> None:
    """Another file of the decision was in the way: what was to be done to this one is undecided again."""
    for hunk in list(file.hunks):
        if hunk.state == "accepted":
            file.update_hunk(hunk.hunk_id, state="pending", reason=reason, reviewed=False)
        elif hunk.state == "undoing":
            file.update_hunk(hunk.hunk_id, state="applied", reason=reason)


def lossy_message(workspace: Workspace, current: FileText) -> str:
    """Why such a file cannot be edited at the moment."""
    return (
        f"{workspace.display_path(current.path)} has unsaved changes in the editor and its bytes on disk (encoding "
        f"{current.encoding}, line ends) would not survive a change through it. Ask the user to save it first."
    )


async def _plans_for(workspace: Workspace, files: Sequence[LiveFile]) -> list[_Plan]:
    """Of the files that are not yet as they should be. Raises `_Refused`."""
    plans: list[_Plan] = []
    for file in files:
        try:
            plan = await _plan(workspace, file)
        except ToolError as error:
            raise _Refused(file, str(error)) from None
        if plan is None:
            settle(file, succeeded=True)
        else:
            plans.append(plan)
    return plans


async def _plan(workspace: Workspace, file: LiveFile) -> _Plan | None:
    """None when the file is already as it should be: a crash came after the write, or somebody did the same. Raises
    `ToolError` when it is neither that nor what the change was computed from."""
    old_version, new_version = await asyncio.to_thread(
        lambda: (file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER))
    )
    current = await workspace.read_to_edit(old_version.path)
    moves = new_version.path != old_version.path
    target = await workspace.read_to_edit(new_version.path) if moves else current
    if _text_of(target) == new_version.text and not (moves and current is not None):
        if target is None or target.exists or old_version.text is not None:
            file.unsaved = target is not None and target.unsaved
            return None
        current = None  # an editor shows it, but it is on no disk, as of a file that was deleted and is wanted again
    if (current is None) != (old_version.text is None):
        raise ToolError(FILE_GONE if current is None else FILE_MADE)
    if moves and target is not None:
        raise ToolError(target_made(workspace, new_version.path))
    if current is not None:
        if current.text != old_version.text or _has_other_encoding(current, file):
            raise ToolError(_changed_message(workspace, old_version.path))
        if current.lossy:
            raise ToolError(lossy_message(workspace, current))
        if current.unsaved and (moves or new_version.text is None):
            verb = "moved" if moves else "deleted"
            raise ToolError(f"The file has unsaved changes in the editor; it was not {verb}.")
    return await asyncio.to_thread(_encoded_plan, file, current, old_version, new_version)


def _encoded_plan(
    file: LiveFile, current: FileText | None, old_version: FileVersion, new_version: FileVersion
) -> _Plan:
    """Raises `ToolError` when the file's encoding cannot hold the new text."""
    text = new_version.text
    for hunk in file.hunks:
        if hunk.state == "accepted" and hunk.edited_by_user:  # of the model's own text that was checked before
            (current or file.base).with_text(hunk.old_text).check_new(hunk.new_text)
    return _Plan(
        file,
        current,
        old_version,
        new_version,
        None if current is None else current.encode(current.text),
        None if text is None else (current or file.base).encode(text),
        None if text is None else sha256(text.encode("utf-8", "surrogatepass")),
    )


def target_made(workspace: Workspace, path: Path) -> str:
    """Why no file can be moved to that path."""
    return f"There is a file {workspace.display_path(path)} now."


def _text_of(current: FileText | None) -> str | None:
    return None if current is None else current.text


def _has_other_encoding(current: FileText, file: LiveFile) -> bool:
    """The same text, but in other bytes than those the change was computed from."""
    return not file.base.from_buffer and not same_bytes(current.encoding, file.base.encoding)


def _is_written_by_editor(plan: _Plan) -> bool:
    if (
        plan.current is None
        or not plan.current.from_buffer
        or plan.new_version.text is None
        or plan.new_version.path != plan.old_version.path
    ):
        return False
    return plan.current.unsaved or survives(plan.new_version.text, plan.current.encoding)


async def _write_on_disk(workspace: Workspace, plans: Sequence[_Plan]) -> None:
    try:
        await workspace.replace([each for plan in plans for each in _replacements(plan)])
    except (disk.BaseChanged, disk.NotWritten) as error:
        failed_plan = next(each for each in plans if error.path in (each.old_version.path, each.new_version.path))
        raise _Refused(failed_plan.file, FILE_CHANGED if isinstance(error, disk.BaseChanged) else str(error)) from None
    for plan in plans:
        plan.file.unsaved = False


def _replacements(plan: _Plan) -> list[disk.Replacement]:
    old_path, new_path = plan.old_version.path, plan.new_version.path
    if plan.old_bytes is None:
        return [disk.Replacement(new_path, None, plan.new_bytes, plan.file.base.mode)]
    if new_path == old_path:
        return [disk.Replacement(new_path, plan.old_bytes, plan.new_bytes)]
    return [
        disk.Replacement(new_path, None, plan.new_bytes, like=old_path),
        disk.Replacement(old_path, plan.old_bytes, None),
    ]


async def _write_in_editor(workspace: Workspace, plan: _Plan) -> None:
    """Raises `_Refused` when the editor did not make the change."""
    assert plan.current is not None and plan.new_version.text is not None
    document = await _open_document(workspace, plan.old_version.path, plan.current.text)
    if document is None:  # closed just now: what it held is on disk, or was dropped
        raise _Refused(plan.file, CLOSED)
    editor, buffer = document
    edits = await asyncio.to_thread(plan.file.pending_edits)
    result = await editor.apply(
        buffer.path, plan.current.sha256, edits, plan.new_version.text, save=not plan.current.unsaved
    )
    if result.status == "success":
        plan.file.unsaved = not result.saved
        return
    reasons = {"conflict": _changed_message(workspace, plan.old_version.path), "notOpen": CLOSED}
    message = result.message or "the editor did not make the change."
    raise _Refused(plan.file, reasons.get(result.status, f"{editor.name or 'The editor'}: {message}"))


async def _undo_in_editor(workspace: Workspace, plan: _Plan) -> None:
    """Another file failed: take this one back in its editor. Where that fails too it stays, and says that it is there:
    the user can undo it."""
    assert plan.old_version.text is not None and plan.new_version.text is not None
    document = await _open_document(workspace, plan.old_version.path, plan.new_version.text)
    if document is not None and plan.current is not None:
        editor, buffer = document
        current_sha256 = sha256(plan.new_version.text.encode("utf-8", "surrogatepass"))
        edits = _inverse(plan.file.pending_edits(), plan.old_version.text)
        result = await editor.apply(
            buffer.path, current_sha256, edits, plan.old_version.text, save=not plan.current.unsaved
        )
        if result.status == "success":
            return
    settle(plan.file, succeeded=True)


async def _open_document(workspace: Workspace, path: Path, text: str) -> tuple[Editor, Buffer] | None:
    """See `Workspace.find_open`. What an editor that must be asked said may not count any more, because its user saved
    meanwhile; it is asked again."""
    document = workspace.find_open(path, text)
    if document is None:
        await workspace.overlay.refresh(path)
        document = workspace.find_open(path, text)
    return document


def _inverse(edits: Sequence[TextEdit], text: str) -> list[TextEdit]:
    """What takes these edits of `text` back."""
    inverse: list[TextEdit] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        inverse.append(TextEdit(start=start, end=start + len(edit.new_text), new_text=text[edit.start : edit.end]))
        shift += len(edit.new_text) - (edit.end - edit.start)
    return inverse
