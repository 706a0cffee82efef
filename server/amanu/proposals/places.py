"""Places of hunks: in the file as it was last seen, and in the proposed text."""

from collections.abc import Collection, Iterable, Sequence

from amanu.workspace.diff import first_line
from amanu_protocol.base import LineRange
from amanu_protocol.items import Hunk, HunkState, Proposal, ProposedFile

OPEN_STATES: Collection[HunkState] = ("pending", "conflicted")
PRESENT_STATES: Collection[HunkState] = ("accepted", "applied", "undoing")
"""States of the hunks that count as being in the file. One that is carried out or undone just now is, so that it moves
only once."""
PROPOSED_STATES: Collection[HunkState] = (*OPEN_STATES, *PRESENT_STATES)
"""States of the hunks that the proposed text has."""


def placed(hunks: Iterable[Hunk], starts: Sequence[int] | None = None) -> list[Hunk]:
    """The hunks of a file, in order, with their places. `starts`: their first lines in the file, where that has moved
    on from what they make of their base."""
    placed_hunks: list[Hunk] = []
    shift, proposed_shift = 0, 0
    for index, hunk in enumerate(hunks):
        first = first_line(hunk)
        count = hunk.new_lines if hunk.state in PRESENT_STATES else hunk.old_lines
        proposed_count = hunk.new_lines if hunk.state in PROPOSED_STATES else hunk.old_lines
        lines = _lines(first + shift if starts is None else starts[index], count)
        proposed_lines = _lines(first + proposed_shift, proposed_count)
        placed_hunks.append(hunk.model_copy(update={"lines": lines, "proposed_lines": proposed_lines}))
        shift += count - hunk.old_lines
        proposed_shift += proposed_count - hunk.old_lines
    return placed_hunks


def with_places(proposal: Proposal) -> Proposal:
    """The proposal with the places of its hunks, which journals did not hold before protocol 4."""
    if all(map(_is_placed, proposal.files)):
        return proposal
    files = [
        file if _is_placed(file) else file.model_copy(update={"hunks": placed(file.hunks)}) for file in proposal.files
    ]
    return proposal.model_copy(update={"files": files})


def _is_placed(file: ProposedFile) -> bool:
    return any(hunk.lines.end or hunk.proposed_lines.end for hunk in file.hunks)


def _lines(start: int, count: int) -> LineRange:
    return LineRange(start=start, end=start + count)
