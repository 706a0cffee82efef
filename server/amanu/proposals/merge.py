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
    lines, our_lines, right = split_lines(base), split_lines(ours), split_lines(theirs)
    mine, others = _done(lines, our_lines), _done(lines, right)
    both = [change for change in mine if change in others]
    others = [change for change in others if change not in both]
    if any(
        _meet(mine_span, other_span)
        for mine_span, other_span in product([span for span, _ in mine], [span for span, _ in others])
    ):
        return None
    used = sorted([*mine, *others], key=lambda change: (change[0][0], change[0][1]))
    return compose(lines, ((start, end - start, text) for (start, end), text in used))


_Done = tuple[tuple[int, int], str]
"""Lines [start, end) of the base, and the text in their place."""


def _done(base: Sequence[str], changed: Sequence[str]) -> list[_Done]:
    return [((change.old, change.old_end), _text(change, changed)) for change in differences(base, changed)]


def _text(change: LineChange, lines: Sequence[str]) -> str:
    return "".join(lines[change.new : change.new_end])


def _meet(first: tuple[int, int], second: tuple[int, int]) -> bool:
    if first == second:
        return True
    (start, end), (low, high) = first, second
    if start == end:
        return low < start < high
    if low == high:
        return start < low < end
    return max(start, low) < min(end, high)
