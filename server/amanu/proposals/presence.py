"""Files that the user's own hand removes or brings back: `git checkout`, `git stash`, `git clean`, `rm`, an editor.

An applied change whose file is gone is no longer there to be reviewed; an open one has nothing to be applied to, and
waits no more. Both say why, and are as they were before once the file is back: an editor that saves by deleting first,
a branch and back, must lose nothing. What happens within a file `reanchor.py` finds out.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from amanu.proposals.model import FILE_GONE, LINES_CHANGED, UNDONE_IN_FILE, LiveFile
from amanu.proposals.rows import LiveRow
from amanu.workspace.text_file import FileText
from amanu_protocol.items import Hunk, HunkState, Row

FILE_DELETED = "The file was deleted."
FILE_BACK = "The file is as it was before it."
"""A deletion or a move."""
WHOLE_FILE: Collection[str | None] = (FILE_DELETED, FILE_BACK)
ROW_BACK = "What is there is as it was before it."
ROW_GONE = "What it made was deleted."
ROW_CHANGED = "What it made was changed since."
ROW_REASONS: Collection[str | None] = (ROW_BACK, ROW_GONE, ROW_CHANGED)
BY_HAND: Collection[str | None] = (*WHOLE_FILE, *ROW_REASONS, UNDONE_IN_FILE)
"""Reasons of what nobody decided: it is applied, or open, again when the file is as it was."""

RowStanding = Literal["before", "after", "between", "other"]
Standing = Literal["there", "deleted", "back", "other"]
"""The file of an applied change: there with it · gone · as it was before it · another one."""


@dataclass(frozen=True)
class Presence:
    """The present content of a file's two paths."""

    text: FileText | None
    moved: FileText | None = None


def follow_presence(file: LiveFile, presence: Presence, *, asked: Callable[[], bool], decided: bool) -> bool:
    """Let its hunks follow the file as a whole. `asked`: whether a question about them is open, so that what is
    undecided stays so; only of a deleted file that must be known. `decided`: somebody decides about them right now, who
    is to hear that the file is gone. Returns whether that changed any."""
    standing = _standing(file, presence)
    is_kept_open = standing == "deleted" and (decided or asked())
    changed = False
    for hunk in list(file.hunks):
        if decided and hunk.state == "applied" and standing == "deleted":
            continue  # else an undo would take it for undone
        if (change := _followed(file, hunk, standing, is_kept_open=is_kept_open)) is not None:
            state, reason = change
            file.update_hunk(hunk.hunk_id, state=state, reason=reason, reviewed=False)
            changed = True
    return changed


def follows_hand(row: LiveRow | Row) -> bool:
    """Whether the row may have to follow the user's hand. What becomes of commits git says."""
    is_applied = row.state == "applied" and not row.reviewed
    kind = row.kind if isinstance(row, Row) else row.change.kind
    return kind != "git" and (is_applied or (row.state == "reverted" and row.reason in ROW_REASONS))


def follow_row(row: LiveRow, standing: RowStanding, *, is_there: bool) -> bool:
    """Let an applied row follow what is at its path now (`is_there`: anything). Returns whether that changed it."""
    if row.change.is_tree and is_there:
        standing = "after"  # what is in a folder may come and go
    before = row.state, row.reason
    if standing == "after":
        if row.state != "applied":  # one that is applied still may say why it could not be undone
            row.state, row.reason = "applied", None
    elif row.state == "applied":
        gone = ROW_CHANGED if is_there or row.change.after is None else ROW_GONE
        row.state, row.reason = "reverted", ROW_BACK if standing == "before" and is_there else gone
    return (row.state, row.reason) != before


def waits_for_file(hunks: Iterable[Hunk]) -> bool:
    """Whether one of them is in conflict only because its file is gone."""
    return any(hunk.state == "conflicted" and hunk.reason == FILE_GONE for hunk in hunks)


def _followed(
    file: LiveFile, hunk: Hunk, standing: Standing, *, is_kept_open: bool
) -> tuple[HunkState, str | None] | None:
    match hunk.state, standing:
        case "applied", ("deleted" | "back") if not hunk.reviewed:
            return "reverted", FILE_DELETED if standing == "deleted" else FILE_BACK
        case "reverted", "there" if hunk.reason in WHOLE_FILE:
            return "applied", None
        case (("pending" | "conflicted"), "deleted") if not is_kept_open and file.change in ("edit", "rename"):
            return "rejected", FILE_DELETED
        case "rejected", ("there" | "back") if hunk.reason == FILE_DELETED:
            is_blocked = hunk.hunk_id in file.conflicting
            return ("conflicted", LINES_CHANGED) if is_blocked else ("pending", None)
        case _:
            return None


def _standing(file: LiveFile, presence: Presence) -> Standing:
    is_there, is_moved = presence.text is not None, presence.moved is not None
    match file.change:
        case "edit":
            return "there" if is_there else "deleted"
        case "create" if presence.text is not None:
            is_other = presence.text.text != file.text_with("applied", "reverted")
            return "other" if is_other and _was_deleted(file) else "there"
        case "create":
            return "deleted"
        case "delete":
            return "back" if is_there else "there"
        case "rename":
            return "there" if is_moved else "back" if is_there else "deleted"


def _was_deleted(file: LiveFile) -> bool:
    return any(hunk.reason == FILE_DELETED for hunk in file.hunks)
