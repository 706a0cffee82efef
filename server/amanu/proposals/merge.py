"""Three-way merge of lines: what two sides made of one text, together; never by force."""

from collections.abc import Sequence
from itertools import product

from amanu.workspace.diff import Change, compose, differences
from amanu.workspace.text_file import split_lines


def merge(base: str, ours: str, theirs: str) -> str | None:
    """`base` with the changes of both sides, or None where they meet: both changed a line, or put lines in at the same
    place. What both did alike is done once. CPU-bound, linear but for the differences."""
    if ours == theirs or base == theirs:
        return ours
    if base == ours:
        return theirs
    lines, left, right = split_lines(base), split_lines(ours), split_lines(theirs)
    mine, others = _done(lines, left), _done(lines, right)
    both = [each for each in mine if each in others]
    others = [each for each in others if each not in both]
    if any(_meet(one, other) for one, other in product([each for each, _ in mine], [each for each, _ in others])):
        return None
    used = sorted([*mine, *others], key=lambda each: (each[0][0], each[0][1]))
    return compose(lines, ((start, end - start, text) for (start, end), text in used))


_Done = tuple[tuple[int, int], str]
"""Lines [start, end) of the base, and the text in their place."""


def _done(base: Sequence[str], other: Sequence[str]) -> list[_Done]:
    return [((each.old, each.old_end), _text(each, other)) for each in differences(base, other)]


def _text(change: Change, lines: Sequence[str]) -> str:
    return "".join(lines[change.new : change.new_end])


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    if one == other:
        return True
    (start, end), (low, high) = one, other
    if start == end:
        return low < start < high
    if low == high:
        return start < low < end
    return max(start, low) < min(end, high)
