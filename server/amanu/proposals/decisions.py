"""The decisions that a hunk or a row allows, and what they do to it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from amanu.proposals.model import LiveFile, LiveProposal
from amanu.proposals.places import LiveHunk
from amanu.proposals.rows import LiveRow, needs_path
from amanu.text.display import one_line
from amanu.workspace.text_file import line_end
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import HunkState
from amanu_protocol.requests import HunkDecision, RowDecision

_ALLOWED_STATES: dict[str, Collection[HunkState]] = {
    "accept": ("pending", "conflicted", "accepted", "applied"),
    "keep": ("applied",),
    "undo": ("applied", "reverted"),
    "redo": ("reverted", "rejected", "applied"),
}
_REJECTABLE_STATES: Collection[HunkState] = ("pending", "conflicted", "rejected")
_REFUSED: dict[HunkState, str] = {"rejected": "was rejected", "reverted": "was undone"}
_EDITED = "was edited in the review"


def check_decision(hunks: Mapping[str, tuple[LiveFile, LiveHunk]], decision: HunkDecision) -> None:
    """Raises `AmanuError` (proposalConflict, invalidParams) if that decision is not possible for its hunk now."""
    if decision.hunk_id not in hunks:
        raise AmanuError("proposalConflict", f"The proposal has no hunk {decision.hunk_id} any more. Look at it again.")
    state = hunks[decision.hunk_id][1].state
    if state not in _ALLOWED_STATES.get(decision.decision, _REJECTABLE_STATES):
        raise AmanuError("proposalConflict", f"Hunk {decision.hunk_id} is {_word(state)}.")
    if decision.decision == "accept" and decision.new_text and hunks[decision.hunk_id][0].delete:
        raise deletion_error()


def with_needed(
    live: LiveProposal, hunks: Sequence[HunkDecision], rows: Sequence[RowDecision]
) -> tuple[Sequence[HunkDecision], Sequence[RowDecision]]:
    """These decisions, and a yes to what the accepted rows need."""
    accepted = [decision.row_id for decision in rows if decision.decision in ("accept", "redo")]
    if not accepted:
        return hunks, rows
    named = {decision.hunk_id for decision in hunks} | {decision.row_id for decision in rows}
    needed = [each for each in live.with_needed(accepted) if each not in named]
    row_ids = {row.row_id for row in live.rows}
    more_hunks = [HunkDecision(hunk_id=each, decision="accept") for each in needed if each not in row_ids]
    more_rows = [RowDecision(row_id=each, decision="accept") for each in needed if each in row_ids]
    return [*hunks, *more_hunks], [*rows, *more_rows]


def reject_rows_without_needs(live: LiveProposal, name: Callable[[Path], str]) -> None:
    """Reject the open rows that need something that was rejected or undone, and the commits of text that the user has
    edited: such a commit would contain what is in no file. `name` words a path."""
    refused = {
        path: _REFUSED.get(hunk.state, _EDITED)
        for file, hunk in live.hunks()
        for path in (file.base.path, file.new_path)
        if path is not None and (hunk.state in _REFUSED or hunk.edited_by_user)
    }
    refused |= {path: _REFUSED[row.state] for row in live.rows if row.state in _REFUSED for path in row.change.paths}
    new = {file.made_path for file in live.files}
    for row in live.rows:
        for path, why in refused.items() if row.is_open else ():
            if path not in row.change.paths or row.change.kind == "mode":
                needs = row.is_open and needs_path(row, path, is_new_file=path in new)
                if needs and not (why == _EDITED and row.change.kind != "git"):
                    reason = f"This needs {one_line(name(path))}, which {why}."
                    row.state, row.reason, row.reviewed = "rejected", reason, True


def unmet_need(live: LiveProposal, row: LiveRow, name: Callable[[Path], str]) -> str:
    """A sentence about something that an accepted row needs and that is not applied (for a commit: not as proposed);
    "" if nothing is missing. `name` words a path."""
    if row.state != "accepted":
        return ""
    is_exact = row.change.kind == "git"
    for file, hunk in live.hunks():
        needed = [
            path
            for path in (file.base.path, file.new_path)
            if path and needs_path(row, path, is_new_file=path == file.made_path)
        ]
        if needed and (hunk.state not in ("applied", "accepted") or (is_exact and hunk.edited_by_user)):
            return f"This needs {one_line(name(needed[0]))}, which is not applied as it was proposed."
    for other in live.rows:
        needed = [path for path in other.change.paths if other is not row and needs_path(row, path, is_new_file=False)]
        if needed and other.state not in ("applied", "accepted"):
            return f"This needs {one_line(name(needed[0]))}, which is not applied."
    return ""


def check_row_decision(rows: Mapping[str, LiveRow], decision: RowDecision) -> None:
    """Raises `AmanuError` (proposalConflict) if that decision is not possible for its row now."""
    row = rows.get(decision.row_id)
    if row is None:
        raise AmanuError("proposalConflict", f"The proposal has no row {decision.row_id} any more. Look at it again.")
    if row.state not in _ALLOWED_STATES.get(decision.decision, _REJECTABLE_STATES):
        raise AmanuError("proposalConflict", f"Row {decision.row_id} is {_word(row.state)}.")
    if decision.decision in ("accept", "redo") and row.undecidable:
        raise AmanuError("proposalConflict", row.undecidable)


def carry_out_row(row: LiveRow, decision: RowDecision) -> None:
    """Set the state of a row by that decision, which was checked; the files are changed elsewhere."""
    match decision.decision:
        case "undo" if row.state == "applied":
            row.state = "undoing"
        case "undo":
            pass
        case "redo" | "accept" if row.state != "applied":
            row.state, row.reason, row.reviewed = "accepted", None, True
        case "keep" | "accept" | "redo":
            row.reviewed = True
        case _ if row.state != "rejected":
            row.state, row.reason, row.reviewed = "rejected", decision.reason, True
        case _:
            pass


def carry_out(live: LiveProposal, file: LiveFile, decision: HunkDecision) -> None:
    """Apply that decision, which was checked, to its hunk; undo and redo are carried out elsewhere."""
    hunk = file.hunk(decision.hunk_id)
    match decision.decision:
        case "undo" | "redo":
            pass
        case "keep":
            file.update_hunk(hunk.hunk_id, reviewed=True)
        case "accept" if hunk.state in ("pending", "conflicted"):
            accept(live, file, hunk, decision.new_text)
        case "accept":
            file.update_hunk(hunk.hunk_id, reviewed=True)
        case _ if hunk.state != "rejected":
            file.update_hunk(hunk.hunk_id, state="rejected", reason=decision.reason, reviewed=True)
        case _:
            pass


def accept(
    live: LiveProposal, file: LiveFile, hunk: LiveHunk, own_text: str | None = None, *, reviewed: bool = True
) -> None:
    """Accept it, with the user's `own_text` if there is one; whether it can be applied is another question."""
    if file.is_blocked(hunk):  # it was in conflict already when the user saw it, and stays so
        live.attempted.add(hunk.hunk_id)
        return
    own_text = None if own_text is None else with_file_line_ends(file, own_text)
    if own_text is None or own_text == hunk.new_text:
        file.update_hunk(hunk.hunk_id, state="accepted", reason=None, reviewed=reviewed)
    else:
        file.update_hunk(
            hunk.hunk_id, state="accepted", reason=None, reviewed=reviewed, new_text=own_text, edited_by_user=True
        )


def holds_back(
    live: LiveProposal,
    chosen: Sequence[tuple[LiveFile, LiveHunk]],
    rows: Sequence[LiveRow],
    faults: Mapping[str, str],
    name: Callable[[Path], str],
) -> bool:
    """Whether a yes to these hunks and rows applies nothing because one of them is in conflict. Then the others stay
    open, and say why. Hunks of a single file, without rows, are not held back. `faults`: row id → why it does not fit.
    `name` words a path."""
    blocked = [(file, hunk) for file, hunk in chosen if file.is_blocked(hunk)]
    for row in rows:
        if row.row_id in faults:
            row.state, row.reason = "conflicted", faults[row.row_id]
            live.attempted.add(row.row_id)
    if not (blocked or faults) or (not faults and not rows and len({id(file) for file, _ in chosen}) == 1):
        return False
    live.attempted |= {hunk.hunk_id for _, hunk in blocked}
    paths = [file.base.path for file, _ in blocked] + [row.change.path for row in rows if row.row_id in faults]
    names = [*dict.fromkeys(one_line(name(path)) for path in paths)]
    reason = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} in conflict, so nothing was applied."
    for file, hunk in chosen:
        if not file.is_blocked(hunk) and hunk.state in ("pending", "conflicted"):
            file.update_hunk(hunk.hunk_id, state="pending", reason=reason)
    for row in rows:
        if row.row_id not in faults and row.is_open:
            row.state, row.reason = "pending", reason
    return True


def revise(file: LiveFile, hunk: LiveHunk, own_text: str) -> None:
    """The user's own text for an open hunk, which stays open. Raises `AmanuError` (proposalConflict, invalidParams)."""
    if hunk.state not in ("pending", "conflicted"):
        raise not_open()
    if file.delete:
        raise deletion_error()
    file.update_hunk(hunk.hunk_id, new_text=with_file_line_ends(file, own_text), edited_by_user=True)


def revise_all(file: LiveFile, own_texts: Mapping[str, str]) -> None:
    """The same for several hunks of a file, which are open, by id."""
    if file.delete:
        raise deletion_error()
    file.hunks = [
        hunk.model_copy(update={"new_text": own_texts[hunk.hunk_id], "edited_by_user": True})
        if hunk.hunk_id in own_texts
        else hunk
        for hunk in file.hunks
    ]


def not_open() -> AmanuError:
    return AmanuError("proposalConflict", "That change is not open any more. Look at it again.")


def deletion_error() -> AmanuError:
    return AmanuError("invalidParams", "This change deletes the file: it has no text to edit. Accept it, or reject it.")


def _word(state: HunkState) -> str:
    words = {"reverted": "already taken back", "pending": "still open", "conflicted": "in conflict"}
    return words.get(state, f"already {state}")


def with_file_line_ends(file: LiveFile, own_text: str) -> str:
    """The user's text with the line ends of the file."""
    return own_text.replace("\n", "\r\n") if "\r" not in own_text and line_end(file.base.text) == "\r\n" else own_text
