"""Three-way re-anchoring: a proposal whose file the user changed meanwhile is moved to the text as it is now.

What they changed is the line difference between the footing, the last text in which all hunks fitted, and the present
text. An open hunk none of that comes near (its lines and one on either side, or the file's edge) has the same lines
elsewhere; any other is in conflict until its lines are back. Nothing is ever searched for: where equal lines leave open
which of them the user added or removed, all places that are possible count as changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from amanu.proposals.model import (
    BACK,
    STATES,
    TOUCHED,
    AnchorRange,
    AnchorText,
    LiveFile,
    TouchedLines,
    numbered,
    through,
)
from amanu.workspace.diff import LineChange, changes, differences
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.items import Hunk


@dataclass(frozen=True)
class Reanchored:
    """What becomes of a `LiveFile`."""

    base: FileText
    text: str
    hunks: list[Hunk]
    touches: list[TouchedLines]
    footing: AnchorText | None
    touched: frozenset[str]

    def put(self, file: LiveFile) -> None:
        file.base, file.text, file.hunks, file.touches = self.base, self.text, self.hunks, self.touches
        file.footing, file.touched = self.footing, self.touched
        file.applied_now()


@dataclass(frozen=True)
class _Edit(LineChange):
    """A change of the user's, and the old lines [low, high) it may lie in: equal lines at its ends could as well be
    the ones that came or went."""

    low: int
    high: int

    @property
    def inserts(self) -> bool:
        return self.old == self.old_end

    def meets(self, spot: AnchorRange) -> bool:
        """It is in the lines of the spot, in one next to them, or between."""
        return self.low <= spot.end and self.high >= spot.start


def reanchor(file: LiveFile, current: FileText, *, by_user: bool = True) -> Reanchored | None:
    """`file` on the text `now`, or None: it is there already, or cannot be. CPU-bound and without effect; for big
    files run it in a thread. What is not done `by_user` was done by another proposal, and is not told as theirs."""
    if (
        file.change != "edit"
        or current.lossy
        or current.encoding != file.base.encoding
        or current.text == file.having("applied")
    ):
        return None
    if (back := _landed(file, current)) is not None:
        return back
    footing, touched_before = file.stand(), file.touched
    lines = split_lines(current.text)
    edits = list(_settled(_edits(footing.lines, lines), file.hunks, footing, lines))
    # One change can only slide; how several are told apart is in doubt where another reading says otherwise.
    others = _backwards(footing.lines, lines) if len(edits) > 1 else edits
    base, line = list[str](), 0
    hunks: list[Hunk] = []
    touched: set[str] = set()
    clean = True
    for hunk in file.hunks:
        spot = footing.spots[hunk.hunk_id]
        regions = _regions(edits, spot, line)
        start, end = regions[0]
        moved: dict[str, object] = {}
        if spot.applied is not None:
            (start, end), moved = _applied(hunk, spot.applied, regions, lines, by_user)
            clean = clean and moved["state"] == "applied" and moved["new_text"] == spot.applied.new_text
        elif hunk.state in ("pending", "conflicted"):
            meets = hunk.hunk_id in footing.unsure or any(edit.meets(spot) for edit in (*edits, *others))
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
        base += lines[line:start]
        first, line = len(base), end
        base += split_lines(hunk.old_text) if moved.get("state") == "applied" else lines[start:end]
        count = len(base) - first
        hunks.append(hunk.model_copy(update={**moved, "old_start": first + (count > 0), "old_lines": count}))
    base += lines[line:]
    keeps = by_user and (touched or not clean)
    return _checked(file, current, base, numbered(hunks), footing if keeps else None, frozenset(touched))


def _landed(file: LiveFile, current: FileText) -> Reanchored | None:
    """`file` as it landed, where nothing that is different now comes near any hunk."""
    landed = file.landed
    if (
        landed is None
        or landed.base is file.base
        or any(hunk.state in ("pending", "accepted", "conflicted") for hunk in file.hunks)
    ):
        return None
    if [(landed_hunk.hunk_id, landed_hunk.state) for landed_hunk in landed.hunks] != [
        (landed_hunk.hunk_id, landed_hunk.state) for landed_hunk in file.hunks
    ]:
        return None
    previous = LiveFile(landed.base, "", hunks=list(landed.hunks))
    footing, lines = previous.stand(), split_lines(current.text)
    edits = _edits(footing.lines, lines)
    if any(edit.meets(spot) for edit in edits for spot in footing.spots.values()):
        return None
    base, line = list[str](), 0
    hunks: list[Hunk] = []
    for was, hunk in zip(landed.hunks, file.hunks, strict=True):
        start, end = _regions(edits, footing.spots[hunk.hunk_id], line)[0]
        base += lines[line:start]
        first, line = len(base), end
        base += split_lines(was.old_text) if was.state == "applied" else lines[start:end]
        position = {"old_start": first + (len(base) > first), "old_lines": len(base) - first}
        hunks.append(was.model_copy(update={**position, "reviewed": hunk.reviewed, "reason": hunk.reason}))
    base += lines[line:]
    return _checked(file, current, base, numbered(hunks), None, frozenset())


def _backwards(old: Sequence[str], new: Sequence[str]) -> list[_Edit]:
    """`_edits` found from the end: of many equal lines others may be the ones that stayed."""
    count, new_count = len(old), len(new)
    reversed_changes = [
        LineChange(count - change.old_end, count - change.old, new_count - change.new_end, new_count - change.new)
        for change in reversed(differences(old[::-1], new[::-1]))
    ]
    return _edits(old, new, reversed_changes)


def _edits(old: Sequence[str], new: Sequence[str], known_changes: Sequence[LineChange] | None = None) -> list[_Edit]:
    known_changes = differences(old, new) if known_changes is None else known_changes
    stops = [LineChange(0, 0, 0, 0), *known_changes, LineChange(len(old), len(old), len(new), len(new))]
    edits: list[_Edit] = []
    for (previous, change), (_, following) in zip(pairwise(stops), pairwise(stops[1:]), strict=False):
        low, high = change.old, change.old_end
        if change.old == change.old_end or change.new == change.new_end:  # it may slide along equal lines
            text, first, last = (new, change.new, change.new_end) if low == high else (old, low, high)
            up = next((n for n in range(low - previous.old_end) if text[first - n - 1] != text[last - n - 1]), None)
            down = next((n for n in range(following.old - high) if text[first + n] != text[last + n]), None)
            low -= low - previous.old_end if up is None else up
            high += following.old - high if down is None else down
        edits.append(_Edit(change.old, change.old_end, change.new, change.new_end, low, high))
    return edits


def _settled(edits: Sequence[_Edit], hunks: Sequence[Hunk], footing: AnchorText, new: Sequence[str]) -> Iterator[_Edit]:
    """Of the places an edit may have, the one where it takes an applied hunk back."""
    for moved_edit in edits:
        for hunk in hunks:
            spot = footing.spots[hunk.hunk_id]
            shift = spot.start - moved_edit.old
            if (
                spot.applied is None
                or moved_edit.low > spot.start
                or spot.start + moved_edit.old_end - moved_edit.old > moved_edit.high
            ):
                continue
            is_removed = moved_edit.old_end - moved_edit.old == spot.end - spot.start
            if (
                is_removed
                and moved_edit.low < moved_edit.high
                and "".join(new[moved_edit.new + shift : moved_edit.new_end + shift]) == hunk.old_text
            ):
                change = LineChange(spot.start, spot.end, moved_edit.new + shift, moved_edit.new_end + shift)
                moved_edit = _Edit(change.old, change.old_end, change.new, change.new_end, change.old, change.old_end)
                break
        yield moved_edit


def _regions(edits: Sequence[_Edit], spot: AnchorRange, least: int) -> list[tuple[int, int]]:
    """The new lines that stand for those of the spot, none before `least`; then the same with what was put in right
    before or behind them."""
    start, end = spot.start, spot.end
    previous_region: list[int] = []
    behind: list[int] = []
    for edit in edits:
        grown = (edit.new_end - edit.new) - (edit.old_end - edit.old)
        if edit.inserts and edit.old == spot.start:
            previous_region = [edit.new]
        elif edit.inserts and edit.old == spot.end:
            behind = [edit.new_end]
        if edit.old_end <= spot.start:
            start += grown
        elif edit.old < spot.start:
            start = edit.new if spot.end > spot.start else edit.new_end
        if edit.old_end <= spot.end and not (edit.inserts and edit.old == spot.end > spot.start):
            end += grown
        elif edit.old < spot.end:
            end = edit.new_end
    start = max(start, least)
    end = max(start, end if spot.end > spot.start else start)
    return [(max(first, least), last) for last in (end, *behind) for first in (start, *previous_region)]


def _found(text: str, regions: Sequence[tuple[int, int]], lines: Sequence[str]) -> tuple[int, int] | None:
    return next((region for region in regions if "".join(lines[region[0] : region[1]]) == text), None)


def _applied(
    hunk: Hunk, as_applied: Hunk, regions: Sequence[tuple[int, int]], new: Sequence[str], by_user: bool
) -> tuple[tuple[int, int], dict[str, object]]:
    """What the user made of an applied hunk, and where that is."""
    if hunk.old_text and not hunk.old_text.endswith(("\n", "\r")):
        regions = [(regions[0][0], len(new)), *regions[1:]]  # it was the end of the file
    if by_user and as_applied.new_text != hunk.old_text:
        undone = _found(hunk.old_text, regions, new)
        if undone is not None:
            return undone, {"state": "reverted", "reason": BACK}
    was = as_applied.new_text if as_applied.applied_text is None else as_applied.applied_text
    # What another proposal had taken out is put back when that one is undone.
    back = None if by_user else _found(was, regions, new)
    start, end = regions[0] if back is None else back
    text = "".join(new[start:end])
    edited = as_applied.edited_by_user or (by_user and text != as_applied.new_text)
    return (start, end), {
        "state": "applied",
        "reason": None,
        "new_text": text,
        "applied_text": None if text == was else was,
        "edited_by_user": edited,
    }


def _checked(
    file: LiveFile,
    current: FileText,
    lines: list[str],
    hunks: list[Hunk],
    footing: AnchorText | None,
    touched: frozenset[str],
) -> Reanchored | None:
    """None when the hunks do not stand in that base as they should: then nothing moves, and nothing is applied."""
    text = "".join(lines)
    base = current.as_base(text)
    moved = LiveFile(base, "", hunks=hunks)
    if split_lines(text) != lines or moved.having("applied") != current.text:
        return None
    proposed = moved.having(*STATES)
    touches = file.touches
    if touches and file.untouched:
        step = changes(split_lines(file.text), split_lines(proposed))
        touches = [through(touch, step) for touch in touches]
    return Reanchored(base, proposed, hunks, touches, footing, touched)
