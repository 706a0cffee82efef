"""Changes to files that an editor has open: made in its document, and taken back there."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.text_plan import TextPlan, changed_message
from amanu.text.span_edits import SpanEdit
from amanu.workspace.overlay import Buffer, Editor
from amanu.workspace.text_file import sha256
from amanu.workspace.workspace import Workspace

CLOSED = "The file was closed in the editor at that moment. Try again."


async def write_in_editor(workspace: Workspace, plan: TextPlan) -> None:
    """Have the editor make the change. Raises `ToolError` if it does not."""
    assert plan.current is not None and plan.new_version.text is not None
    document = await _open_document(workspace, plan.old_version.path, plan.current.text)
    if document is None:  # closed just now: what it held is on disk, or was dropped
        raise ToolError(CLOSED)
    editor, buffer = document
    edits = await asyncio.to_thread(plan.file.pending_edits)
    result = await editor.apply(
        buffer.path, plan.current.sha256, edits, plan.new_version.text, save=not plan.current.unsaved
    )
    if result.status == "success":
        plan.file.unsaved = not result.saved
        if result.version is not None and result.sha256 in (None, plan.new_sha256):
            plan.file.base = replace(plan.file.base, version=result.version)
        return
    reasons = {"conflict": changed_message(workspace, plan.old_version.path), "notOpen": CLOSED}
    message = result.message or "the editor did not make the change."
    raise ToolError(reasons.get(result.status, f"{editor.name or 'The editor'}: {message}"))


async def take_back_in_editor(workspace: Workspace, plan: TextPlan) -> bool:
    """Have the editor take its change back. Returns whether it did; if not, the former text is not there."""
    assert plan.old_version.text is not None and plan.new_version.text is not None
    document = await _open_document(workspace, plan.old_version.path, plan.new_version.text)
    if document is None or plan.current is None:
        return False
    editor, buffer = document
    current_sha256 = sha256(plan.new_version.text.encode("utf-8", "surrogatepass"))
    edits = _inverse(plan.file.pending_edits(), plan.old_version.text)
    result = await editor.apply(
        buffer.path, current_sha256, edits, plan.old_version.text, save=not plan.current.unsaved
    )
    return result.status == "success"


async def _open_document(workspace: Workspace, path: Path, text: str) -> tuple[Editor, Buffer] | None:
    """See `Workspace.find_open`. The answer of an editor that must be asked may be out of date, because its user saved
    meanwhile, so it is asked again."""
    document = workspace.find_open(path, text)
    if document is None:
        await workspace.overlay.refresh(path)
        document = workspace.find_open(path, text)
    return document


def _inverse(edits: Sequence[SpanEdit], text: str) -> list[SpanEdit]:
    """The edits that take these edits of `text` back."""
    inverse: list[SpanEdit] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        inverse.append(SpanEdit(start=start, end=start + len(edit.new_text), new_text=text[edit.start : edit.end]))
        shift += len(edit.new_text) - (edit.end - edit.start)
    return inverse
