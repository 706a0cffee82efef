"""A file of which the user discards all that was applied to it, by several proposals.

Each proposal by itself tells what became of its own lines. Where edits lie next to each other, or one on top of
another, only all of them together tell that the file is as it was before the first. Without effect, CPU-bound.
"""

from collections.abc import Sequence
from dataclasses import replace

from amanu.proposals.model import STATES_AFTER, UNDONE_IN_FILE, LiveFile
from amanu.proposals.reanchor import nothing_left, reanchor
from amanu.proposals.undo import mark_hunks
from amanu.workspace.text_file import FileText
from amanu_protocol.items import Hunk


def may_be_discarded(file: LiveFile, current: FileText) -> bool:
    """Whether it is worth looking: nothing of the newest one is left."""
    hunks = [hunk for hunk in file.hunks if _is_unreviewed(hunk)]
    return bool(hunks) and all(nothing_left(hunk.old_text, hunk.new_text, current.text) for hunk in hunks)


def all_discarded(files: Sequence[LiveFile], previous: FileText, current: FileText) -> list[LiveFile] | None:
    """The files, which are of one path and newest first, if the text became the current one by taking back all of them
    that is not reviewed, or all that is applied; None if it did not."""
    for with_reviewed in (False, True):
        found = _taken_back(files, previous, current, with_reviewed=with_reviewed)
        if found is not None:
            return found
    return None


def _taken_back(
    files: Sequence[LiveFile], previous: FileText, current: FileText, *, with_reviewed: bool
) -> list[LiveFile] | None:
    text = previous
    marked: list[LiveFile] = []
    for file in files:
        ids = [hunk.hunk_id for hunk in file.hunks if hunk.state == "applied" and (with_reviewed or not hunk.reviewed)]
        result = mark_hunks(file, text, ids)
        if result.reasons:
            return None
        marked.append(result.file)
        text = text.with_text(result.file.text_with(*STATES_AFTER))
    if text.text != current.text:
        return None
    return [_reverted(file, current) for file in marked]


def _reverted(marked: LiveFile, current: FileText) -> LiveFile:
    file = replace(marked, hunks=list(marked.hunks), anchor=None)
    for hunk in marked.hunks:
        if hunk.state == "undoing" or (hunk.state == "reverted" and hunk.reason is None):
            file.update_hunk(hunk.hunk_id, state="reverted", reason=UNDONE_IN_FILE)
    moved = reanchor(file, current, by_user=False)
    if moved is not None:
        moved.write_to(file)
    return file


def _is_unreviewed(hunk: Hunk) -> bool:
    return hunk.state == "applied" and not hunk.reviewed
