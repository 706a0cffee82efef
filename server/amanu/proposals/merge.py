"""Three-way merge of lines: what two sides made of one text, together; never by force."""

from collections.abc import Sequence
from itertools import product

from amanu.workspace.diff import LineChange, compose, differences
from amanu.workspace.text_file import split_lines


def merge(base: str, ours: str, theirs: str) -> str | None:
    """`base` with the changes of both sides, or None where they meet: both changed a line, or put lines in at the same
    place. What both did alike is done once. CPU-bound, linear but for the differences."""
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    base_lines, our_lines, their_lines = split_lines(base), split_lines(ours), split_lines(theirs)
    our_replacements, their_replacements = _replacements(base_lines, our_lines), _replacements(base_lines, their_lines)
    shared = [change for change in our_replacements if change in their_replacements]
    their_replacements = [change for change in their_replacements if change not in shared]
    if any(
        _overlap(our_span, their_span)
        for our_span, their_span in product(
            [span for span, _ in our_replacements], [span for span, _ in their_replacements]
        )
    ):
        return None
    used = sorted([*our_replacements, *their_replacements], key=lambda change: (change[0][0], change[0][1]))
    return compose(base_lines, ((start, end - start, text) for (start, end), text in used))


_Replacement = tuple[tuple[int, int], str]
"""Lines [start, end) of the base, and the text in their place."""


def _replacements(base: Sequence[str], changed: Sequence[str]) -> list[_Replacement]:
    return [((change.old_start, change.old_end), _text(change, changed)) for change in differences(base, changed)]


def _text(change: LineChange, lines: Sequence[str]) -> str:
    return "".join(lines[change.new_start : change.new_end])


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    if first == second:
        return True
    (start, end), (low, high) = first, second
    if start == end:
        return low < start < high
    if low == high:
        return start < low < end
    return max(start, low) < min(end, high)
