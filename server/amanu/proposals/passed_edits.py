"""Edits of other proposals that come near none of a file's hunks are noted, and made to its base when that is next
looked at: after thirty edits of a file there would be ten earlier proposals to move along with each, for nothing."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from amanu.workspace.diff import LineChange, compose
from amanu.workspace.text_file import split_lines


@dataclass
class PassedEdits:
    """What a file has become since its hunks were last moved: the text of that hash."""

    sha256: str
    ranges: list[tuple[int, int]]
    """Lines [start, end) of each hunk in that text, in order, 0-based."""
    _edits: list[list[tuple[int, int, str]]] = field(default_factory=list[list[tuple[int, int, str]]])
    """Of each step (first line, number of lines, new text), each in the text that the one before it left."""

    def take(self, edits: Sequence[LineChange], lines: Sequence[str], sha256: str) -> None:
        """The text was changed, none of its hunks' lines, to these lines of that hash."""
        ends = [edit.old_end for edit in edits]
        shifts = [0, *accumulate(edit.new_end - edit.new_start - (edit.old_end - edit.old_start) for edit in edits)]
        moved = [(start, end, shifts[bisect_right(ends, start)]) for start, end in self.ranges]
        self.ranges = [(start + shift, end + shift) for start, end, shift in moved]
        self._edits.append(
            [
                (edit.old_start, edit.old_end - edit.old_start, "".join(lines[edit.new_start : edit.new_end]))
                for edit in edits
            ]
        )
        self.sha256 = sha256

    def made_to(self, text: str) -> str:
        """The text as it was at first, with the edits."""
        for step in self._edits:
            text = compose(split_lines(text), step)
        return text
