"""Line differences: two texts → hunks, any subset of hunks → a text, hunks → a unified diff.

The text of a hunk is exact, line ends included, so that every byte outside the hunks used stays what it was.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from amanu.workspace.text_file import split_lines

_MATRIX = 200_000_000
"""Cells of rapidfuzz's bit matrix (25 MB) above which a region is first cut at lines unique in both texts."""


@dataclass(frozen=True)
class LineChange:
    """Lines [old, old_end) of the old text become lines [new, new_end) of the new one. 0-based."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[LineChange]:
    """What turns the lines `old` into `new`, in order, at least one equal line between two changes.

    A gap of nothing but blanks and punctuation (a lone brace) does not part two changes: such hunks are not
    worth deciding one by one.
    """
    return _joined(differences(old_lines, new_lines), old_lines)


def differences(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[LineChange]:
    """`changes` that are parted by any equal line."""
    start = common_prefix_length(old_lines, new_lines)
    end = common_prefix_length(old_lines[start:][::-1], new_lines[start:][::-1])
    inner = _differences(old_lines[start : len(old_lines) - end], new_lines[start : len(new_lines) - end])
    return [
        LineChange(change.old_start + start, change.old_end + start, change.new_start + start, change.new_end + start)
        for change in inner
    ]


def compose(old_lines: Sequence[str], replacements: Iterable[tuple[int, int, str]]) -> str:
    """The old text with replacements (first line 0-based, number of lines, text) put in, in order."""
    parts: list[str] = []
    line = 0
    for start, count, text in replacements:
        parts += old_lines[line:start]
        parts.append(text)
        line = start + count
    parts += old_lines[line:]
    return "".join(parts)


def unified(path: str, old_text: str, new_text: str, *, context: int = 3) -> str:
    """A unified diff with `context` lines around each change, "" when nothing differs. Lines end in LF; a
    carriage return that belongs to a line end is kept, as git keeps it."""
    old_lines, new_lines = split_lines(old_text), split_lines(new_text)
    replacements = [
        _Replaced(change.old_start, change.old_end, new_lines[change.new_start : change.new_end])
        for change in changes(old_lines, new_lines)
    ]
    return _unified(path, old_lines, replacements, context, exists=bool(new_text))


def unified_lines(path: str, old_lines: Sequence[str], replaced: Iterable[tuple[int, int, str]]) -> str:
    """The same of lines [start, end), from 0, that become another text, in order, without a search for what differs."""
    replacements = [_Replaced(start, end, split_lines(text)) for start, end, text in replaced]
    kept = len(old_lines) - sum(each.end - each.start for each in replacements)
    return _unified(path, old_lines, replacements, 3, exists=kept > 0 or any(each.new_lines for each in replacements))


@dataclass(frozen=True)
class _Replaced:
    """Lines [start, end) of the old text, 0-based, and what they become."""

    start: int
    end: int
    new_lines: Sequence[str]


def _unified(
    path: str, old_lines: Sequence[str], replacements: Sequence[_Replaced], context: int, *, exists: bool
) -> str:
    if not replacements:
        return ""
    out = [
        f"--- {'a/' + path if old_lines else '/dev/null'}\n",
        f"+++ {'b/' + path if exists else '/dev/null'}\n",
    ]
    shift = 0
    for group in _grouped(replacements, 2 * context):
        start, end = max(0, group[0].start - context), min(len(old_lines), group[-1].end + context)
        grown = sum(len(each.new_lines) - (each.end - each.start) for each in group)
        out.append(f"@@ -{_range(start, end)} +{_range(start + shift, end + shift + grown)} @@\n")
        shift += grown
        line_index = start
        for each in group:
            out += [_marked(" ", line) for line in old_lines[line_index : each.start]]
            out += [_marked("-", line) for line in old_lines[each.start : each.end]]
            out += [_marked("+", line) for line in each.new_lines]
            line_index = each.end
        out += [_marked(" ", line) for line in old_lines[line_index:end]]
    return "".join(out)


def _differences(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[LineChange]:
    if not old_lines and not new_lines:
        return []
    if set(old_lines).isdisjoint(new_lines):  # so is most of what models edit: nothing to search, no import
        return [LineChange(0, len(old_lines), 0, len(new_lines))]
    if len(old_lines) * len(new_lines) > _MATRIX:
        return _between_anchors(old_lines, new_lines)
    from rapidfuzz.distance import Indel  # pyright: ignore[reportUnknownVariableType]: its stub names no types

    number: dict[str, int] = {}
    old_numbers = [number.setdefault(line, len(number)) for line in old_lines]
    new_numbers = [number.setdefault(line, len(number)) for line in new_lines]
    result: list[LineChange] = []
    operations: Iterable[tuple[str, int, int, int, int]] = Indel.opcodes(old_numbers, new_numbers)  # pyright: ignore
    for tag, start, end, new_start, new_end in operations:
        if tag == "equal":
            continue
        if result and result[-1].old_end == start and result[-1].new_end == new_start:
            result[-1] = LineChange(result[-1].old_start, end, result[-1].new_start, new_end)
        else:
            result.append(LineChange(start, end, new_start, new_end))
    return result


def _between_anchors(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[LineChange]:
    """Patience diff: lines that occur once in both texts, in their longest common order, are equal; what lies
    between them is compared on its own. A region with no such line is one change."""
    once_old, once_new = Counter(old_lines), Counter(new_lines)
    new_indexes = {line: index for index, line in enumerate(new_lines) if once_new[line] == 1}
    pairs = [
        (index, new_indexes[line])
        for index, line in enumerate(old_lines)
        if once_old[line] == 1 and line in new_indexes
    ]
    anchors = [*_longest_increasing(pairs), (len(old_lines), len(new_lines))]
    if len(anchors) == 1:
        return [LineChange(0, len(old_lines), 0, len(new_lines))]
    result: list[LineChange] = []
    old_offset, new_offset = 0, 0
    for stop, new_stop in anchors:
        for change in _differences(old_lines[old_offset:stop], new_lines[new_offset:new_stop]):
            result.append(
                LineChange(
                    change.old_start + old_offset,
                    change.old_end + old_offset,
                    change.new_start + new_offset,
                    change.new_end + new_offset,
                )
            )
        old_offset, new_offset = stop + 1, new_stop + 1
    return result


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []
    piles: list[int] = []
    predecessors: list[int] = []
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        predecessors.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        piles[pile : pile + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        chain.append(pairs[index])
        index = predecessors[index]
    return chain[::-1]


def _joined(line_changes: Sequence[LineChange], old_lines: Sequence[str]) -> list[LineChange]:
    joined: list[LineChange] = []
    for change in line_changes:
        last = joined[-1] if joined else None
        if last is not None and not any(
            character.isalnum() for line in old_lines[last.old_end : change.old_start] for character in line
        ):
            joined[-1] = LineChange(last.old_start, change.old_end, last.new_start, change.new_end)
        else:
            joined.append(change)
    return joined


def _grouped(replacements: Sequence[_Replaced], gap: int) -> list[list[_Replaced]]:
    groups: list[list[_Replaced]] = []
    for each in replacements:
        if groups and each.start - groups[-1][-1].end <= gap:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def common_prefix_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Number of equal lines, or characters, at the beginning, by comparing slices, which costs a tenth of a loop."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _marked(mark: str, line: str) -> str:
    if line.endswith("\n"):
        return mark + line
    if line.endswith("\r"):
        return f"{mark}{line}\n"
    return f"{mark}{line}\n\\ No newline at end of file\n"
