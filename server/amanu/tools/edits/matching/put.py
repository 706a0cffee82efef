"""The change from `old` to `new`, put onto what is really there: what `new` leaves as `old` has it stays as the file
has it, to the byte. Where the change meets a difference it cannot be told what is meant: refused."""

from collections.abc import Sequence
from itertools import pairwise

from amanu.tools.edits.matching.place import Place, Unproven
from amanu.tools.edits.matching.source import body_of, end_of
from amanu.workspace.diff import common

_TOO_LONG = 6000  # characters or lines that both changed, in one piece: more is not aligned, for it costs their product
Block = tuple[bool, int, int, int, int]
"""(equal, from, to, from, to): of one sequence, of the other."""


def put(there: Sequence[str], place: Place, usual_end: str) -> list[str]:
    """The lines that take the place of `there`. Raises `Unproven` where the change meets the differences."""
    at = place.at or [(line, line + 1) for line in range(len(place.old))]
    usual = next((end for line in there if (end := end_of(line))), usual_end)
    out: list[str] = []

    def write(lines: Sequence[str]) -> None:
        for line in lines:
            if out and not end_of(out[-1]):
                out[-1] += usual
            out.append(line)

    moved = _as_the_file_says(there, place, at)
    done = 0  # lines of the file dealt with
    for equal, i1, i2, j1, j2 in _blocks(_plain(place.old), _plain(place.new)):
        if equal:
            write(there[done : at[i2 - 1][1]])
            done = max(done, at[i2 - 1][1])
            continue
        _refuse_doubt(place, at, i1, i2, done, len(there))
        now: Sequence[str] = ()
        if i1 < i2:
            write(there[done : at[i1][0]])
            done = at[i2 - 1][1]
            now = there[at[i1][0] : done]
        ends = [end_of(line) or usual for line in now]
        bodies = _rewritten(_bodies(now), _bodies(place.old[i1:i2]), _bodies(place.new[j1:j2]), place)
        bodies = [moved.get(body.rstrip(), body) for body in bodies]
        write([body + (ends[row] if row < len(ends) else usual) for row, body in enumerate(bodies)])
    write(there[done:])
    return _final_end(out, there, place, usual)


def _as_the_file_says(there: Sequence[str], place: Place, at: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Lines of `old` that the file writes otherwise → how it does: what `new` moves to another line stays so too."""
    said: dict[str, str] = {}
    for row, (one, other) in enumerate(at):
        body = body_of(place.old[row])
        if other == one + 1 and row not in place.drifted and body.strip() and body != body_of(there[one]):
            said[body.rstrip()] = body_of(there[one])
    return said


def _refuse_doubt(place: Place, at: Sequence[tuple[int, int]], i1: int, i2: int, done: int, size: int) -> None:
    """Refuse a change of lines [i1, i2) of `old` that touches what drifted."""
    lines = at[i1:i2]
    before = at[i1][0] if i1 < len(at) else size
    after = at[i2][0] if i2 < len(at) else size
    last = lines[-1][1] if lines else done
    gaps = any(one[1] != other[0] for one, other in pairwise(lines))
    beside = before != done or after != last or (i1 > 0 and at[i1 - 1][0] == at[i1 - 1][1])
    beside = beside or (i2 < len(at) and at[i2][0] == at[i2][1])
    missing = any(one == other for one, other in lines)
    if gaps or missing or beside or any(line in place.drifted for line in range(i1, i2)):
        raise Unproven("the edit changes lines where the file says something else than old_text", place.start + before)


def _final_end(out: list[str], there: Sequence[str], place: Place, usual: str) -> list[str]:
    """A line end at the end of `new` is added or removed only if `old` has it otherwise."""
    if not out or not there:
        return out
    wanted = bool(place.new and end_of(place.new[-1]))
    asked = bool(place.old and end_of(place.old[-1]))
    ends = bool(end_of(there[-1])) if wanted == asked else wanted
    if not ends:
        out[-1] = body_of(out[-1])
    elif not end_of(out[-1]):
        out[-1] += end_of(there[-1]) or usual
    return [line for line in out if line]


def _rewritten(there: list[str], old: list[str], new: list[str], place: Place) -> list[str]:
    """New lines; each that is one of `old` changed keeps what the file has in the rest of it."""
    if len(there) != len(old) or old == there:
        return new
    if len(old) == len(new):
        return [_kept(o, f, n, place.start) for o, f, n in zip(old, there, new, strict=True)]
    from rapidfuzz import fuzz

    out = list(new)
    behind = 0
    for o, f in zip(old, there, strict=True):
        if o.rstrip() == f.rstrip():
            continue
        likeness = [(fuzz.ratio(o, n), -row) for row, n in enumerate(new[behind:], behind)]
        if likeness and (best := max(likeness))[0] >= 60:
            row = -best[1]
            out[row] = _kept(o, f, new[row], place.start)
            behind = row + 1
    return out


def _kept(old: str, there: str, new: str, line: int) -> str:
    """`merged`; blanks at the line's end stay as the file has them unless `new` changes those of `old`."""
    (o, o_blank), (f, f_blank), (n, n_blank) = map(_parted, (old, there, new))
    return merged(o, f, n, line) + (f_blank if n_blank in ("", o_blank) else n_blank)


def _parted(line: str) -> tuple[str, str]:
    plain = line.rstrip()
    return plain, line[len(plain) :]


def merged(old: str, there: str, new: str, line: int) -> str:
    """One line: `there`, changed as `new` changes `old`. Characters that the change leaves stay as they are."""
    if old == new:
        return there
    if old == there:
        return new
    lead = min(common(old, there), common(old, new))
    back = old[lead:][::-1]
    tail = min(common(back, there[lead:][::-1]), common(back, new[lead:][::-1]))
    o, f, n = (each[lead : len(each) - tail] for each in (old, there, new))
    if max(len(o), len(f), len(n)) > _TOO_LONG:
        raise Unproven("the line differs in too long a stretch", line)
    drift = _blocks(o, f)
    out: list[str] = []
    done = 0  # characters of `f` dealt with
    for equal, a, b, j1, j2 in _blocks(o, n):
        if equal:
            low, high = max(done, _mapped(drift, a, False, line)), _mapped(drift, b, True, line)
            out.append(f[low:high])
            done = max(done, high)
        else:
            out.append(n[j1:j2])
    kept = "".join(out)
    return old[:lead] + kept + (old[len(old) - tail :] if tail else "")


def _mapped(drift: Sequence[Block], at: int, behind: bool, line: int) -> int:
    """Where the character `at` of `old` is in the file: before what the file has more there, or `behind` it."""
    found = [
        b1 + at - a1 if equal or a2 - a1 == b2 - b1 else b1 if at == a1 else b2
        for equal, a1, a2, b1, b2 in drift
        if a1 <= at <= a2 and (equal or a2 - a1 == b2 - b1 or at in (a1, a2))
    ]
    if not found:
        raise Unproven("the edit changes a piece of a line that the file writes otherwise", line)
    return max(found) if behind else min(found)


def _blocks(one: Sequence[str], other: Sequence[str]) -> list[Block]:
    """How one becomes the other; costs the product of what is between their common beginning and end, up to a size
    above which that is taken as one piece."""
    from rapidfuzz.distance import Indel

    lead = common(one, other)
    tail = common(one[lead:][::-1], other[lead:][::-1])
    a, b = len(one) - tail, len(other) - tail
    blocks: list[Block] = [(True, 0, lead, 0, lead)] if lead else []
    if (a - lead) * (b - lead) > _TOO_LONG**2 or a == lead or b == lead:
        if a > lead or b > lead:
            blocks.append((False, lead, a, lead, b))
    else:
        for each in Indel.opcodes(one[lead:a], other[lead:b]):
            i1, i2, j1, j2 = (lead + side for side in (each.src_start, each.src_end, each.dest_start, each.dest_end))
            block = (each.tag == "equal", i1, i2, j1, j2)
            if blocks and blocks[-1][0] == block[0]:
                last = blocks.pop()
                block = (block[0], last[1], block[2], last[3], block[4])
            blocks.append(block)
    if tail:
        blocks.append((True, a, len(one), b, len(other)))
    return blocks


def _plain(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _bodies(lines: Sequence[str]) -> list[str]:
    return [body_of(line) for line in lines]
