"""Which decisions a hunk allows, and what they do to it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from amanu.proposals.model import LiveFile, LiveProposal
from amanu.workspace.text_file import line_end
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, HunkState
from amanu_protocol.requests import HunkDecision

_ALLOWED_STATES: dict[str, Collection[HunkState]] = {
    "accept": ("pending", "conflicted", "accepted", "applied"),
    "keep": ("applied",),
    "undo": ("applied", "reverted"),
    "redo": ("reverted", "rejected", "applied"),
}
_REJECTABLE_STATES: Collection[HunkState] = ("pending", "conflicted", "rejected")


def check_decision(hunks: Mapping[str, tuple[LiveFile, Hunk]], decision: HunkDecision) -> None:
    """Raises `AmanuError` (proposalConflict, invalidParams) if that decision is not possible for its hunk now."""
    if decision.hunk_id not in hunks:
        raise AmanuError("proposalConflict", f"The proposal has no hunk {decision.hunk_id} any more. Look at it again.")
    state = hunks[decision.hunk_id][1].state
    if state not in _ALLOWED_STATES.get(decision.decision, _REJECTABLE_STATES):
        word = {"reverted": "taken back", "pending": "open", "conflicted": "in conflict"}.get(state, state)
        raise AmanuError("proposalConflict", f"Hunk {decision.hunk_id} is already {word}.")
    if decision.decision == "accept" and decision.new_text and hunks[decision.hunk_id][0].delete:
        raise deletion_error()


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
    live: LiveProposal, file: LiveFile, hunk: Hunk, own_text: str | None = None, *, reviewed: bool = True
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


def holds_back(live: LiveProposal, chosen: Sequence[tuple[LiveFile, Hunk]], name: Callable[[Path], str]) -> bool:
    """Whether nothing of a yes to these hunks is applied, because one of several files is in conflict: all of them are
    applied or none. The others stay open, and say why. `name`: words a path."""
    blocked = [(file, hunk) for file, hunk in chosen if file.is_blocked(hunk)]
    if not blocked or len({id(file) for file, _ in chosen}) == 1:
        return False
    live.attempted |= {hunk.hunk_id for _, hunk in blocked}
    names = ", ".join(dict.fromkeys(name(file.base.path) for file, _ in blocked))
    for file, hunk in chosen:
        if not file.is_blocked(hunk) and hunk.state in ("pending", "conflicted"):
            file.update_hunk(hunk.hunk_id, state="pending", reason=f"{names} is in conflict, so nothing was applied.")
    return True


def revise(file: LiveFile, hunk: Hunk, own_text: str) -> None:
    """The user's own text for an open hunk, which stays open. Raises `AmanuError` (proposalConflict, invalidParams)."""
    if hunk.state not in ("pending", "conflicted"):
        raise not_open()
    if file.delete:
        raise deletion_error()
    file.update_hunk(hunk.hunk_id, new_text=with_file_line_ends(file, own_text), edited_by_user=True)


def not_open() -> AmanuError:
    return AmanuError("proposalConflict", "That change is not open any more. Look at it again.")


def deletion_error() -> AmanuError:
    return AmanuError("invalidParams", "This change deletes the file: it has no text to edit. Accept it, or reject it.")


def with_file_line_ends(file: LiveFile, own_text: str) -> str:
    """The user's text with the line ends of the file."""
    return own_text.replace("\n", "\r\n") if "\r" not in own_text and line_end(file.base.text) == "\r\n" else own_text
