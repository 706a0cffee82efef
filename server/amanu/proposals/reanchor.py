"""Three-way re-anchoring: a proposal whose file the user changed meanwhile is moved to the text as it is now.

What they changed is the line difference between the anchor text, the last text in which all hunks fitted, and the
present text. An open hunk none of that comes near (its lines and one on either side, or the file's edge) has the same
lines elsewhere; any other is in conflict until its lines are back. Nothing is ever searched for: where equal lines
leave open which of them the user added or removed, all places that are possible count as changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from amanu.proposals.model import (
    ALL_STATES,
    LINES_CHANGED,
    UNDONE_IN_FILE,
    AnchorRange,
    AnchorText,
    LiveFile,
    TouchedLines,
    carry_over,
)
from amanu.proposals.places import LiveHunk
from amanu.workspace.diff import LineChange, changes, differences
from amanu.workspace.encodings import same_bytes
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.base import LineRange


@dataclass(frozen=True)
class Reanchored:
    """What becomes of a `LiveFile`."""

    base: FileText
    text: str
    hunks: list[LiveHunk]
    touches: list[TouchedLines]
    anchor: AnchorText | None
    conflicting: frozenset[str]

    def write_to(self, file: LiveFile) -> None:
        file.base, file.text, file.hunks, file.touches = self.base, self.text, self.hunks, self.touches
        file.anchor, file.conflicting, file.deferred = self.anchor, self.conflicting, None
        file.update_anchor()


@dataclass(frozen=True)
class Edit(LineChange):
    """A change of the user's, and the old lines [low, high) it may lie in: equal lines at its ends could as well be
    the ones that came or went."""

    low: int
    high: int

    @property
    def inserts(self) -> bool:
        return self.old_start == self.old_end

    def meets(self, start: int, end: int) -> bool:
        """It is in the lines [start, end), in one next to them, or between."""
        return self.low <= end and self.high >= start


def without_discarded(file: LiveFile, current: FileText) -> Reanchored | None:
    """`file`, whose text that is, without the applied hunks of which no line is left: others of the same file were just
    taken back, so these were not edited but taken back with them. One edit on another is never its old text then."""
    if file.anchor is None or not any(_is_discarded(hunk) for hunk in file.hunks):
        return None
    return _reanchored(replace(file, last_applied=None), current, by_user=True, discarded=True)


def _is_discarded(hunk: LiveHunk) -> bool:
    """Whether it added lines, and none of them is left."""
    return (
        hunk.state == "applied"
        and not hunk.reviewed
        and hunk.applied_text is not None
        and nothing_left(hunk.old_text, hunk.applied_text, hunk.new_text)
    )


def nothing_left(old_text: str, applied_text: str, text: str) -> bool:
    """Whether the change added lines, and none of them is in that text."""
    added = {*split_lines(applied_text)} - {*split_lines(old_text)}
    return bool(added) and added.isdisjoint(split_lines(text))


def reanchor(file: LiveFile, current: FileText, *, by_user: bool = True) -> Reanchored | None:
    """`file` on the text `now`, or None: it is there already, or cannot be. CPU-bound and without effect; for big
    files run it in a thread. What is not done `by_user` was done by another proposal, and is not told as theirs."""
    current = current.read_as(file.base.encoding)
    if file.change != "edit" or current.lossy or not same_bytes(current.encoding, file.base.encoding):
        return None
    if file.deferred is None:
        return _reanchored(file, current, by_user)
    reached = current.as_base(file.deferred.applied_to(file.text_with("applied")))
    caught_up = _reanchored(file, reached, by_user=False)
    if caught_up is None:
        return _reanchored(file, current, by_user)
    file = replace(file)
    caught_up.write_to(file)
    return _reanchored(file, current, by_user) or caught_up


def _reanchored(file: LiveFile, current: FileText, by_user: bool, *, discarded: bool = False) -> Reanchored | None:
    if current.text == file.text_with("applied") and not discarded:
        return None
    if (restored := _as_last_applied(file, current)) is not None:
        return restored
    anchor, conflicting_before = file.current_anchor(), file.conflicting
    lines = split_lines(current.text)
    edits = list(_without_slides(line_edits(anchor.lines, lines), file.hunks, anchor, lines))
    # One change can only slide; how several are told apart is in doubt where another reading says otherwise.
    backward_edits = _backwards(anchor.lines, lines) if len(edits) > 1 else edits
    base, line = list[str](), 0
    hunks: list[LiveHunk] = []
    conflicting: set[str] = set()
    is_clean = True
    for hunk in file.hunks:
        anchor_range = anchor.ranges[hunk.hunk_id]
        regions = _regions(edits, anchor_range, line)
        start, end = regions[0]
        updates: dict[str, object] = {}
        if anchor_range.applied is not None:
            (start, end), updates = _applied_hunk(hunk, anchor_range.applied, regions, lines, by_user)
            if discarded and _is_discarded(hunk):
                updates = {"state": "reverted", "reason": UNDONE_IN_FILE}
            is_clean = (
                is_clean and updates["state"] == "applied" and updates["new_text"] == anchor_range.applied.new_text
            )
        elif hunk.state in ("pending", "conflicted"):
            meets = hunk.hunk_id in anchor.unplaceable or any(
                edit.meets(anchor_range.start, anchor_range.end) for edit in (*edits, *backward_edits)
            )
            meets = meets or _regions(backward_edits, anchor_range, 0)[0] != _regions(edits, anchor_range, 0)[0]
            late_region = _region_with(hunk.new_text, regions, lines)
            if not meets and "".join(lines[start:end]) == hunk.old_text:
                updates = {"state": "pending", "reason": None}
            elif hunk.state == "conflicted" and hunk.hunk_id not in conflicting_before and late_region is not None:
                (start, end), is_clean = late_region, False  # an editor said no, or nothing, and did it all the same
                updates = {"state": "applied", "reason": None}
            else:
                conflicting.add(hunk.hunk_id)
                updates = {"state": "conflicted", "reason": LINES_CHANGED}
        base += lines[line:start]
        first, line = len(base), end
        base += split_lines(hunk.old_text) if updates.get("state") == "applied" else lines[start:end]
        updates["base_lines"] = LineRange(start=first, end=len(base))
        hunks.append(hunk.model_copy(update=updates))
    base += lines[line:]
    keeps_anchor = by_user and (conflicting or not is_clean)
    return _checked_result(file, current, base, hunks, anchor if keeps_anchor else None, frozenset(conflicting))


def _as_last_applied(file: LiveFile, current: FileText) -> Reanchored | None:
    """`file` as it landed, where nothing that is different now comes near any hunk."""
    last_applied = file.last_applied
    if (
        last_applied is None
        or last_applied.base is file.base
        or any(hunk.state in ("pending", "accepted", "conflicted") for hunk in file.hunks)
    ):
        return None
    if [(landed_hunk.hunk_id, landed_hunk.state) for landed_hunk in last_applied.hunks] != [
        (landed_hunk.hunk_id, landed_hunk.state) for landed_hunk in file.hunks
    ]:
        return None
    previous = LiveFile(last_applied.base, "", hunks=list(last_applied.hunks))
    anchor, lines = previous.current_anchor(), split_lines(current.text)
    edits = line_edits(anchor.lines, lines)
    if any(edit.meets(spot.start, spot.end) for edit in edits for spot in anchor.ranges.values()):
        return None
    base, line = list[str](), 0
    hunks: list[LiveHunk] = []
    for applied_hunk, hunk in zip(last_applied.hunks, file.hunks, strict=True):
        start, end = _regions(edits, anchor.ranges[hunk.hunk_id], line)[0]
        base += lines[line:start]
        first, line = len(base), end
        base += split_lines(applied_hunk.old_text) if applied_hunk.state == "applied" else lines[start:end]
        place = LineRange(start=first, end=len(base))
        updates = {"base_lines": place, "reviewed": hunk.reviewed, "reason": hunk.reason}
        hunks.append(applied_hunk.model_copy(update=updates))
    base += lines[line:]
    return _checked_result(file, current, base, hunks, None, frozenset())


def _backwards(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[Edit]:
    """`line_edits` found from the end: of many equal lines others may be the ones that stayed."""
    old_count, new_count = len(old_lines), len(new_lines)
    reversed_changes = [
        LineChange(
            old_count - change.old_end,
            old_count - change.old_start,
            new_count - change.new_end,
            new_count - change.new_start,
        )
        for change in reversed(differences(old_lines[::-1], new_lines[::-1]))
    ]
    return line_edits(old_lines, new_lines, reversed_changes)


def line_edits(
    old_lines: Sequence[str], new_lines: Sequence[str], line_changes: Sequence[LineChange] | None = None
) -> list[Edit]:
    line_changes = differences(old_lines, new_lines) if line_changes is None else line_changes
    stops = [
        LineChange(0, 0, 0, 0),
        *line_changes,
        LineChange(len(old_lines), len(old_lines), len(new_lines), len(new_lines)),
    ]
    edits: list[Edit] = []
    for (previous, change), (_, following) in zip(pairwise(stops), pairwise(stops[1:]), strict=False):
        low, high = change.old_start, change.old_end
        if change.old_start == change.old_end or change.new_start == change.new_end:  # it may slide along equal lines
            text, first, last = (new_lines, change.new_start, change.new_end) if low == high else (old_lines, low, high)
            slide_up = next(
                (n for n in range(low - previous.old_end) if text[first - n - 1] != text[last - n - 1]), None
            )
            slide_down = next((n for n in range(following.old_start - high) if text[first + n] != text[last + n]), None)
            low -= low - previous.old_end if slide_up is None else slide_up
            high += following.old_start - high if slide_down is None else slide_down
        edits.append(Edit(change.old_start, change.old_end, change.new_start, change.new_end, low, high))
    return edits


def _without_slides(
    edits: Sequence[Edit], hunks: Sequence[LiveHunk], anchor: AnchorText, new_lines: Sequence[str]
) -> Iterator[Edit]:
    """Of the places an edit may have, the one where it takes an applied hunk back."""
    for moved_edit in edits:
        for hunk in hunks:
            anchor_range = anchor.ranges[hunk.hunk_id]
            shift = anchor_range.start - moved_edit.old_start
            if (
                anchor_range.applied is None
                or moved_edit.low > anchor_range.start
                or anchor_range.start + moved_edit.old_end - moved_edit.old_start > moved_edit.high
            ):
                continue
            is_removed = moved_edit.old_end - moved_edit.old_start == anchor_range.end - anchor_range.start
            if (
                is_removed
                and moved_edit.low < moved_edit.high
                and "".join(new_lines[moved_edit.new_start + shift : moved_edit.new_end + shift]) == hunk.old_text
            ):
                change = LineChange(
                    anchor_range.start, anchor_range.end, moved_edit.new_start + shift, moved_edit.new_end + shift
                )
                moved_edit = Edit(
                    change.old_start, change.old_end, change.new_start, change.new_end, change.old_start, change.old_end
                )
                break
        yield moved_edit


def _regions(edits: Sequence[Edit], anchor_range: AnchorRange, minimum: int) -> list[tuple[int, int]]:
    """The new lines that stand for those of the spot, none before `least`; then the same with what was put in right
    before or behind them."""
    start, end = anchor_range.start, anchor_range.end
    previous_region: list[int] = []
    following_region: list[int] = []
    for edit in edits:
        grown = (edit.new_end - edit.new_start) - (edit.old_end - edit.old_start)
        if edit.inserts and edit.old_start == anchor_range.start:
            previous_region = [edit.new_start]
        elif edit.inserts and edit.old_start == anchor_range.end:
            following_region = [edit.new_end]
        if edit.old_end <= anchor_range.start:
            start += grown
        elif edit.old_start < anchor_range.start:
            start = edit.new_start if anchor_range.end > anchor_range.start else edit.new_end
        if edit.old_end <= anchor_range.end and not (
            edit.inserts and edit.old_start == anchor_range.end > anchor_range.start
        ):
            end += grown
        elif edit.old_start < anchor_range.end:
            end = edit.new_end
    start = max(start, minimum)
    end = max(start, end if anchor_range.end > anchor_range.start else start)
    return [(max(first, minimum), last) for last in (end, *following_region) for first in (start, *previous_region)]


def _region_with(text: str, regions: Sequence[tuple[int, int]], lines: Sequence[str]) -> tuple[int, int] | None:
    return next((region for region in regions if "".join(lines[region[0] : region[1]]) == text), None)


def _applied_hunk(
    hunk: LiveHunk, anchored_hunk: LiveHunk, regions: Sequence[tuple[int, int]], new_lines: Sequence[str], by_user: bool
) -> tuple[tuple[int, int], dict[str, object]]:
    """What the user made of an applied hunk, and where that is."""
    if hunk.old_text and not hunk.old_text.endswith(("\n", "\r")):
        regions = [(regions[0][0], len(new_lines)), *regions[1:]]  # it was the end of the file
    if by_user and anchored_hunk.new_text != hunk.old_text:
        undone = _region_with(hunk.old_text, regions, new_lines)
        if undone is not None:
            return undone, {"state": "reverted", "reason": UNDONE_IN_FILE}
    applied_text = anchored_hunk.new_text if anchored_hunk.applied_text is None else anchored_hunk.applied_text
    # What another proposal had taken out is put back when that one is undone.
    restored = None if by_user else _region_with(applied_text, regions, new_lines)
    start, end = regions[0] if restored is None else restored
    text = "".join(new_lines[start:end])
    edited = anchored_hunk.edited_by_user or (by_user and text != anchored_hunk.new_text)
    return (start, end), {
        "state": "applied",
        "reason": None,
        "new_text": text,
        "applied_text": None if text == applied_text else applied_text,
        "edited_by_user": edited,
    }


def _checked_result(
    file: LiveFile,
    current: FileText,
    lines: list[str],
    hunks: list[LiveHunk],
    anchor: AnchorText | None,
    conflicting: frozenset[str],
) -> Reanchored | None:
    """None when the hunks do not stand in that base as they should: then nothing moves, and nothing is applied."""
    text = "".join(lines)
    base = current.as_base(text)
    moved = LiveFile(base, "", hunks=hunks)
    if split_lines(text) != lines or moved.text_with("applied") != current.text:
        return None
    proposed = moved.text_with(*ALL_STATES)
    touches = file.touches
    if touches and file.is_undecided:
        step = changes(split_lines(file.text), split_lines(proposed))
        touches = carry_over(touches, step)
    return Reanchored(base, proposed, hunks, touches, anchor, conflicting)
