"""Rung 9: a line of `…` or `// ... existing code ...` in `old` and in `new` stands for lines that stay.

Proof: the texts between such lines are there, line by line (one shift of indentation for all), in order; if there are
several ways to place them, either they come to the same, or only one keeps the lines left out inside the block that the
first text opens. `new` has as many such lines, in the same order; what they stand for stays.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from amanu.tools.edits.matching.place import LineMatch, Unproven
from amanu.tools.edits.matching.source import Fold, SourceLines, indent_of

_MAX_PLACEMENTS = 24  # placements looked at; more is no proof
_WINDOWS = 5_000  # places of one part; more is no anchor
_DOTS = re.compile(
    r"^\s*(?://+|#+|--+|;+|%+|/\*+|<!--|\{/\*|\(\*)?\s*[\[(<{]?\s*(?:\.{3,}|…)\s*"
    r"(?:[\w',\- ]{0,60}?(?:\.{3,}|…)?)?\s*[\])>}]?\s*(?:\*+/|-->|\*/\}|\*\))?\s*$"
)
_WORDS = re.compile(r"existing|rest|unchanged|remain|omitted|other|same|code|lines|snip|…|\.\.\.\s*\W*$", re.IGNORECASE)


def is_elision(line: str) -> bool:
    return len(line) < 200 and _DOTS.match(line) is not None and _WORDS.search(line) is not None


def match_elided(
    source: SourceLines, old_lines: Sequence[str], new_lines: Sequence[str], fold: Fold
) -> list[LineMatch]:
    """The ways to place it; it is found if their texts are one."""
    parts, marks = _parts(old_lines)
    if (
        not marks
        or not all(any(map(str.strip, part)) for part in parts)
        or len(marks) != sum(map(is_elision, new_lines))
    ):
        return []
    places = [list(islice(_same_indent(source, part, fold), _WINDOWS + 1)) for part in parts]
    if any(len(starts) > _WINDOWS for starts in places):
        return []
    opens = len(indent_of(next((line for line in parts[0] if line.strip()), "")))
    for inside in (opens, None):
        solutions = list(islice(_placements(source, parts, places, (), inside), _MAX_PLACEMENTS + 1))
        if solutions:
            break
    if len(solutions) > _MAX_PLACEMENTS:
        raise Unproven("the parts around the left-out lines fit in too many ways", solutions[0][0])
    return [_match_of(solution, parts, marks, new_lines) for solution in solutions]


def _parts(old_lines: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    parts: list[list[str]] = [[]]
    marks: list[str] = []
    for line in old_lines:
        if is_elision(line):
            marks.append(line)
            parts.append([])
        else:
            parts[-1].append(line)
    return parts, marks


def _same_indent(source: SourceLines, part: list[str], fold: Fold) -> Iterator[int]:
    for start in source.windows(part, fold, apart=False):
        actual = source.lines[start : start + len(part)]
        if all(indent_of(o) == indent_of(f) for o, f in zip(part, actual, strict=True) if o.strip()):
            yield start


def _placements(
    source: SourceLines, parts: list[list[str]], places: list[list[int]], solution: tuple[int, ...], opens: int | None
) -> Iterator[tuple[int, ...]]:
    """First lines of the parts, in order; with `opens`, only if all that is left out is indented deeper."""
    if len(solution) == len(parts):
        yield solution
        return
    starts = places[len(solution)]
    if not solution:
        for start in starts:
            yield from _placements(source, parts, places, (start,), opens)
        return
    behind = solution[-1] + len(parts[len(solution) - 1])
    limit = len(source.lines) if opens is None else _block_end(source, behind, opens)
    for start in starts[bisect_left(starts, behind) : bisect_right(starts, limit)]:
        yield from _placements(source, parts, places, (*solution, start), opens)


def _block_end(source: SourceLines, behind: int, opens: int) -> int:
    for index in range(behind, len(source.lines)):
        line = source.lines[index]
        if line.strip() and len(indent_of(line)) <= opens:
            return index
    return len(source.lines)


def _match_of(
    solution: Sequence[int], parts: Sequence[Sequence[str]], marks: Sequence[str], new_lines: Sequence[str]
) -> LineMatch:
    old_lines: list[str] = []
    spans: list[tuple[int, int]] = []
    for row, (start, part) in enumerate(zip(solution, parts, strict=True)):
        if row:
            old_lines.append(_mark(row - 1))
            spans.append((spans[-1][1], start - solution[0]))
        old_lines += part
        spans += [(line - solution[0], line - solution[0] + 1) for line in range(start, start + len(part))]
    counted = iter(range(len(marks)))
    written = [_mark(next(counted)) if is_elision(line) else line for line in new_lines]
    return LineMatch(solution[0], solution[0] + spans[-1][1], old_lines, written, spans)


def _mark(number: int) -> str:
    """A line that is in no file: the same in old and new, so that what it stands for stays."""
    return f"\0elided {number}\n"
