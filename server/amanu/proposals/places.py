"""Hunks with their place in the base of their file, and the places that clients are told."""

from collections.abc import Collection, Iterable, Sequence

from amanu.workspace.hunks import base_places
from amanu.workspace.text_file import line_count
from amanu_protocol.base import LineRange
from amanu_protocol.items import PRESENT_STATES, PROPOSED_STATES, Hunk, HunkState

OPEN_STATES: Collection[HunkState] = ("pending", "conflicted")
_NOWHERE = LineRange(start=0, end=0)


class LiveHunk(Hunk):
    """A hunk of a proposal while it lives. Where it is in the file depends on the other hunks: see `placed`."""

    base_lines: LineRange
    """The lines of the base that it replaces."""
    lines: LineRange = _NOWHERE
    proposed_lines: LineRange = _NOWHERE


def live_hunks(hunks: Sequence[Hunk]) -> list[LiveHunk]:
    """The hunks of a file as clients got them, in order. The opposite of `placed`."""
    places = base_places(hunks)
    return [
        LiveHunk.model_validate({**vars(hunk), "base_lines": place, "lines": _NOWHERE, "proposed_lines": _NOWHERE})
        for hunk, place in zip(hunks, places, strict=True)
    ]


def placed(hunks: Iterable[LiveHunk], starts: Sequence[int] | None = None) -> list[Hunk]:
    """The hunks of a file, in order, as clients get them. `starts`: their first lines in the file, where that has moved
    on from what they make of their base."""
    placed_hunks: list[Hunk] = []
    shift, proposed_shift = 0, 0
    for index, hunk in enumerate(hunks):
        first, old_count, new_count = hunk.base_lines.start, hunk.base_lines.count, line_count(hunk.new_text)
        count = new_count if hunk.state in PRESENT_STATES else old_count
        proposed_count = new_count if hunk.state in PROPOSED_STATES else old_count
        lines = _lines(first + shift if starts is None else starts[index], count)
        proposed_lines = _lines(first + proposed_shift, proposed_count)
        placed_hunks.append(Hunk.model_validate({**vars(hunk), "lines": lines, "proposed_lines": proposed_lines}))
        shift += count - old_count
        proposed_shift += proposed_count - old_count
    return placed_hunks


def _lines(start: int, count: int) -> LineRange:
    return LineRange(start=start, end=start + count)
