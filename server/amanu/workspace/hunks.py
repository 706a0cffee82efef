"""Hunks as clients get them, and the base of their file."""

from collections.abc import Callable, Collection, Iterable

from amanu.workspace.diff import compose
from amanu.workspace.text_file import line_count, split_lines
from amanu_protocol.base import LineRange
from amanu_protocol.items import PRESENT_STATES, Hunk, ProposedFile


def base_places(hunks: Iterable[Hunk]) -> list[LineRange]:
    """The lines of the base that each hunk replaces; `hunks`: all of a file, in order."""
    places: list[LineRange] = []
    shift = 0
    for hunk in hunks:
        # `lines` has the new lines of one that is in the file, and cannot tell the place: the file may have moved on
        count = line_count(hunk.old_text) if hunk.state in PRESENT_STATES else hunk.lines.count
        start = hunk.proposed_lines.start - shift
        places.append(LineRange(start=start, end=start + count))
        shift += hunk.proposed_lines.count - count
    return places


def line_counts(hunks: Collection[Hunk]) -> tuple[int, int]:
    """The numbers of lines that they add and remove."""
    return sum(line_count(hunk.new_text) for hunk in hunks), sum(line_count(hunk.old_text) for hunk in hunks)


def replacements(file: ProposedFile, is_used: Callable[[Hunk], bool]) -> list[tuple[int, int, str]]:
    """The edits (first line, number of lines, new text) that bring those of its hunks into the base of the file."""
    placed = zip(file.hunks, base_places(file.hunks), strict=True)
    return [(place.start, place.count, hunk.new_text) for hunk, place in placed if is_used(hunk)]


def text_with(file: ProposedFile, is_used: Callable[[Hunk], bool]) -> str:
    """The base of the file with those of its hunks."""
    return compose(split_lines(file.base_text or ""), replacements(file, is_used))
