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

from amanu.tools.edits.matching.place import LineMatch
from amanu.tools.edits.matching.source import SourceLines

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


def match_drifted(source: SourceLines, old_lines: Sequence[str], new_lines: Sequence[str]) -> LineMatch | None:
    from rapidfuzz.distance import LCSseq

    if not _LINES <= len(old_lines) <= _LONGEST:
        return None
    best = _best(source, old_lines)
    if best is None:
        return None
    low, high = max(0, best - 4), min(len(source.lines), best + len(old_lines) + 4)
    actual = [line.rstrip() for line in source.lines[low:high]]
    target = [line.rstrip() for line in old_lines]
    aligned: list[tuple[int, int] | None] = [None] * len(target)
    for block in LCSseq.opcodes(target, actual):
        if block.tag == "equal":
            for row in range(block.src_start, block.src_end):
                line = block.dest_start + row - block.src_start
                aligned[row] = (line, line + 1)
    rows = [row for row, line in enumerate(aligned) if line and target[row]]
    texts = {target[row].strip() for row in rows if len(target[row].strip()) > 3}
    weight = sum(len(target[row].strip()) for row in rows)
    if len(texts) < _LINES or weight < _CHARACTERS or weight < _SHARE * sum(len(line.strip()) for line in target):
        return None
    slips = _aligned(source, target, actual, aligned)
    if slips is None:
        return None
    places = [span for span in aligned if span is not None]
    first, last = places[0][0], places[-1][1]
    return LineMatch(
        low + first,
        low + last,
        old_lines,
        new_lines,
        [(start - first, end - first) for start, end in places],
        frozenset(slips),
    )


def _best(source: SourceLines, old_lines: Sequence[str]) -> int | None:
    """The line where `old` begins by the vote of its lines, if no other comes near it."""
    votes: dict[int, int] = {}
    lines_of = source.places(old_lines)
    for row, line in enumerate(old_lines):
        places = lines_of.get(line.strip(), ())
        if len(places) <= _COMMON:
            for start in places:
                votes[start - row] = votes.get(start - row, 0) + len(line.strip())
    if not votes:
        return None
    near = {start: sum(votes.get(start + shift, 0) for shift in (-2, -1, 0, 1, 2)) for start in votes}
    best = max(near, key=lambda start: (near[start], votes[start], -start))
    rival = max((near[start] for start in near if abs(start - best) > 4), default=0)
    return best if rival <= _RIVAL * near[best] else None


def _aligned(
    source: SourceLines, target: Sequence[str], actual: Sequence[str], aligned: list[tuple[int, int] | None]
) -> set[int] | None:
    """Fill in what the lines between those held stand for; the lines that slipped. None: too much differs."""
    slips: set[int] = set()
    unmatched_old: list[str] = []
    unmatched_actual: list[str] = []
    row = 0
    while row < len(aligned):
        if aligned[row] is not None:
            row += 1
            continue
        end = row
        while end < len(aligned) and aligned[end] is None:
            end += 1
        span_before = aligned[row - 1] if row else None
        span_after = aligned[end] if end < len(aligned) else None
        # At an edge nothing says where the file begins or ends to differ: line for line, then.
        begin = span_before[1] if span_before else span_after[0] - (end - row) if span_after else -1
        stop = span_after[0] if span_after else begin + end - row
        if begin < 0 or stop > len(actual) or (not (span_before and span_after) and end - row > 1):
            return None
        if end - row == stop - begin and all(
            target[row + offset] and actual[begin + offset] for offset in range(end - row)
        ):
            for index in range(end - row):
                if not _slip(source, target[row + index], actual[begin + index]):
                    return None
                aligned[row + index] = (begin + index, begin + index + 1)
                slips.add(row + index)
        else:
            if not (span_before and span_after) or any(
                actual[begin:stop]
            ):  # lines for other lines: that is another text
                return None
            for index in range(row, end):
                aligned[index] = (begin, begin)
            unmatched_old += filter(None, target[row:end])
        row = end
    spans = [span for span in aligned if span is not None]
    for span, next_span in pairwise(spans):
        unmatched_actual += filter(None, actual[span[1] : next_span[0]])
    return slips if unmatched_old == unmatched_actual and len(unmatched_old) <= 1 and len(slips) <= _SLIPS else None


def _slip(source: SourceLines, target: str, actual: str) -> bool:
    """One letter too few, too many, wrong or changed with its neighbour, inside a word of five or more that the file
    does not have."""
    from rapidfuzz.distance import DamerauLevenshtein

    target_words, actual_words = _WORD.findall(target), _WORD.findall(actual)
    if len(target_words) != len(actual_words):
        return False
    differ = [(a, b) for a, b in zip(target_words, actual_words, strict=True) if a != b]
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
