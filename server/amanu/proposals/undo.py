"""Take applied hunks back, and apply them again: ours and only ours, whatever the user typed since.

Where a hunk's lines are by now says `reanchor.py`. What the user changed in them is kept: the way back is merged with
it, line by line, and where both meet the hunk stays as it is and says why. Everything here works on a copy and has no
effect; what is marked `undoing` or `accepted` in it is then applied like any other decision.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from amanu.proposals.merge import merge
from amanu.proposals.model import LiveFile
from amanu.proposals.places import LiveHunk
from amanu.proposals.reanchor import reanchor
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.base import LineRange

FILE_MISSING = "The file is no longer there."
FILE_EXISTS = "There is a file of that name again."
LINES_CHANGED_SINCE = "These lines were changed since."
REMOVED_LATER = "A later edit took these lines out. Take that one back first."
CHANGED_SINCE_CREATED = "The file has changed since Amanu created it."
LINES_LOST = "The file was changed so that nobody can say where these lines are."


@dataclass
class UndoResult:
    """A copy of the file with its hunks marked, and those that were left as they are, with the reason."""

    file: LiveFile
    reasons: dict[str, str] = field(default_factory=dict[str, str])


def mark_hunks(
    file: LiveFile,
    current: FileText | None,
    undo_ids: Collection[str] = (),
    redo_ids: Collection[str] = (),
    removed_texts: Collection[str] = (),
) -> UndoResult:
    """Those of the hunks `back` that are applied become `undoing`, those of `again` that were taken back or rejected
    become `accepted`. `now` is what stands where the file is by our account, `taken` what other applied hunks took out
    of it. CPU-bound; for big files run it in a thread."""
    turned = _reanchored_copy(file, current)
    lost = turned.reasons.pop("", None)
    base, lines = turned.file.base, split_lines(turned.file.base.text)
    for hunk_id in [hunk.hunk_id for hunk in turned.file.hunks]:
        hunk = turned.file.hunk(hunk_id)  # another may have moved it
        if base is not turned.file.base:
            base = turned.file.base
            lines = split_lines(base.text)
        if hunk_id in undo_ids and hunk.state == "applied":
            why = lost or _mark_undo(turned.file, current, hunk, removed_texts)
        elif hunk_id in redo_ids and hunk.state in ("reverted", "rejected"):
            why = lost or _mark_redo(turned.file, lines, hunk)
        else:
            continue
        if why:
            turned.reasons[hunk_id] = why
            turned.file.update_hunk(hunk_id, reason=why)
    return turned


def _reanchored_copy(file: LiveFile, current: FileText | None) -> UndoResult:
    """The file moved to the text as it is now. `left` has a reason under "" when that cannot be."""
    copy = replace(file, hunks=list(file.hunks))
    if file.change != "edit":
        return UndoResult(copy)
    if current is None:
        return UndoResult(copy, {"": FILE_MISSING})
    current = current.read_as(file.base.encoding)
    moved = reanchor(copy, current, by_user=False)
    if moved is not None:
        moved.write_to(copy)
    return UndoResult(copy, {} if copy.text_with("applied") == current.text else {"": LINES_LOST})


def _mark_undo(file: LiveFile, current: FileText | None, hunk: LiveHunk, removed_texts: Collection[str]) -> str:
    match file.change:
        case "create" if current is None:
            if hunk.new_text and hunk.new_text in removed_texts:
                return REMOVED_LATER
            file.update_hunk(hunk.hunk_id, state="reverted", reason=None)
            return ""
        case "create" if current is not None and current.text != hunk.new_text:
            return CHANGED_SINCE_CREATED
        case "delete" if current is not None and (current.exists or current.text != hunk.old_text):
            return FILE_EXISTS  # an editor that still shows what is gone is none
        case "rename":
            if current is None:
                return FILE_MISSING
            hunk = hunk.model_copy(
                update={"new_text": current.text, "applied_text": hunk.applied_text or hunk.new_text}
            )
        case _:
            pass
    if hunk.applied_text is not None:
        if hunk.new_text == hunk.old_text and file.change == "edit":  # the user did it already
            if hunk.applied_text and any(hunk.applied_text in text for text in removed_texts):
                return REMOVED_LATER
            file.update_hunk(hunk.hunk_id, state="reverted", new_text=hunk.applied_text, applied_text=None, reason=None)
            return ""
        merged = merge(hunk.applied_text, hunk.old_text, hunk.new_text)
        if merged is None:
            return LINES_CHANGED_SINCE
        file.update_hunk(hunk.hunk_id, new_text=hunk.new_text, applied_text=None)
        _rebase_hunk(file, hunk.hunk_id, merged)
    file.update_hunk(hunk.hunk_id, state="undoing", reason=None)
    return ""


def _mark_redo(file: LiveFile, base: Sequence[str], hunk: LiveHunk) -> str:
    if file.change == "edit":
        current_text = "".join(base[hunk.base_lines.start : hunk.base_lines.end])
        text = merge(hunk.old_text, hunk.new_text, current_text)
        if text is None:
            return LINES_CHANGED_SINCE
        if current_text != hunk.old_text:
            file.update_hunk(hunk.hunk_id, old_text=current_text, new_text=text)
    file.update_hunk(hunk.hunk_id, state="accepted", reason=None, reviewed=True)
    return ""


def _rebase_hunk(file: LiveFile, hunk_id: str, old_text: str) -> None:
    """That hunk starts from another text: what the user made of its lines belongs to the base."""
    lines = list(split_lines(file.base.text))
    hunks: list[LiveHunk] = []
    shift = 0
    for hunk in file.hunks:
        start, count = hunk.base_lines.start + shift, hunk.base_lines.count
        if hunk.hunk_id == hunk_id:
            own_lines = split_lines(old_text)
            lines[start : start + count] = own_lines
            shift += len(own_lines) - count
            count = len(own_lines)
            hunk = hunk.model_copy(update={"old_text": old_text})
        hunks.append(hunk.model_copy(update={"base_lines": LineRange(start=start, end=start + count)}))
    file.rebase("".join(lines), hunks)
