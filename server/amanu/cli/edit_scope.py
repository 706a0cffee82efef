"""The part of a session's edits that a slash command is about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from amanu_protocol.items import Hunk, Proposal, Row

Scope = Literal["turn", "session", "file"]

CONCERNED: Mapping[str, Callable[[Hunk | Row], bool]] = {
    "accept": lambda change: change.state in ("pending", "conflicted"),
    "reject": lambda change: change.state in ("pending", "conflicted"),
    "diff": lambda change: change.state == "applied",
    "undo": lambda change: change.state == "applied",
    "redo": lambda change: change.state == "reverted",
    "keep": lambda change: change.state == "applied" and not change.reviewed,
    "retry": lambda change: change.state == "conflicted",
}
"""Slash command → whether it is about that change."""


def changes_at(proposals: Sequence[Proposal], path: str | None) -> list[tuple[str, Hunk | Row]]:
    """The hunks and rows (only those at `path`, if one is given), each with its path."""
    files = [
        (file.path, hunk)
        for proposal in proposals
        for file in proposal.files
        if path in (None, file.path, file.new_path)
        for hunk in file.hunks
    ]
    rows = [
        (row.path, row) for proposal in proposals for row in proposal.rows if path in (None, row.path, row.new_path)
    ]
    return [*files, *rows]
