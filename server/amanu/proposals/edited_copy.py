"""An edited copy of a file's proposed text: the texts that the user gave to its open hunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from amanu.proposals.merge import merge
from amanu.proposals.model import LiveFile
from amanu.proposals.places import OPEN_STATES
from amanu.proposals.reanchor import Edit, line_edits
from amanu.workspace.text_file import line_end, split_lines
from amanu_protocol.items import PROPOSED_STATES, Hunk


@dataclass
class _EditedHunk:
    hunk: Hunk
    start: int
    """Its first line in the copy."""
    grown: int = 0
    """Lines it has more there, or fewer."""

    @property
    def end(self) -> int:
        lines = self.hunk.proposed_lines
        return self.start + lines.end - lines.start + self.grown


@dataclass(frozen=True)
class EditedCopy:
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """The new texts of the edited hunks, by id."""
    outside: bool = False
    """Something outside of every open hunk was edited."""


def copy_now(file: LiveFile, seen: str, text: str) -> str | None:
    """The copy of the present proposed text, for one that was made from an earlier text; None where the edits meet what
    has become of that. CPU-bound."""
    return merge(seen, text, file.text_with(*PROPOSED_STATES))


def edited_copy(file: LiveFile, text: str) -> EditedCopy:
    """Line ends alone are no edit: an editor makes those of a copy equal. CPU-bound."""
    proposed, copy = split_lines(file.text_with(*PROPOSED_STATES)), split_lines(text)
    edits = line_edits(list(map(_bare, proposed)), list(map(_bare, copy)))
    open_hunks = [hunk for hunk in file.placed_hunks if hunk.state in OPEN_STATES]
    edited: dict[str, _EditedHunk] = {}
    outside = False
    next_hunk, shift = 0, 0
    for edit in edits:
        while next_hunk < len(open_hunks) and open_hunks[next_hunk].proposed_lines.end < edit.low:
            next_hunk += 1
        hunk = _hunk_around(edit, open_hunks, next_hunk)
        grown = (edit.new_end - edit.new_start) - (edit.old_end - edit.old_start)
        if hunk is None:
            outside = True
        else:
            start = hunk.proposed_lines.start + shift
            edited.setdefault(hunk.hunk_id, _EditedHunk(hunk, start)).grown += grown
        shift += grown
    lines = _with_own_ends(proposed, copy, edits, line_end(file.base.text) or line_end(file.text) or "\n")
    texts = {hunk_id: "".join(lines[each.start : each.end]) for hunk_id, each in edited.items()}
    return EditedCopy({hunk_id: own for hunk_id, own in texts.items() if own != file.hunk(hunk_id).new_text}, outside)


def _hunk_around(edit: Edit, hunks: Sequence[Hunk], first: int) -> Hunk | None:
    """The first of these hunks from that one on that the edit is in, at one of the places that it may have."""
    size = edit.old_end - edit.old_start
    for index in range(first, len(hunks)):
        hunk, lines = hunks[index], hunks[index].proposed_lines
        if lines.start > edit.high:
            return None
        if max(lines.start, edit.low) + size <= min(lines.end, edit.high):
            return hunk
    return None


def _with_own_ends(proposed: Sequence[str], copy: Sequence[str], edits: Sequence[Edit], end: str) -> list[str]:
    """The lines of the copy: those that stayed with the line ends they had, the others with `end`."""
    lines: list[str] = []
    line = 0
    for edit in edits:
        lines += proposed[line : edit.old_start]
        lines += [_bare(new) + end if new != _bare(new) else new for new in copy[edit.new_start : edit.new_end]]
        line = edit.old_end
    lines += proposed[line:]
    return [own if own != _bare(own) else own + end for own in lines[:-1]] + lines[-1:]


def _bare(line: str) -> str:
    return line.rstrip("\r\n")
