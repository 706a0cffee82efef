"""Edits of other proposals that do not touch or adjoin any of a file's hunks are recorded, and applied to its base only
when it is next read: otherwise each of thirty edits of a file would re-anchor ten earlier proposals for nothing."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from amanu.workspace.diff import LineChange, compose
from amanu.workspace.text_file import FileText, split_lines


@dataclass
class DeferredEdits:
    """The edits of a file since its hunks were last re-anchored."""

    sha256: str
    """Of the file with these edits."""
    ranges: list[tuple[int, int]]
    """Lines [start, end) of each hunk in that text, in order, 0-based."""
    version: int | None = None
    """The document version of that text; None if no editor has the file open."""
    _edits: list[list[tuple[int, int, str]]] = field(default_factory=list[list[tuple[int, int, str]]])
    """Per step, (first line, number of lines, new text) in the text that the step before it left."""

    def add(self, edits: Sequence[LineChange], after: FileText) -> None:
        """Record one step; `after`: the file after it."""
        lines = split_lines(after.text)
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
        self.sha256, self.version = after.sha256, after.version

    def applied_to(self, text: str) -> str:
        """`text`, the file before the first step, with all of them."""
        for step in self._edits:
            text = compose(split_lines(text), step)
        return text
