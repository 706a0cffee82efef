"""Proposals while they are decided: files with their hunks, and which call wanted which hunk."""

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from amanu.workspace.files import FileText, sha256, split_lines
from amanu.workspace.hunks import Change, changes, compose
from amanu_protocol.items import Hunk, HunkState, Proposal, ProposedFile
from amanu_protocol.requests import TextEdit

UNDECIDED: Collection[HunkState] = ("pending", "accepted")


@dataclass(frozen=True)
class Touch:
    """A call wrote lines [start, end) of the proposed text, 0-based; `start == end` where it removed lines."""

    call_id: str
    start: int
    end: int

    def meets(self, start: int, end: int) -> bool:
        return self.start <= end and start <= self.end


@dataclass
class DraftFile:
    """The change to one file: `base` → `text`."""

    base: FileText
    text: str
    delete: bool = False
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    owners: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The calls that wanted a hunk; a hunk nobody is noted for belongs to all calls of the proposal."""
    touches: list[Touch] = field(default_factory=list[Touch])
    unsaved: bool = False

    @property
    def change(self) -> Literal["edit", "create", "delete"]:
        if self.delete:
            return "delete"
        return "edit" if self.base.exists or self.base.from_buffer else "create"

    @property
    def untouched(self) -> bool:
        """No hunk is decided yet."""
        return all(hunk.state == "pending" for hunk in self.hunks)

    def having(self, *states: HunkState) -> str:
        """The base with the hunks in one of these states."""
        used = [(first_line(hunk), hunk.old_lines, hunk.new_text) for hunk in self.hunks if hunk.state in states]
        return compose(split_lines(self.base.text), used)

    def edits(self) -> list[TextEdit]:
        """The accepted hunks as edits of the text that has the applied ones."""
        lines = split_lines(self.base.text)
        edits: list[TextEdit] = []
        line, offset = 0, 0
        for hunk in self.hunks:
            if hunk.state not in ("accepted", "applied"):
                continue
            start = first_line(hunk)
            offset += sum(map(len, lines[line:start]))
            line = start + hunk.old_lines
            if hunk.state == "applied":
                offset += len(hunk.new_text)
                continue
            end = offset + len(hunk.old_text)
            edits.append(TextEdit(start=offset, end=end, new_text=hunk.new_text))
            offset = end
        return edits

    def propose(self, text: str | None, call_id: str, ids: Iterator[int], prefix: str) -> None:
        """Let `call_id` change the proposed text (None: delete the file), computing hunks and owners anew.
        A hunk that stays the same keeps its id. CPU-bound; for big files run it in a thread."""
        new = "" if text is None else text
        before, after = split_lines(self.base.text), split_lines(new)
        first = self.text == self.base.text
        step = changes(before if first else split_lines(self.text), after)
        self.touches = [_through(touch, step) for touch in self.touches]
        self.touches += [Touch(call_id, each.new, each.new_end) for each in step]
        self.text, self.delete = new, text is None
        known = {(first_line(hunk), hunk.old_text, hunk.new_text): hunk for hunk in self.hunks}
        whole = self.change != "edit"  # a file is created or deleted as one
        found = [Change(0, len(before), 0, len(after))] if whole else step if first else changes(before, after)
        self.hunks = []
        self.owners = {}
        for each in found:
            old_text, new_text = "".join(before[each.old : each.old_end]), "".join(after[each.new : each.new_end])
            same = known.get((each.old, old_text, new_text))
            hunk = Hunk(
                hunk_id=same.hunk_id if same else f"{prefix}.h{next(ids)}",
                old_start=each.old + (each.old_end > each.old),
                old_lines=each.old_end - each.old,
                new_start=each.new + (each.new_end > each.new),
                new_lines=each.new_end - each.new,
                old_text=old_text,
                new_text=new_text,
                state="pending",
                edited_by_person=False,
            )
            self.hunks.append(hunk)
            self.owners[hunk.hunk_id] = frozenset(
                touch.call_id for touch in self.touches if whole or touch.meets(each.new, each.new_end)
            )

    def put(self, hunk_id: str, **changed: object) -> None:
        """Change fields of a hunk; where lines come to stand in the proposed text is counted anew."""
        shift = 0
        for at, hunk in enumerate(self.hunks):
            if hunk.hunk_id == hunk_id:
                hunk = hunk.model_copy(update=changed)
                hunk = hunk.model_copy(update={"new_lines": len(split_lines(hunk.new_text))})
            start = first_line(hunk) + shift + (hunk.new_lines > 0)
            self.hunks[at] = hunk.model_copy(update={"new_start": start})
            shift += hunk.new_lines - hunk.old_lines

    def wire(self) -> ProposedFile:
        base = self.base
        return ProposedFile(
            path=str(base.path),
            change=self.change,
            base_sha256=base.sha256,
            base_version=base.version,
            base_text=base.text,
            hunks=list(self.hunks),
            added=sum(hunk.new_lines for hunk in self.hunks),
            removed=sum(hunk.old_lines for hunk in self.hunks),
            encoding=base.encoding,
            final_newline=self.text.endswith(("\n", "\r")),
            unsaved=self.unsaved,
        )


@dataclass
class Draft:
    """A proposal of one session while it lives."""

    proposal_id: str
    turn_id: str
    step: int
    tool_call_ids: list[str]
    files: list[DraftFile]
    version: int = 0
    allowed: set[str] = field(default_factory=set[str])
    """Calls that were allowed whole."""
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def hunks(self) -> Iterator[tuple[DraftFile, Hunk]]:
        for file in self.files:
            for hunk in list(file.hunks):
                yield file, hunk

    def owners(self, file: DraftFile, hunk: Hunk) -> frozenset[str]:
        return file.owners.get(hunk.hunk_id) or frozenset(self.tool_call_ids)

    def wire(self) -> Proposal:
        undecided = any(hunk.state in UNDECIDED for _, hunk in self.hunks())
        return Proposal(
            proposal_id=self.proposal_id,
            turn_id=self.turn_id,
            tool_call_ids=list(self.tool_call_ids),
            version=self.version,
            state="pending" if undecided else "settled",
            files=[file.wire() for file in self.files],
        )

    @classmethod
    def load(cls, proposal: Proposal) -> "Draft":
        """As it was when its last event was written. Which call wanted which hunk is no longer known."""
        files: list[DraftFile] = []
        for file in proposal.files:
            base = FileText(
                Path(file.path),
                file.base_text or "",
                file.base_sha256,
                file.encoding,
                exists=file.change != "create",
                from_buffer=file.base_version is not None,
                version=file.base_version,
            )
            draft = DraftFile(base, "", file.change == "delete", list(file.hunks), unsaved=file.unsaved)
            draft.text = draft.having("pending", "accepted", "applied", "rejected", "conflicted", "revertedByPerson")
            files.append(draft)
        return cls(proposal.proposal_id, proposal.turn_id, -1, list(proposal.tool_call_ids), files, proposal.version)


def first_line(hunk: Hunk) -> int:
    """0-based index of its first line in the base. As in unified diffs, a hunk of no old lines names the line
    it comes after."""
    return hunk.old_start - 1 if hunk.old_lines else hunk.old_start


def nothing(path: Path) -> FileText:
    """The base of a file that does not exist yet."""
    return FileText(path, "", sha256(b""), exists=False)


def _through(touch: Touch, step: list[Change]) -> Touch:
    """Where the lines of an earlier call stand after a further one; widened by what that changed in them."""

    def moved(line: int, upwards: bool) -> int:
        shift = 0
        for each in step:
            if line < each.old or (line == each.old and not upwards):
                break
            if line < each.old_end:
                return each.new_end if upwards else each.new
            shift = each.new_end - each.old_end
        return line + shift

    return replace(touch, start=moved(touch.start, False), end=max(moved(touch.end, True), moved(touch.start, False)))
