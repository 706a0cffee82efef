"""Rung 10: most lines are there to the letter, a few are not: a slip of the pen, blank lines, two lines that changed
places.

Proof, all of it: at least `_LINES` different lines and `_CHARACTERS` characters of `old` are there, in order, to the
letter (blanks at line ends aside), and most of it; no other place has half as much; what differs is a slip inside a
longer word the file does not know (never a digit, never a whole name: that is another text, not a slip), one line that
stands elsewhere between the same lines, or blank lines; and the edit does not touch it (`put` refuses).

A line left out, or one too many, is refused: so one text differs from its twin, and where the text itself is gone the
twin is all there is.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from amanu.tools.edits.matching.place import Place
from amanu.tools.edits.matching.source import Source

_LINES = 2
_CHARACTERS = 40
_SHARE = 0.75
"""Of the characters of `old`, blanks aside, those in lines that are there to the letter."""
_RIVAL = 0.5
"""What another place may have of what the best has."""
_COMMON = 20  # places of a line above which it tells nothing
_LONGEST = 400  # lines of `old` that are compared
_SLIPS = 2  # lines with a slip of the pen
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]+|[^\w\s]|_|\s+")


def drifted(source: Source, old: Sequence[str], new: Sequence[str]) -> Place | None:
    from rapidfuzz.distance import LCSseq

    if not _LINES <= len(old) <= _LONGEST:
        return None
    best = _best(source, old)
    if best is None:
        return None
    low, high = max(0, best - 4), min(len(source.lines), best + len(old) + 4)
    there = [line.rstrip() for line in source.lines[low:high]]
    asked = [line.rstrip() for line in old]
    at: list[tuple[int, int] | None] = [None] * len(asked)
    for each in LCSseq.opcodes(asked, there):
        if each.tag == "equal":
            for row in range(each.src_start, each.src_end):
                line = each.dest_start + row - each.src_start
                at[row] = (line, line + 1)
    held = [row for row, where in enumerate(at) if where and asked[row]]
    said = {asked[row].strip() for row in held if len(asked[row].strip()) > 3}
    weight = sum(len(asked[row].strip()) for row in held)
    if len(said) < _LINES or weight < _CHARACTERS or weight < _SHARE * sum(len(line.strip()) for line in asked):
        return None
    slips = _aligned(source, asked, there, at)
    if slips is None:
        return None
    places = [where for where in at if where is not None]
    first, last = places[0][0], places[-1][1]
    return Place(
        low + first,
        low + last,
        old,
        new,
        [(one - first, other - first) for one, other in places],
        frozenset(slips),
    )


def _best(source: Source, old: Sequence[str]) -> int | None:
    """The line where `old` begins by the vote of its lines, if no other comes near it."""
    votes: dict[int, int] = {}
    where = source.places(old)
    for row, line in enumerate(old):
        places = where.get(line.strip(), ())
        if len(places) <= _COMMON:
            for at in places:
                votes[at - row] = votes.get(at - row, 0) + len(line.strip())
    if not votes:
        return None
    near = {at: sum(votes.get(at + by, 0) for by in (-2, -1, 0, 1, 2)) for at in votes}
    best = max(near, key=lambda at: (near[at], votes[at], -at))
    rival = max((near[at] for at in near if abs(at - best) > 4), default=0)
    return best if rival <= _RIVAL * near[best] else None


def _aligned(
    source: Source, asked: Sequence[str], there: Sequence[str], at: list[tuple[int, int] | None]
) -> set[int] | None:
    """Fill in what the lines between those held stand for; the lines that slipped. None: too much differs."""
    slips: set[int] = set()
    odd_old: list[str] = []
    odd_there: list[str] = []
    row = 0
    while row < len(at):
        if at[row] is not None:
            row += 1
            continue
        end = row
        while end < len(at) and at[end] is None:
            end += 1
        before = at[row - 1] if row else None
        after = at[end] if end < len(at) else None
        # At an edge nothing says where the file begins or ends to differ: line for line, then.
        begin = before[1] if before else after[0] - (end - row) if after else -1
        stop = after[0] if after else begin + end - row
        if begin < 0 or stop > len(there) or (not (before and after) and end - row > 1):
            return None
        if end - row == stop - begin and all(asked[row + by] and there[begin + by] for by in range(end - row)):
            for by in range(end - row):
                if not _slip(source, asked[row + by], there[begin + by]):
                    return None
                at[row + by] = (begin + by, begin + by + 1)
                slips.add(row + by)
        else:
            if not (before and after) or any(there[begin:stop]):  # lines for other lines: that is another text
                return None
            for by in range(row, end):
                at[by] = (begin, begin)
            odd_old += filter(None, asked[row:end])
        row = end
    held = [where for where in at if where is not None]
    for one, other in pairwise(held):
        odd_there += filter(None, there[one[1] : other[0]])
    return slips if odd_old == odd_there and len(odd_old) <= 1 and len(slips) <= _SLIPS else None


def _slip(source: Source, asked: str, there: str) -> bool:
    """One letter too few, too many, wrong or changed with its neighbour, inside a word of five or more that the file
    does not have."""
    from rapidfuzz.distance import DamerauLevenshtein

    one, other = _WORD.findall(asked), _WORD.findall(there)
    if len(one) != len(other):
        return False
    differ = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    if len(differ) != 1:
        return False
    (a, b) = differ[0]
    if a.startswith(b) or b.startswith(a) or a.endswith(b) or b.endswith(a):
        return False
    if min(len(a), len(b)) < 5 or not (a.isalpha() and b.isalpha()) or a[0] != b[0] or a[-1] != b[-1]:
        return False
    if DamerauLevenshtein.distance(a, b) != 1:
        return False
    return re.search(rf"(?<![^\W\d_]){re.escape(a)}", source.text, re.IGNORECASE) is None
