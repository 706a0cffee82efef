"""Proposals while they are decided: files with their hunks, and which call wanted which hunk."""

import asyncio
import itertools
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal, get_args

from amanu.proposals.deferred_edits import DeferredEdits
from amanu.proposals.places import LiveHunk, live_hunks, placed
from amanu.proposals.rows import LiveRow, RowChange, RowKey, needed_paths
from amanu.text.span_edits import SpanEdit
from amanu.workspace.diff import LineChange, changes, compose
from amanu.workspace.hunks import line_counts
from amanu.workspace.text_file import FileText, line_count, sha256, split_lines
from amanu_protocol.base import LineRange
from amanu_protocol.items import Check, DraftRun, Hunk, HunkState, Proposal, ProposedFile

UNDECIDED: Collection[HunkState] = ("pending", "accepted")
ALL_STATES: Sequence[HunkState] = get_args(HunkState)
DRAFT_STATES: Collection[HunkState] = ("pending", "accepted", "applied", "undoing")
"""What a draft shows of its hunks."""
STATES_BEFORE: Collection[HunkState] = ("applied", "undoing")
"""What the file has while a decision is not carried out yet."""
STATES_AFTER: Collection[HunkState] = ("applied", "accepted")
"""What it has when it is."""
SMALL_TEXT = 64 * 1024
"""Characters that are compared in the event loop: under 5 ms."""
INLINE_CHARACTERS = 64 * 1024
"""Of a base text; a longer one is kept in a blob, and sent only to a client that asks for it."""
FILE_CHANGED = "The file changed after this was proposed."
FILE_GONE = "The file is no longer there."
FILE_MADE = "A file of that name was made meanwhile."
LINES_CHANGED = "The file changed after this was proposed, in these lines or next to them."
UNDONE_IN_FILE = "Its lines in the file are as they were before it."
"""Of a hunk that was taken back in the file: by the user or by a program, nobody can say."""


@dataclass(frozen=True)
class TouchedLines:
    """A call wrote lines [start, end) of the proposed text, 0-based; `start == end` where it removed lines."""

    call_id: str
    start: int
    end: int


@dataclass(frozen=True)
class AnchorRange:
    """Where a hunk is in a `AnchorText`: lines [start, end), 0-based."""

    start: int
    end: int
    applied: LiveHunk | None
    """The hunk as it was applied; None where its old lines stand."""


@dataclass(frozen=True)
class AnchorText:
    """The last text of a file in which every open hunk had its old lines and every applied one its new ones. What the
    user made of that text decides which still do (`reanchor.py`)."""

    lines: Sequence[str]
    ranges: Mapping[str, AnchorRange]
    unplaceable: Collection[str] = ()
    """Insertions whose neighbour lines are not known any more: they fit nowhere."""


@dataclass(frozen=True)
class LastApplied:
    """Base and hunks of a file when something of it was last applied or undone. Once all that came later is undone,
    that is how it stands again; what was moved there and back may have lost its place among equal neighbours."""

    base: FileText
    hunks: Sequence[LiveHunk]


@dataclass(frozen=True)
class FileEdit:
    """`base`, as `Proposals.text` gave it, becomes `text` (None: the file is deleted)."""

    base: FileText
    text: str | None
    new_path: Path | None = None
    """Where the file goes, resolved; None: it stays."""
    explanation: str = ""
    """What it is for, in the model's words: for the user."""


@dataclass(frozen=True)
class FileVersion:
    """What there is of a file at a moment: where it is, and its text; None when it is not there."""

    path: Path
    text: str | None


@dataclass
class LiveFile:
    """The change to one file: `base` → `text`."""

    base: FileText
    text: str
    delete: bool = False
    new_path: Path | None = None
    hunks: list[LiveHunk] = field(default_factory=list[LiveHunk])
    owners: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The calls that wanted a hunk; a hunk nobody is noted for belongs to all calls of the proposal."""
    touches: list[TouchedLines] = field(default_factory=list[TouchedLines])
    unsaved: bool = False
    anchor: AnchorText | None = None
    """None when it is the base with what is applied, as it is as long as nothing was touched."""
    last_applied: LastApplied | None = None
    conflicting: Collection[str] = ()
    """Open hunks whose lines the user changed: they cannot be accepted until that is undone."""
    displaced: Collection[str] = ()
    """Open hunks that wait in conflict because of the file as a whole: it is gone, or to be created, moved or deleted
    and no longer as it was when that was proposed."""
    loaded: bool = False
    """It was loaded and not seen since: of a change meanwhile nobody knows whether the user or a later proposal made
    it."""
    deferred: DeferredEdits | None = None
    """Edits its hunks were not re-anchored to yet; only of a settled file."""
    explanations: dict[str, str] = field(default_factory=dict[str, str])
    """By call."""
    checks: list[Check] = field(default_factory=list[Check])
    _index_by_id: tuple[list[LiveHunk], dict[str, int]] = field(
        default_factory=lambda: (list[LiveHunk](), dict[str, int]()), init=False, repr=False, compare=False
    )
    """Where each hunk is in a list of hunks, for as long as that is the list."""
    _told: tuple[object, ProposedFile] | None = field(default=None, init=False, repr=False, compare=False)
    """The file as it was last told, and all that this was made of."""
    renamed_line_counts: tuple[int, int] = (0, 0)
    """Lines added and removed of a file that is renamed, whose one hunk is all of it."""

    @property
    def change(self) -> Literal["edit", "create", "delete", "rename"]:
        if self.delete:
            return "delete"
        if self.new_path is not None:
            return "rename"
        return "edit" if self.base.exists or self.base.from_buffer else "create"

    @property
    def is_undecided(self) -> bool:
        """No hunk is decided yet."""
        return all(hunk.state == "pending" for hunk in self.hunks)

    @property
    def is_open(self) -> bool:
        """Some hunk is not decided yet."""
        return any(hunk.state == "pending" for hunk in self.hunks)

    @property
    def open_paths(self) -> list[Path]:
        """Where it is and comes to be, as long as it is open."""
        return [path for path in (self.base.path, self.new_path) if path is not None] if self.is_open else []

    @property
    def made_path(self) -> Path | None:
        """The path at which it makes a file; None if it makes none."""
        return {"create": self.base.path, "rename": self.new_path}.get(self.change)

    def has_path(self, path: Path) -> bool:
        """It is, or comes to be, at that path."""
        return path in (self.base.path, self.new_path)

    def proposed_file(self, path: Path) -> FileText:
        """The file as it is proposed, under one of its names; without hunks that are refused or in conflict."""
        if self.delete:
            return replace(self.base, path=path, text="", exists=False, from_buffer=False)
        text = self.text if self.is_undecided else self.text_with(*DRAFT_STATES)
        return replace(self.base, path=path, text=text, exists=True)

    def drafted_file(self, path: Path) -> FileText:
        """The file as the tools of a session that has drafted this see it: see `workspace.Drafts`."""
        gone = replace(self.base, path=path, text="", exists=False, from_buffer=False, draft=True)
        if self.delete or (self.new_path is not None and path != self.new_path):
            return gone
        text = self.proposed_file(path).text
        exists = self.base.exists and path == self.base.path
        digest = sha256(text.encode("utf-8", "surrogatepass"))
        return replace(gone, text=text, sha256=digest, exists=exists, from_buffer=True, unsaved=True)

    @property
    def waits(self) -> bool:
        """Some hunk waits for the user: to be decided, or to be reviewed."""
        return any(hunk.waits for hunk in self.hunks)

    @property
    def is_interrupted(self) -> bool:
        """Whether something was decided that is not carried out yet."""
        return any(hunk.state in ("accepted", "undoing") for hunk in self.hunks)

    @property
    def is_undone(self) -> bool:
        """Whether nothing of it is to be applied."""
        return all(hunk.state != "accepted" for hunk in self.hunks)

    def settle(self, fault: str | None) -> None:
        """Note that what was decided was carried out or, if there is a `fault`, that it was not."""
        done: dict[HunkState, HunkState] = {"accepted": "applied", "undoing": "reverted"}
        failed: dict[HunkState, HunkState] = {"accepted": "conflicted", "undoing": "applied"}
        states = done if fault is None else failed
        for hunk in list(self.hunks):
            if hunk.state in states:
                self.update_hunk(hunk.hunk_id, state=states[hunk.state], reason=fault)

    def leave_open(self, reason: str | None) -> None:
        """Note that it was not carried out, without a fault of its own: it is pending again, or applied again."""
        for hunk in list(self.hunks):
            if hunk.state == "accepted":
                self.update_hunk(hunk.hunk_id, state="pending", reason=reason, reviewed=False)
            elif hunk.state == "undoing":
                self.update_hunk(hunk.hunk_id, state="applied", reason=reason)

    def drop_open(self) -> None:
        """Forget the hunks that are not decided."""
        self.hunks = [hunk for hunk in self.hunks if hunk.state != "pending"]
        self.text = self.text_with(*ALL_STATES)

    def is_blocked(self, hunk: LiveHunk) -> bool:
        """Whether that hunk is in conflict, and cannot be accepted before that is over."""
        return hunk.hunk_id in self.conflicting or hunk.hunk_id in self.displaced

    def displace(self, why: str) -> bool:
        """Its open hunks are in conflict for that reason, which concerns the file as a whole; with "" they are open
        again. Returns whether that changed any."""
        if why:
            changed = {hunk.hunk_id for hunk in self.hunks if hunk.state == "pending"}
            update = {"state": "conflicted", "reason": why}
            self.displaced = {*self.displaced, *changed}
        else:
            changed = {hunk.hunk_id for hunk in self.hunks if hunk.state == "conflicted"} & {*self.displaced}
            update = {"state": "pending", "reason": None}
            self.displaced = ()
        for hunk_id in changed:
            self.update_hunk(hunk_id, **update)
        return bool(changed)

    def take_back(self, earlier: "LiveFile") -> bool:
        """Take the hunks back that were dropped since it was as `earlier`. False: it has changed too much for that."""
        if self.base.text != earlier.base.text or self.anchor is not earlier.anchor:
            return False
        current = {hunk.hunk_id: hunk for hunk in self.hunks}
        self.hunks = [current.get(hunk.hunk_id, hunk) for hunk in earlier.hunks]
        self.text = self.text_with(*ALL_STATES)
        return True

    def version_with(self, states: Collection[HunkState]) -> FileVersion:
        """The file with the hunks in one of these states."""
        is_changed = any(hunk.state in states for hunk in self.hunks)
        match self.change:
            case "create" if not is_changed:
                return FileVersion(self.base.path, None)
            case "delete":
                return FileVersion(self.base.path, None if is_changed else self.base.text)
            case "rename" if is_changed and self.new_path is not None:
                return FileVersion(self.new_path, self.text_with(*states))
            case _:
                return FileVersion(self.base.path, self.text_with(*states))

    @property
    def is_settled(self) -> bool:
        """No hunk is undecided or in conflict."""
        return not any(hunk.state in (*UNDECIDED, "conflicted") for hunk in self.hunks)

    def path_with(self, states: Collection[HunkState]) -> Path:
        """Where it is with the hunks in one of these states."""
        moved = self.new_path is not None and any(hunk.state in states for hunk in self.hunks)
        return self.new_path if moved and self.new_path is not None and not self.delete else self.base.path

    def text_with(self, *states: HunkState) -> str:
        """The base with the hunks in one of these states."""
        used = [
            (hunk.base_lines.start, hunk.base_lines.count, hunk.new_text) for hunk in self.hunks if hunk.state in states
        ]
        if not used:
            return self.base.text
        return compose(split_lines(self.base.text), used)

    def plain_hunks(self, *states: HunkState) -> list[LiveHunk] | None:
        """The hunks in one of these states; None if they may not be a line diff any more: one was edited or adapted, or
        the file is not just edited."""
        hunks = [hunk for hunk in self.hunks if hunk.state in states]
        edited = any(hunk.edited_by_user or hunk.applied_text is not None for hunk in hunks)
        return None if edited or self.change != "edit" else hunks

    def current_anchor(self) -> AnchorText:
        """The anchor text as it is now."""
        if self.anchor is not None:
            return self.anchor
        ranges: dict[str, AnchorRange] = {}
        lines: list[str] = []
        base, line = split_lines(self.base.text), 0
        for hunk in self.hunks:
            first = hunk.base_lines.start
            lines += base[line:first]
            line = hunk.base_lines.end
            applied = hunk.state in STATES_BEFORE
            if applied or hunk.hunk_id in self.conflicting:
                own_lines = split_lines(hunk.new_text if applied else hunk.old_text)
            else:
                own_lines = base[first:line]
            ranges[hunk.hunk_id] = AnchorRange(len(lines), len(lines) + len(own_lines), hunk if applied else None)
            lines += own_lines
        unsure = [hunk.hunk_id for hunk in self.hunks if hunk.hunk_id in self.conflicting and not hunk.old_text]
        return AnchorText([*lines, *base[line:]], ranges, unsure)

    def applied_ranges(self) -> list[tuple[int, int]]:
        """Lines [start, end) of each hunk in the base with what is applied, in order, 0-based."""
        ranges: list[tuple[int, int]] = []
        shift = 0
        for hunk in self.hunks:
            start = hunk.base_lines.start + shift
            count = line_count(hunk.new_text) if hunk.state == "applied" else hunk.base_lines.count
            ranges.append((start, start + count))
            shift += count - hunk.base_lines.count
        return ranges

    def rebase(self, text: str, hunks: list[LiveHunk]) -> None:
        """It starts from that text now, with these hunks of it."""
        self.base, self.hunks, self.anchor = self.base.as_base(text), hunks, None
        self.text = self.text_with(*ALL_STATES)

    def note_version(self, current: FileText) -> None:
        """The file was seen as another version of a document, perhaps of one that was just opened or closed, and that
        changed no line."""
        if (current.from_buffer, current.version) != (self.base.from_buffer, self.base.version):
            self.base = current.as_base(self.base.text)

    def remember_applied(self) -> None:
        """It was applied, or undone, as it is now."""
        self.last_applied = LastApplied(self.base, tuple(self.hunks))

    def update_anchor(self, undone: Collection[str] = ()) -> None:
        """Hunks were applied, or `undone`: that is part of the anchor text."""
        previous = self.anchor
        if previous is None:
            return
        ranges: dict[str, AnchorRange] = {}
        lines: list[str] = []
        line = 0
        for hunk in self.hunks:
            anchor_range = previous.ranges[hunk.hunk_id]
            lines += previous.lines[line : anchor_range.start]
            line = anchor_range.end
            is_applied = hunk.state == "applied" and anchor_range.applied is None
            is_undone = hunk.hunk_id in undone
            if is_applied or is_undone:
                own_lines = split_lines(hunk.new_text if is_applied else hunk.old_text)
            else:
                own_lines = list(previous.lines[anchor_range.start : anchor_range.end])
            applied = hunk if is_applied else None if is_undone else anchor_range.applied
            ranges[hunk.hunk_id] = AnchorRange(len(lines), len(lines) + len(own_lines), applied)
            lines += own_lines
        self.anchor = AnchorText([*lines, *previous.lines[line:]], ranges, previous.unplaceable)

    def pending_edits(self) -> list[SpanEdit]:
        """What leads from the form before to the form after, as edits of the text."""
        lines = split_lines(self.base.text)
        edits: list[SpanEdit] = []
        line, offset = 0, 0
        for hunk in self.hunks:
            if hunk.state not in ("accepted", "applied", "undoing"):
                continue
            offset += sum(map(len, lines[line : hunk.base_lines.start]))
            line = hunk.base_lines.end
            if hunk.state == "applied":
                offset += len(hunk.new_text)
                continue
            current, then = hunk.old_text, hunk.new_text
            if hunk.state == "undoing":
                current, then = then, current
            edits.append(SpanEdit(start=offset, end=offset + len(current), new_text=then))
            offset += len(current)
        return edits

    def propose(
        self,
        text: str | None,
        call_id: str,
        hunk_numbers: Iterator[int],
        prefix: str,
        new_path: Path | None = None,
        explanation: str = "",
    ) -> None:
        """Let `call_id` change the proposed text (None: delete the file) and place, computing hunks and owners anew.
        A hunk that stays the same keeps its id. CPU-bound; for big files run it in a thread."""
        self.new_path = None if text is None else new_path or self.new_path
        self.explanations[call_id] = explanation
        proposed_text = "" if text is None else text
        old_lines, new_lines = split_lines(self.base.text), split_lines(proposed_text)
        is_first = self.text == self.base.text
        step = changes(old_lines if is_first else split_lines(self.text), new_lines)
        self.touches = carry_over(self.touches, step)
        self.touches += [TouchedLines(call_id, change.new_start, change.new_end) for change in step]
        self.text, self.delete = proposed_text, text is None
        self.anchor = None
        same_hunks = {(hunk.base_lines.start, hunk.old_text, hunk.new_text): hunk for hunk in self.hunks}
        is_single_hunk = self.change != "edit"  # a file is created or deleted as one
        line_changes = step if is_first else changes(old_lines, new_lines)
        self.renamed_line_counts = (
            sum(change.new_end - change.new_start for change in line_changes),
            sum(change.old_end - change.old_start for change in line_changes),
        )
        all_changes = [LineChange(0, len(old_lines), 0, len(new_lines))] if is_single_hunk else line_changes
        # A move touches no line: each call that had a part in the file had a part in its one hunk.
        owners = [frozenset(self.explanations)] if is_single_hunk else _touching(all_changes, self.touches)
        self.hunks = []
        self.owners = {}
        for change, calls in zip(all_changes, owners, strict=True):
            old_text, new_text = (
                "".join(old_lines[change.old_start : change.old_end]),
                "".join(new_lines[change.new_start : change.new_end]),
            )
            same = same_hunks.get((change.old_start, old_text, new_text))
            hunk = LiveHunk(
                hunk_id=same.hunk_id if same else f"{prefix}.h{next(hunk_numbers)}",
                base_lines=LineRange(start=change.old_start, end=change.old_end),
                old_text=old_text,
                new_text=new_text,
                state="pending",
                edited_by_user=False,
                explanation=self._explanation(calls),
            )
            self.hunks.append(hunk)
            self.owners[hunk.hunk_id] = calls

    def _explanation(self, calls: Collection[str]) -> str:
        return " ".join(dict.fromkeys(text for call, text in self.explanations.items() if call in calls and text))

    def give_up_move(self) -> "LiveFile | None":
        """Let the file stay where it is. Returns a new, empty file for the path that it was to move to; None if it was
        not to move."""
        new_path, self.new_path = self.new_path, None
        if new_path is None:
            return None
        base = replace(missing_file(new_path), encoding=self.base.encoding, mode=self.base.mode)
        return LiveFile(base, "")

    def hunk(self, hunk_id: str) -> LiveHunk:
        """The hunk of that id, which is there."""
        return self.hunks[self._index_of(hunk_id)]

    def update_hunk(self, hunk_id: str, **changed: object) -> None:
        """Change fields of a hunk. A file may have thousands of hunks, each put several times."""
        index = self._index_of(hunk_id)
        hunks = list(self.hunks)
        hunks[index] = hunks[index].model_copy(update=changed)
        self.hunks, self._index_by_id = hunks, (hunks, self._index_by_id[1])

    def _index_of(self, hunk_id: str) -> int:
        if self._index_by_id[0] is not self.hunks:
            self._index_by_id = self.hunks, {hunk.hunk_id: index for index, hunk in enumerate(self.hunks)}
        return self._index_by_id[1][hunk_id]

    def copy(self) -> "LiveFile":
        """The same file, to be moved by itself."""
        copy = replace(self)
        copy._told = self._told
        return copy

    @property
    def placed_hunks(self) -> list[Hunk]:
        """The hunks with their places."""
        return list(self.wire().hunks)

    @property
    def _placed_version(self) -> int | None:
        """The document version that the places are of."""
        deferred = None if self.deferred is None else self.deferred.version
        return self.base.version if deferred is None or self.base.version is None else deferred

    def wire(self) -> ProposedFile:
        """The file as clients get it, made anew when it is another: one decision is told with hundreds of files that it
        does not concern."""
        places = None if self.deferred is None else (self.deferred.ranges, self.deferred.version)
        text = self.base, self.text, self.delete, self.new_path, self.unsaved
        made_of = text, tuple(self.hunks), tuple(self.checks), places
        if self._told is None or self._told[0] != made_of:
            self._told = made_of, self._wire()
        return self._told[1]

    def _wire(self) -> ProposedFile:
        base = self.base
        starts = None if self.deferred is None else [start for start, _ in self.deferred.ranges]
        added, removed = self.renamed_line_counts if self.change == "rename" else line_counts(self.hunks)
        return ProposedFile(
            path=str(base.path),
            change=self.change,
            new_path=None if self.new_path is None else str(self.new_path),
            mode=base.mode,
            checks=list(self.checks),
            base_sha256=base.sha256,
            base_version=self._placed_version,
            base_text=base.text,
            base_blob=base.sha256 if _in_blob(base) else None,
            hunks=placed(self.hunks, starts),
            added=added,
            removed=removed,
            encoding=base.encoding,
            final_newline=self.text.endswith(("\n", "\r")),
            unsaved=self.unsaved,
        )


@dataclass(frozen=True)
class TakenOver:
    """What a draft took over from an earlier one."""

    proposal_id: str
    """The earlier one."""
    file: LiveFile
    """As it was there."""
    path: Path
    """Of the file here."""


@dataclass
class LiveProposal:
    """A proposal of one session while it lives."""

    proposal_id: str
    turn_id: str
    step: int
    tool_call_ids: list[str]
    files: list[LiveFile]
    version: int = 0
    allowed_calls: set[str] = field(default_factory=set[str])
    """Calls that were allowed whole."""
    ended_calls: set[str] = field(default_factory=set[str])
    """Calls that have said what became of them: no hunk waits for these."""
    attempted: set[str] = field(default_factory=set[str])
    """Hunks that were accepted and are in conflict: they wait for nobody."""
    hunk_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    agent_id: str | None = None
    """The sub-agent that proposed it; None: the session's own agent, or the user."""
    draft: bool = False
    """The session's tools and commands see it, although nothing of it is decided."""
    runs: list[DraftRun] = field(default_factory=list[DraftRun])
    """Commands that ran on it."""
    rows: list[LiveRow] = field(default_factory=list[LiveRow])
    taken_over: list["TakenOver"] = field(default_factory=list["TakenOver"])
    """Of earlier drafts; not kept over a restart."""
    ran_on: object = None
    """Its `content` when the last of them ran."""

    @property
    def is_open_draft(self) -> bool:
        return self.draft and (any(file.is_open for file in self.files) or any(row.is_open for row in self.rows))

    async def propose(self, file: LiveFile, edit: FileEdit, call_id: str) -> None:
        """Let `call_id` change one of its files (`LiveFile.propose`)."""
        arguments = (edit.text, call_id, self.hunk_numbers, self.proposal_id, edit.new_path, edit.explanation)
        if len(file.base.text) + len(edit.text or "") < SMALL_TEXT:
            file.propose(*arguments)
        else:
            await asyncio.to_thread(file.propose, *arguments)

    @property
    def interrupted(self) -> "Sequence[LiveFile | LiveRow]":
        """The files and rows with decisions that are not carried out yet."""
        return [change for change in (*self.files, *self.rows) if change.is_interrupted]

    def hunks(self) -> Iterator[tuple[LiveFile, LiveHunk]]:
        for file in self.files:
            for hunk in list(file.hunks):
                yield file, hunk

    def content(self) -> object:
        """Something that differs when a draft's files come to be others."""
        files = [
            (
                file.base.path,
                file.new_path,
                file.base.sha256,
                [(hunk.hunk_id, hunk.new_text) for hunk in file.hunks if hunk.state in DRAFT_STATES],
            )
            for file in self.files
        ]
        return files, [row.change.digest for row in self.rows if row.state in DRAFT_STATES]

    def add_run(self, run: DraftRun, limit: int) -> None:
        """A command ran on it as it is now; so many are kept."""
        self.update_runs()
        self.runs = [*(other for other in self.runs if other.command != run.command), run][-limit:]
        self.ran_on = self.content()

    def update_runs(self) -> None:
        """Mark those that ran on something else than what it is now."""
        if self.runs and self.content() != self.ran_on:
            self.runs = [run.model_copy(update={"current": False}) for run in self.runs]

    def files_at(self, path: Path) -> list[LiveFile]:
        return [file for file in self.files if file.base.path == path]

    def owners(self, file: LiveFile, hunk: Hunk) -> frozenset[str]:
        return file.owners.get(hunk.hunk_id) or frozenset(self.tool_call_ids)

    def is_waiting(self, change: Hunk | LiveRow) -> bool:
        """Whether nobody has decided it yet."""
        change_id = change.hunk_id if isinstance(change, Hunk) else change.row_id
        return change.state in UNDECIDED or (change.state == "conflicted" and change_id not in self.attempted)

    def row_at(self, key: RowKey) -> LiveRow | None:
        """The open row with that key; None if there is none."""
        return next((row for row in self.rows if row.is_open and row.change.key == key), None)

    def put_row(self, row: LiveRow | None, change: RowChange, turn_id: str, call_id: str) -> None:
        """Let that call change `row`, or add a row if it is None."""
        if row is None:
            # random, not counted: the id of a row that was dropped is not given again
            row_id = f"{self.proposal_id}.r{token_hex(4)}"
            self.rows.append(LiveRow(row_id, turn_id, change, frozenset([call_id])))
        elif self.draft:
            row.redraft(change, turn_id, call_id)
        else:
            row.change, row.turn_id, row.owners = change, turn_id, row.owners | {call_id}
            row.state, row.reason = "pending", None

    def needs(self) -> Mapping[str, Sequence[str]]:
        """Row id → ids of the open rows and hunks without which it cannot be accepted; only rows that need any."""
        open_ids: dict[Path, list[str]] = {}
        for row in self.rows:
            for path in row.change.paths if row.is_open else ():
                open_ids.setdefault(path, []).append(row.row_id)
        new = {file.made_path for file in self.files}
        for file in self.files:
            for path in file.open_paths:
                open_ids.setdefault(path, []).extend(hunk.hunk_id for hunk in file.hunks if hunk.state == "pending")
        found: dict[str, list[str]] = {}
        for row in self.rows if open_ids else ():
            if row.state == "applied" or not (row.is_open or row.change.kind == "git"):
                continue
            paths = [path for path in needed_paths(row, open_ids) if row.change.kind != "mode" or path in new]
            if ids := [each for path in paths for each in open_ids.get(path, ()) if each != row.row_id]:
                found[row.row_id] = [*dict.fromkeys(ids)]
        return found

    def with_needed(self, ids: Collection[str]) -> list[str]:
        """These ids, and those of all that they need, directly or not."""
        found, todo = dict.fromkeys(ids), [*ids]
        needs = self.needs()
        while todo:
            new = [each for each in needs.get(todo.pop(), ()) if each not in found]
            found |= dict.fromkeys(new)
            todo += new
        return [*found]

    def wire(self) -> Proposal:
        undecided = any(self.is_waiting(hunk) for _, hunk in self.hunks()) or any(map(self.is_waiting, self.rows))
        needs = self.needs()
        return Proposal(
            proposal_id=self.proposal_id,
            turn_id=self.turn_id,
            tool_call_ids=list(self.tool_call_ids),
            version=self.version,
            state="pending" if undecided else "settled",
            files=[file.wire() for file in self.files],
            agent_id=self.agent_id,
            draft=self.draft,
            runs=list(self.runs),
            rows=[row.wire(needs.get(row.row_id, ())) for row in self.rows],
        )

    @classmethod
    def load(cls, proposal: Proposal) -> "LiveProposal":
        """As it was when its last event was written. Which call wanted which hunk is no longer known."""
        files: list[LiveFile] = []
        for file in proposal.files:
            base = FileText(
                Path(file.path),
                file.base_text or "",
                file.base_sha256,
                file.encoding,
                exists=file.change != "create",
                from_buffer=file.base_version is not None,
                version=file.base_version,
                mode=file.mode,
            )
            live = LiveFile(
                base,
                "",
                file.change == "delete",
                None if file.new_path is None else Path(file.new_path),
                live_hunks(file.hunks),
                unsaved=file.unsaved,
                checks=[check for check in file.checks if check.state == "done"],
                loaded=True,
            )
            live.text = live.text_with(*ALL_STATES)
            live.remember_applied()
            lines = split_lines(base.text)
            in_conflict = [hunk for hunk in live.hunks if hunk.state == "conflicted"]
            if live.change == "edit":
                live.conflicting = {hunk.hunk_id for hunk in in_conflict if _has_lost_place(hunk, lines)}
            else:
                live.displaced = {hunk.hunk_id for hunk in in_conflict}
            files.append(live)
        calls = list(proposal.tool_call_ids)
        attempted = {hunk.hunk_id for file in files for hunk in file.hunks if hunk.state == "conflicted"}
        attempted |= {row.row_id for row in proposal.rows if row.state == "conflicted"}
        loaded = cls(
            proposal.proposal_id,
            proposal.turn_id,
            -1,
            calls,
            files,
            proposal.version,
            attempted=attempted,
            agent_id=proposal.agent_id,
            draft=proposal.draft,
            runs=list(proposal.runs),
            rows=[LiveRow.load(row) for row in proposal.rows],
        )
        loaded.ran_on = loaded.content()
        return loaded


def carry_over(touches: Sequence[TouchedLines], step: Sequence[LineChange]) -> list[TouchedLines]:
    """The lines touched by earlier calls, moved by the changes of one more step, and widened where it changed them."""
    starts = [change.old_start for change in step]

    def moved(line: int, upwards: bool) -> int:
        before = bisect_right(starts, line) if upwards else bisect_left(starts, line)
        if before == 0:
            return line
        change = step[before - 1]
        if line < change.old_end:
            return change.new_end if upwards else change.new_start
        return line + change.new_end - change.old_end

    return [
        replace(touch, start=(start := moved(touch.start, False)), end=max(moved(touch.end, True), start))
        for touch in touches
    ]


def _touching(line_changes: Sequence[LineChange], touches: Iterable[TouchedLines]) -> list[frozenset[str]]:
    """For each change, in order, the calls that wrote lines of it or next to it. There may be thousands of both."""
    waiting = deque(sorted(touches, key=lambda touch: touch.start))
    near: list[TouchedLines] = []
    calls: list[frozenset[str]] = []
    for change in line_changes:
        while waiting and waiting[0].start <= change.new_end:
            near.append(waiting.popleft())
        near = [touch for touch in near if touch.end >= change.new_start]
        calls.append(frozenset(touch.call_id for touch in near))
    return calls


def missing_file(path: Path) -> FileText:
    """The base of a file that does not exist yet."""
    return FileText(path, "", sha256(b""), exists=False)


def _in_blob(base: FileText) -> bool:
    """Whether the base text goes into a blob: not that of a file in another encoding, whose hash is not the UTF-8's."""
    return len(base.text) > INLINE_CHARACTERS and (base.from_buffer or base.encoding == "utf-8")


def _has_lost_place(hunk: LiveHunk, base: Sequence[str]) -> bool:
    """Its old lines are not where it is, or it is an insertion whose neighbours were changed."""
    return "".join(base[hunk.base_lines.start : hunk.base_lines.end]) != hunk.old_text or (
        not hunk.old_text and hunk.reason == LINES_CHANGED
    )
