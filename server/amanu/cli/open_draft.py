"""What the user has not decided yet of a session's draft, and how to decide it."""

from collections.abc import Collection

from amanu.cli.text import one_line
from amanu.text.amounts import files_and_folders
from amanu_protocol.items import HunkState, Proposal
from amanu_protocol.state import SessionState

_OPEN: Collection[HunkState] = ("pending", "conflicted")


def open_drafts(state: SessionState) -> list[Proposal]:
    """Drafts with a change that is undecided or in conflict."""
    return [each for each in state.proposals if each.draft and any(change.state in _OPEN for change in each.changes)]


def open_paths(state: SessionState) -> list[str]:
    """Absolute paths with drafted changes that have not been decided, in order."""
    paths: dict[str, None] = {}
    for proposal in open_drafts(state):
        paths |= {file.path: None for file in proposal.files if any(hunk.state in _OPEN for hunk in file.hunks)}
        paths |= {row.path: None for row in proposal.rows if row.state in _OPEN}
    return list(paths)


def describe_open_draft(state: SessionState, *, in_chat: bool) -> str:
    """The message that drafted changes have not been applied, and what to do about them; "" if there are none.
    `in_chat`: the user can type the commands of a chat right there."""
    paths = open_paths(state)
    if not paths:
        return ""
    rows = [row for proposal in open_drafts(state) for row in proposal.rows if row.state in _OPEN]
    folders = {row.path for row in rows if row.is_folder}
    said = f"The draft has not been applied ({files_and_folders(len(paths) - len(folders), len(folders))}). "
    if in_chat:
        return f"{said}/accept session applies it and /reject session discards it."
    command = f"amanu sessions diff {one_line(state.session_id[:8])}"
    return f"{said}`{command}` shows it; `accept` instead of `diff` applies it, and `reject` discards it."
