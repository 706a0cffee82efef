"""The change from `old` to `new`, put onto what is really there: what `new` leaves as `old` has it stays as the file
has it, to the byte. Where the change meets a difference it cannot be told what is meant: refused."""

from collections.abc import Sequence
from itertools import pairwise

from amanu.tools.edits.matching.place import LineMatch, Unproven
from amanu.tools.edits.matching.source import body_of, end_of
from amanu.workspace.diff import common_prefix_length

_TOO_LONG = 6000  # characters or lines that both changed, in one piece: more is not aligned, for it costs their product
Block = tuple[bool, int, int, int, int]
"""(equal, from, to, from, to): of one sequence, of the other."""


def write_change(actual: Sequence[str], match: LineMatch, usual_end: str) -> list[str]:
    """The lines that take the place of `there`. Raises `Unproven` where the change meets the differences."""
    spans = match.spans or [(line, line + 1) for line in range(len(match.old_lines))]
    usual = next((end for line in actual if (end := end_of(line))), usual_end)
    out: list[str] = []

    def write(lines: Sequence[str]) -> None:
        for line in lines:
            if out and not end_of(out[-1]):
                out[-1] += usual
            out.append(line)

    spellings = _file_spellings(actual, match, spans)
    consumed = 0  # lines of the file dealt with
    for equal, i1, i2, j1, j2 in _blocks(_stripped(match.old_lines), _stripped(match.new_lines)):
        if equal:
            write(actual[consumed : spans[i2 - 1][1]])
            consumed = max(consumed, spans[i2 - 1][1])
            continue
        _refuse_drifted(match, spans, i1, i2, consumed, len(actual))
        replaced: Sequence[str] = ()
        if i1 < i2:
            write(actual[consumed : spans[i1][0]])
            consumed = spans[i2 - 1][1]
            replaced = actual[spans[i1][0] : consumed]
        ends = [end_of(line) or usual for line in replaced]
        bodies = _rewritten(_bodies(replaced), _bodies(match.old_lines[i1:i2]), _bodies(match.new_lines[j1:j2]), match)
        bodies = [spellings.get(body.rstrip(), body) for body in bodies]
        write([body + (ends[row] if row < len(ends) else usual) for row, body in enumerate(bodies)])
    write(actual[consumed:])
    return _final_end(out, actual, match, usual)


def _file_spellings(actual: Sequence[str], match: LineMatch, spans: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Lines of `old` that the file writes otherwise → how it does: what `new` moves to another line stays so too."""
    spellings: dict[str, str] = {}
    for row, (start, end) in enumerate(spans):
        body = body_of(match.old_lines[row])
        if end == start + 1 and row not in match.drifted and body.strip() and body != body_of(actual[start]):
            spellings[body.rstrip()] = body_of(actual[start])
    return spellings


def _refuse_drifted(
    match: LineMatch, spans: Sequence[tuple[int, int]], i1: int, i2: int, consumed: int, size: int
) -> None:
    """Refuse a change of lines [i1, i2) of `old` that touches what drifted."""
    lines = spans[i1:i2]
    line_before = spans[i1][0] if i1 < len(spans) else size
    line_after = spans[i2][0] if i2 < len(spans) else size
    last = lines[-1][1] if lines else consumed
    gaps = any(span[1] != next_span[0] for span, next_span in pairwise(lines))
    beside = line_before != consumed or line_after != last or (i1 > 0 and spans[i1 - 1][0] == spans[i1 - 1][1])
    beside = beside or (i2 < len(spans) and spans[i2][0] == spans[i2][1])
    missing = any(start == end for start, end in lines)
    if gaps or missing or beside or any(line in match.drifted for line in range(i1, i2)):
        raise Unproven("the edit changes lines in which the file and old_text differ", match.start + line_before)


def _final_end(out: list[str], actual: Sequence[str], match: LineMatch, usual: str) -> list[str]:
    """A line end at the end of `new` is added or removed only if `old` has it otherwise."""
    if not out or not actual:
        return out
    new_ends = bool(match.new_lines and end_of(match.new_lines[-1]))
    old_ends = bool(match.old_lines and end_of(match.old_lines[-1]))
    ends = bool(end_of(actual[-1])) if new_ends == old_ends else new_ends
    if not ends:
        out[-1] = body_of(out[-1])
    elif not end_of(out[-1]):
        out[-1] += end_of(actual[-1]) or usual
    return [line for line in out if line]


def _rewritten(actual: list[str], old_lines: list[str], new_lines: list[str], match: LineMatch) -> list[str]:
    """New lines; each that is one of `old` changed keeps what the file has in the rest of it."""
    if len(actual) != len(old_lines) or old_lines == actual:
        return new_lines
    if len(old_lines) == len(new_lines):
        return [_merged_with_blanks(o, f, n, match.start) for o, f, n in zip(old_lines, actual, new_lines, strict=True)]
    from rapidfuzz import fuzz

    out = list(new_lines)
    behind = 0
    for o, f in zip(old_lines, actual, strict=True):
        if o.rstrip() == f.rstrip():
            continue
        likeness = [(fuzz.ratio(o, n), -row) for row, n in enumerate(new_lines[behind:], behind)]
        if likeness and (best := max(likeness))[0] >= 60:
            row = -best[1]
            out[row] = _merged_with_blanks(o, f, new_lines[row], match.start)
            behind = row + 1
    return out


def _merged_with_blanks(old_line: str, actual: str, new_line: str, line: int) -> str:
    """`merged`; blanks at the line's end stay as the file has them unless `new` changes those of `old`."""
    (o, o_blank), (f, f_blank), (n, n_blank) = map(_split_trailing_blanks, (old_line, actual, new_line))
    return merge_line(o, f, n, line) + (f_blank if n_blank in ("", o_blank) else n_blank)


def _split_trailing_blanks(line: str) -> tuple[str, str]:
    plain = line.rstrip()
    return plain, line[len(plain) :]


def merge_line(old_line: str, actual: str, new_line: str, line: int) -> str:
    """One line: `there`, changed as `new` changes `old`. Characters that the change leaves stay as they are."""
    if old_line == new_line:
        return actual
    if old_line == actual:
        return new_line
    lead = min(common_prefix_length(old_line, actual), common_prefix_length(old_line, new_line))
    back = old_line[lead:][::-1]
    tail = min(common_prefix_length(back, actual[lead:][::-1]), common_prefix_length(back, new_line[lead:][::-1]))
    o, f, n = (side[lead : len(side) - tail] for side in (old_line, actual, new_line))
    if max(len(o), len(f), len(n)) > _TOO_LONG:
        raise Unproven("too much of the line differs", line)
    drift = _blocks(o, f)
    out: list[str] = []
    consumed = 0  # characters of `f` dealt with
    for equal, a, b, j1, j2 in _blocks(o, n):
        if equal:
            low, high = max(consumed, _file_index(drift, a, False, line)), _file_index(drift, b, True, line)
            out.append(f[low:high])
            consumed = max(consumed, high)
        else:
            out.append(n[j1:j2])
    result = "".join(out)
    return old_line[:lead] + result + (old_line[len(old_line) - tail :] if tail else "")


def _file_index(drift: Sequence[Block], index: int, behind: bool, line: int) -> int:
    """Where the character `at` of `old` is in the file: before what the file has more there, or `behind` it."""
    candidates = [
        b1 + index - a1 if equal or a2 - a1 == b2 - b1 else b1 if index == a1 else b2
        for equal, a1, a2, b1, b2 in drift
        if a1 <= index <= a2 and (equal or a2 - a1 == b2 - b1 or index in (a1, a2))
    ]
    if not candidates:
        raise Unproven("the edit changes a part of a line in which the file and old_text differ", line)
    return max(candidates) if behind else min(candidates)


def _blocks(first: Sequence[str], second: Sequence[str]) -> list[Block]:
    """How one becomes the other; costs the product of what is between their common beginning and end, up to a size
    above which that is taken as one piece."""
    from rapidfuzz.distance import Indel

    lead = common_prefix_length(first, second)
    tail = common_prefix_length(first[lead:][::-1], second[lead:][::-1])
    a, b = len(first) - tail, len(second) - tail
    blocks: list[Block] = [(True, 0, lead, 0, lead)] if lead else []
    if (a - lead) * (b - lead) > _TOO_LONG**2 or a == lead or b == lead:
        if a > lead or b > lead:
            blocks.append((False, lead, a, lead, b))
    else:
        for opcode in Indel.opcodes(first[lead:a], second[lead:b]):
            i1, i2, j1, j2 = (
                lead + side for side in (opcode.src_start, opcode.src_end, opcode.dest_start, opcode.dest_end)
            )
            block = (opcode.tag == "equal", i1, i2, j1, j2)
            if blocks and blocks[-1][0] == block[0]:
                last = blocks.pop()
                block = (block[0], last[1], block[2], last[3], block[4])
            blocks.append(block)
    if tail:
        blocks.append((True, a, len(first), b, len(second)))
    return blocks


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _bodies(lines: Sequence[str]) -> list[str]:
    return [body_of(line) for line in lines]
