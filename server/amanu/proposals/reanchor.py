"""Three-way re-anchoring: a proposal whose file the person changed meanwhile is moved to the text as it is now.

What they changed is the line difference between the footing, the last text in which all hunks fitted, and the present
text. An open hunk none of that comes near (its lines and one on either side, or the file's edge) has the same lines
elsewhere; any other is in conflict until its lines are back. Nothing is ever searched for: where equal lines leave open
which of them the person added or removed, all places that are possible count as changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from amanu.proposals.model import BACK, STATES, TOUCHED, Footing, LiveFile, Spot, Touch, numbered, through
from amanu.workspace.diff import Change, changes, differences
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.items import Hunk


@dataclass(frozen=True)
class Moved:
    """What becomes of a `LiveFile`."""

    base: FileText
    text: str
    hunks: list[Hunk]
    touches: list[Touch]
    footing: Footing | None
    touched: frozenset[str]

    def put(self, file: LiveFile) -> None:
        file.base, file.text, file.hunks, file.touches = self.base, self.text, self.hunks, self.touches
        file.footing, file.touched = self.footing, self.touched
        file.applied_now()


@dataclass(frozen=True)
class _Edit(Change):
    """A change of the person's, and the old lines [low, high) it may lie in: equal lines at its ends could as well be
    the ones that came or went."""

    low: int
    high: int

    @property
    def inserts(self) -> bool:
        return self.old == self.old_end

    def meets(self, spot: Spot) -> bool:
        """It is in the lines of the spot, in one next to them, or between."""
        return self.low <= spot.end and self.high >= spot.start


def reanchor(file: LiveFile, now: FileText, *, by_person: bool = True) -> Moved | None:
    """`file` on the text `now`, or None: it is there already, or cannot be. CPU-bound and without effect; for big
    files run it in a thread. What is not done `by_person` was done by another proposal, and is not told as theirs."""
    if file.change != "edit" or now.lossy or now.encoding != file.base.encoding or now.text == file.having("applied"):
        return None
    if (back := _landed(file, now)) is not None:
        return back
    footing, touched_before = file.stand(), file.touched
    lines = split_lines(now.text)
    edits = list(_settled(_edits(footing.lines, lines), file.hunks, footing, lines))
    # One change can only slide; how several are told apart is in doubt where another reading says otherwise.
    others = _backwards(footing.lines, lines) if len(edits) > 1 else edits
    base, at = list[str](), 0
    hunks: list[Hunk] = []
    touched: set[str] = set()
    clean = True
    for hunk in file.hunks:
        spot = footing.spots[hunk.hunk_id]
        regions = _regions(edits, spot, at)
        start, end = regions[0]
        moved: dict[str, object] = {}
        if spot.applied is not None:
            (start, end), moved = _applied(hunk, spot.applied, regions, lines, by_person)
            clean = clean and moved["state"] == "applied" and moved["new_text"] == spot.applied.new_text
        elif hunk.state in ("pending", "conflicted"):
            meets = hunk.hunk_id in footing.unsure or any(each.meets(spot) for each in (*edits, *others))
            meets = meets or _regions(others, spot, 0)[0] != _regions(edits, spot, 0)[0]
            late = _found(hunk.new_text, regions, lines)
            if not meets and "".join(lines[start:end]) == hunk.old_text:
                moved = {"state": "pending", "reason": None}
            elif hunk.state == "conflicted" and hunk.hunk_id not in touched_before and late is not None:
                (start, end), clean = late, False  # an editor said no, or nothing, and did it all the same
                moved = {"state": "applied", "reason": None}
            else:
                touched.add(hunk.hunk_id)
                moved = {"state": "conflicted", "reason": TOUCHED}
        base += lines[at:start]
        first, at = len(base), end
        base += split_lines(hunk.old_text) if moved.get("state") == "applied" else lines[start:end]
        count = len(base) - first
        hunks.append(hunk.model_copy(update={**moved, "old_start": first + (count > 0), "old_lines": count}))
    base += lines[at:]
    keeps = by_person and (touched or not clean)
    return _checked(file, now, base, numbered(hunks), footing if keeps else None, frozenset(touched))


def _landed(file: LiveFile, now: FileText) -> Moved | None:
    """`file` as it landed, where nothing that is different now comes near any hunk."""
    landed = file.landed
    if (
        landed is None
        or landed.base is file.base
        or any(hunk.state in ("pending", "accepted", "conflicted") for hunk in file.hunks)
    ):
        return None
    if [(each.hunk_id, each.state) for each in landed.hunks] != [(each.hunk_id, each.state) for each in file.hunks]:
        return None
    before = LiveFile(landed.base, "", hunks=list(landed.hunks))
    footing, lines = before.stand(), split_lines(now.text)
    edits = _edits(footing.lines, lines)
    if any(each.meets(spot) for each in edits for spot in footing.spots.values()):
        return None
    base, at = list[str](), 0
    hunks: list[Hunk] = []
    for was, hunk in zip(landed.hunks, file.hunks, strict=True):
        start, end = _regions(edits, footing.spots[hunk.hunk_id], at)[0]
        base += lines[at:start]
        first, at = len(base), end
        base += split_lines(was.old_text) if was.state == "applied" else lines[start:end]
        place = {"old_start": first + (len(base) > first), "old_lines": len(base) - first}
        hunks.append(was.model_copy(update={**place, "reviewed": hunk.reviewed, "reason": hunk.reason}))
    base += lines[at:]
    return _checked(file, now, base, numbered(hunks), None, frozenset())


def _backwards(old: Sequence[str], new: Sequence[str]) -> list[_Edit]:
    """`_edits` found from the end: of many equal lines others may be the ones that stayed."""
    count, new_count = len(old), len(new)
    found = [
        Change(count - each.old_end, count - each.old, new_count - each.new_end, new_count - each.new)
        for each in reversed(differences(old[::-1], new[::-1]))
    ]
    return _edits(old, new, found)


def _edits(old: Sequence[str], new: Sequence[str], found: Sequence[Change] | None = None) -> list[_Edit]:
    found = differences(old, new) if found is None else found
    stops = [Change(0, 0, 0, 0), *found, Change(len(old), len(old), len(new), len(new))]
    edits: list[_Edit] = []
    for (before, each), (_, after) in zip(pairwise(stops), pairwise(stops[1:]), strict=False):
        low, high = each.old, each.old_end
        if each.old == each.old_end or each.new == each.new_end:  # it may slide along equal lines
            text, first, last = (new, each.new, each.new_end) if low == high else (old, low, high)
            up = next((n for n in range(low - before.old_end) if text[first - n - 1] != text[last - n - 1]), None)
            down = next((n for n in range(after.old - high) if text[first + n] != text[last + n]), None)
            low -= low - before.old_end if up is None else up
            high += after.old - high if down is None else down
        edits.append(_Edit(each.old, each.old_end, each.new, each.new_end, low, high))
    return edits


def _settled(edits: Sequence[_Edit], hunks: Sequence[Hunk], footing: Footing, new: Sequence[str]) -> Iterator[_Edit]:
    """Of the places an edit may have, the one where it takes an applied hunk back."""
    for each in edits:
        for hunk in hunks:
            spot = footing.spots[hunk.hunk_id]
            by = spot.start - each.old
            if spot.applied is None or each.low > spot.start or spot.start + each.old_end - each.old > each.high:
                continue
            gone = each.old_end - each.old == spot.end - spot.start
            if gone and each.low < each.high and "".join(new[each.new + by : each.new_end + by]) == hunk.old_text:
                place = Change(spot.start, spot.end, each.new + by, each.new_end + by)
                each = _Edit(place.old, place.old_end, place.new, place.new_end, place.old, place.old_end)
                break
        yield each


def _regions(edits: Sequence[_Edit], spot: Spot, least: int) -> list[tuple[int, int]]:
    """The new lines that stand for those of the spot, none before `least`; then the same with what was put in right
    before or behind them."""
    start, end = spot.start, spot.end
    before: list[int] = []
    behind: list[int] = []
    for each in edits:
        grown = (each.new_end - each.new) - (each.old_end - each.old)
        if each.inserts and each.old == spot.start:
            before = [each.new]
        elif each.inserts and each.old == spot.end:
            behind = [each.new_end]
        if each.old_end <= spot.start:
            start += grown
        elif each.old < spot.start:
            start = each.new if spot.end > spot.start else each.new_end
        if each.old_end <= spot.end and not (each.inserts and each.old == spot.end > spot.start):
            end += grown
        elif each.old < spot.end:
            end = each.new_end
    start = max(start, least)
    end = max(start, end if spot.end > spot.start else start)
    return [(max(first, least), last) for last in (end, *behind) for first in (start, *before)]


def _found(text: str, regions: Sequence[tuple[int, int]], lines: Sequence[str]) -> tuple[int, int] | None:
    return next((each for each in regions if "".join(lines[each[0] : each[1]]) == text), None)


def _applied(
    hunk: Hunk, as_applied: Hunk, regions: Sequence[tuple[int, int]], new: Sequence[str], by_person: bool
) -> tuple[tuple[int, int], dict[str, object]]:
    """What the person made of an applied hunk, and where that is."""
    if hunk.old_text and not hunk.old_text.endswith(("\n", "\r")):
        regions = [(regions[0][0], len(new)), *regions[1:]]  # it was the end of the file
    if by_person and as_applied.new_text != hunk.old_text:
        undone = _found(hunk.old_text, regions, new)
        if undone is not None:
            return undone, {"state": "revertedByPerson", "reason": BACK}
    was = as_applied.new_text if as_applied.applied_text is None else as_applied.applied_text
    # What another proposal had taken out is put back when that one is undone.
    back = None if by_person else _found(was, regions, new)
    start, end = regions[0] if back is None else back
    text = "".join(new[start:end])
    edited = as_applied.edited_by_person or (by_person and text != as_applied.new_text)
    return (start, end), {
        "state": "applied",
        "reason": None,
        "new_text": text,
        "applied_text": None if text == was else was,
        "edited_by_person": edited,
    }


def _checked(
    file: LiveFile,
    now: FileText,
    lines: list[str],
    hunks: list[Hunk],
    footing: Footing | None,
    touched: frozenset[str],
) -> Moved | None:
    """None when the hunks do not stand in that base as they should: then nothing moves, and nothing is applied."""
    text = "".join(lines)
    base = now.as_base(text)
    moved = LiveFile(base, "", hunks=hunks)
    if split_lines(text) != lines or moved.having("applied") != now.text:
        return None
    proposed = moved.having(*STATES)
    touches = file.touches
    if touches and file.untouched:
        step = changes(split_lines(file.text), split_lines(proposed))
        touches = [through(touch, step) for touch in touches]
    return Moved(base, proposed, hunks, touches, footing, touched)
