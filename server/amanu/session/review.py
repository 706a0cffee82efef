"""The requests about one session's edits: decide, revise, undo, see what changed.

A scope can name hunks of many proposals. Undoing goes from the newest to the oldest, as if each later one had been
undone already.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from amanu.proposals.model import STATES_AFTER, FileVersion, LiveFile
from amanu.proposals.undo import mark_hunks
from amanu.session.core import SessionCore
from amanu.session.record_format import read_event
from amanu.storage.journal import Record
from amanu.text.display import file_list
from amanu.tools.shell.row_changes import NO_UNDO
from amanu.workspace.diff import unified
from amanu.workspace.text_file import FileText
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Hunk, HunkState, Proposal, Row, ToolCall


@dataclass(frozen=True)
class Selection:
    """Hunks and rows of one proposal, in order."""

    hunk_ids: Collection[str] = ()
    row_ids: Collection[str] = ()


Selections = Mapping[str, Selection]
"""Proposal id → selection, the oldest proposal first."""


@dataclass(frozen=True)
class TextChange:
    """A change of a file's text."""

    old: FileVersion
    new: FileVersion
    like: FileText
    """A version of the file, with its encoding and permission bits."""


@dataclass
class FileUndo:
    """What undoing does to one file."""

    old_form: FileVersion
    new_form: FileVersion
    like: FileText
    """A version of the file, with its encoding and permission bits."""
    undone: list[r.UndoneHunk] = field(default_factory=list[r.UndoneHunk])
    unchanged: list[r.SkippedHunk] = field(default_factory=list[r.SkippedHunk])


class SessionEdits:
    """One method per request, raising `AmanuError`."""

    def __init__(self, core: SessionCore) -> None:
        self._proposals = core.proposals
        self._approvals = core.approvals
        self._state = core.state
        self._emit = core.emit
        self._require_writable = core.access.require_writable
        self._is_plan = core.workspace.guard.is_plan
        self._journal = core.journal
        self._name = core.workspace.display_path

    def proposal(self, proposal_id: str) -> Proposal:
        proposal = next(
            (candidate for candidate in self._state.proposals if candidate.proposal_id == proposal_id), None
        )
        if proposal is None:
            raise AmanuError("proposalNotFound", f"This session has no proposal {proposal_id}.")
        return proposal

    async def resolve(self, params: r.ProposalResolveParams) -> r.ProposalResolveResult:
        """Decide hunks; accepted ones are in their file when this returns, or conflicted."""
        proposal = self.current_proposal(params.proposal_id, params.version)
        if self.too_soon(proposal):
            return r.ProposalResolveResult(status="tooSoon", proposal=proposal)
        with self._approvals.deciding():
            proposal = await self._proposals.resolve(params.proposal_id, params.hunks, params.rows)
        await self._emit.durable()
        return r.ProposalResolveResult(status="resolved", proposal=proposal)

    async def decide(self, params: r.ProposalDecideParams) -> r.ProposalDecideResult:
        """Apply one decision to all hunks of the scope that it fits and that the user has seen; oldest first."""
        states, unreviewed = _DECISION_SCOPE[params.decision]
        versions = {entry.proposal_id: entry.version for entry in params.seen}
        selected = {
            proposal_id: self._unreviewed(proposal_id, selection) if unreviewed else selection
            for proposal_id, selection in self.select(params.scope, states).items()
            if proposal_id in versions
        }
        previous = [self.current_proposal(proposal_id, versions[proposal_id]) for proposal_id in selected]
        if any(map(self.too_soon, previous)):
            return r.ProposalDecideResult(status="tooSoon", proposals=previous)
        with self._approvals.deciding():
            for proposal_id, selection in selected.items():
                hunks = [r.HunkDecision(hunk_id=hunk_id, decision=params.decision) for hunk_id in selection.hunk_ids]
                rows = [r.RowDecision(row_id=row_id, decision=params.decision) for row_id in selection.row_ids]
                if hunks or rows:
                    await self._proposals.resolve(proposal_id, hunks, rows)
        await self._emit.durable()
        return r.ProposalDecideResult(status="resolved", proposals=list(map(self._proposals.get, selected)))

    async def revise(self, params: r.ProposalReviseParams) -> r.ProposalReviseResult:
        """The user's own text for an open hunk, or for those of a file, without deciding it."""
        self.current_proposal(params.proposal_id, params.version)
        if params.path is None:
            proposal = await self._proposals.revise(params.proposal_id, params.hunk_id, params.new_text)
            outside = False
        else:
            seen = r.SeenProposal(proposal_id=params.proposal_id, version=params.version)
            proposal, outside = await self._proposals.revise_copy(
                seen, Path(params.path), params.new_text, params.seen_text
            )
        await self._emit.durable()
        return r.ProposalReviseResult(proposal=proposal, outside=outside)

    async def set_review(self, params: r.ProposalSetReviewParams) -> r.ProposalResult:
        """Review it before it is applied, or after."""
        proposal = self.current_proposal(params.proposal_id, params.version)
        if self.too_soon(proposal):
            raise AmanuError("proposalConflict", "Ignored: this came too soon after the question appeared. Try again.")
        is_after = params.review == "after"
        action = self._proposals.review_after if is_after else self._proposals.review_before
        with self._approvals.deciding():
            proposal = await action(params.proposal_id)
        await self._emit.durable()
        return r.ProposalResult(proposal=proposal)

    async def undo(self, params: r.ProposalUndoParams) -> r.ProposalUndoResult:
        """Take back what the scope has applied, or with `dryRun` only say what that would do."""
        if params.scope.proposal_id is not None:
            self.proposal(params.scope.proposal_id)
        selection = self.select(params.scope, ("applied",))
        files = await self.take_back(selection, dry_run=params.dry_run)
        return r.ProposalUndoResult(files=files, note=await self._not_undone_note(params.scope))

    async def _not_undone_note(self, scope: r.EditScope) -> str:
        """`ProposalUndoResult.note`."""
        if (scope.proposal_id, scope.path, scope.hunk_ids) != (None, None, None):
            return ""  # the user names what is to be undone
        names = await self._journal.read_through(lambda records: _not_undone(records, scope.turn_id))
        names = [*dict.fromkeys(names)]
        return f"Amanu cannot undo these: {file_list(names)}." if names else ""

    async def take_back(self, selection: Selections, *, dry_run: bool) -> list[r.UndoneFile]:
        """Undo these hunks and rows, newest proposal first; one entry per file and per row."""
        faults: Mapping[str, str] = {}
        if dry_run:
            files = await self._simulate(selection)
            row_ids = {row_id for each in selection.values() for row_id in each.row_ids}
            faults = await self._proposals.undo_faults([*reversed(list(selection))], row_ids)
        else:
            self._require_writable()
            by_path: dict[Path, FileUndo] = {}
            for proposal_id in reversed(list(selection)):
                await self._take_back_proposal(proposal_id, selection[proposal_id], by_path)
            await self._emit.durable()
            files = list(by_path.values())
        results = await asyncio.to_thread(lambda: [self._file_result(file_undo) for file_undo in files])
        for proposal_id in reversed(list(selection)):
            proposal, row_ids = self.proposal(proposal_id), selection[proposal_id].row_ids
            for row in [row for row in proposal.rows if row.row_id in row_ids]:
                fault = faults.get(row.row_id, "") if dry_run else row.reason or "It was not undone."
                is_undone = not fault if dry_run else row.state == "reverted"
                results.append(_row_result(proposal, row, "" if is_undone else fault))
        return results

    async def reject_open(self, turn_ids: Collection[str], reason: str) -> None:
        """Reject whatever these turns left undecided. What they took over from an earlier draft stays open there."""
        await self._proposals.drafts.rewind_rows(turn_ids, reason)
        await self._proposals.drafts.give_back(turn_ids, reason)
        for turn_id in turn_ids:
            for proposal_id in self.select(r.EditScope(turn_id=turn_id), ("pending", "conflicted")):
                await self._proposals.reject_all(proposal_id, reason)

    async def diff(self, params: r.ProposalDiffParams) -> r.ProposalDiffResult:
        """What the scope has applied: the difference between the files without it and the files as they are. A hunk
        that cannot be separated from later changes is shown as a change of its own."""
        steps = await self.applied_texts(self._applied(params.scope, unreviewed=params.unreviewed))
        diffs = await asyncio.to_thread(lambda: [self._diff(step.old, step.new) for step in steps])
        changes = [
            _change(step.old, step.new, diff, texts=params.texts) for step, diff in zip(steps, diffs, strict=True)
        ]
        return r.ProposalDiffResult(diff="".join(diffs), files=changes)

    async def applied_texts(self, selection: Selections) -> list[TextChange]:
        """The changes of text that these applied hunks made, without what the user has typed since."""
        file_undos = await self._simulate(selection)
        steps = sorted(
            (
                TextChange(file_undo.new_form, file_undo.old_form, file_undo.like)
                for file_undo in file_undos
                if file_undo.old_form != file_undo.new_form
            ),
            key=lambda step: step.new.path,
        )
        unchanged_ids = {hunk.hunk_id for file_undo in file_undos for hunk in file_undo.unchanged}
        for proposal_id in selection:
            for file in self._proposals.files(proposal_id):
                if _has_hunk(file, unchanged_ids):
                    alone = replace(file, hunks=[hunk for hunk in file.hunks if hunk.hunk_id in unchanged_ids])
                    steps.append(TextChange(alone.version_with(()), alone.version_with(("applied",)), file.base))
        return steps

    def applied_at(self, path: Path, *, unreviewed: bool) -> Selections:
        """The selection applied to the file at that path; only what nobody has kept, if `unreviewed`."""
        selections = self._applied(r.EditScope(path=str(path)), unreviewed=unreviewed)
        return {proposal_id: each for proposal_id, each in selections.items() if each.hunk_ids}

    async def present_text(self, path: Path) -> FileText | None:
        """See `Proposals.read_if_text`."""
        return await self._proposals.read_if_text(path)

    async def without(self, selection: Selections, path: Path, text: FileText | None) -> tuple[Path, FileText | None]:
        """The file, which is at that path and has that text, without these hunks: its path and text then."""
        simulated = {path: text}
        undos = await self._simulate(selection, simulated)
        old_path = next((undo.new_form.path for undo in undos if undo.old_form.path == path), path)
        return old_path, simulated.get(old_path, text)

    # ------------------------------------------------------------------------------------------------

    def _applied(self, scope: r.EditScope, *, unreviewed: bool) -> Selections:
        selections = self.select(scope, ("applied",))
        if not unreviewed:
            return selections
        return {proposal_id: self._unreviewed(proposal_id, each) for proposal_id, each in selections.items()}

    def select(self, scope: r.EditScope, states: Collection[HunkState]) -> dict[str, Selection]:
        """The scope's hunks and rows in one of these states. Edits of the session's plan do not change the user's
        files: they count only where they are open, or named. Raises `AmanuError` (proposalNotFound)."""
        if scope.proposal_id is not None:
            self.proposal(scope.proposal_id)
        with_plan = "pending" in states or (scope.proposal_id, scope.path, scope.hunk_ids) != (None, None, None)
        selections: dict[str, Selection] = {}
        names_some = (scope.hunk_ids, scope.row_ids) != (None, None)
        named = frozenset([*(scope.hunk_ids or ()), *(scope.row_ids or ())])
        for proposal in self._state.proposals:
            if scope.proposal_id not in (None, proposal.proposal_id) or scope.turn_id not in (None, proposal.turn_id):
                continue
            hunk_ids = dict.fromkeys(  # in order, and quick to look in: there may be thousands
                hunk.hunk_id
                for file in proposal.files
                if scope.path in (None, file.path, file.new_path) and (with_plan or not self._is_plan(Path(file.path)))
                for hunk in file.hunks
                if hunk.state in states and (not names_some or hunk.hunk_id in named)
            )
            row_ids = [
                row.row_id
                for row in proposal.rows
                if row.state in states
                and scope.path in (None, row.path, row.new_path)
                and (not names_some or row.row_id in named)
                and not ("pending" in states and row.undecidable)
            ]
            if hunk_ids or row_ids:
                selections[proposal.proposal_id] = Selection(hunk_ids, row_ids)
        return selections

    def _unreviewed(self, proposal_id: str, selection: Selection) -> Selection:
        proposal = self._proposals.get(proposal_id)
        reviewed = {hunk.hunk_id for hunk in _hunks(proposal) if hunk.reviewed}
        reviewed |= {row.row_id for row in proposal.rows if row.reviewed}
        return Selection(
            [each for each in selection.hunk_ids if each not in reviewed],
            [each for each in selection.row_ids if each not in reviewed],
        )

    async def _take_back_proposal(
        self, proposal_id: str, selection: Selection, file_undos: dict[Path, FileUndo]
    ) -> None:
        hunk_ids = selection.hunk_ids
        files = [file for file in self._proposals.files(proposal_id) if _has_hunk(file, hunk_ids)]
        texts_before = {file.base.path: await self._current_version(file) for file in files}
        skipped = await self._proposals.undo(proposal_id, hunk_ids, selection.row_ids)
        reasons = {hunk.hunk_id: hunk.reason for hunk in skipped}
        for file in self._proposals.files(proposal_id):
            if file.base.path in texts_before:
                current = await self._current_version(file)
                _record_undo(file_undos, proposal_id, file, texts_before[file.base.path], current, hunk_ids, reasons)

    async def _current_version(self, file: LiveFile) -> FileVersion:
        """The path at which the file should be now, and its text."""
        path = file.path_with(STATES_AFTER)
        file_text = await self._proposals.read_if_text(path)
        return FileVersion(path, None if file_text is None else file_text.text)

    async def _simulate(
        self, selection: Selections, simulated: dict[Path, FileText | None] | None = None
    ) -> list[FileUndo]:
        """The effect of undoing all of them. `simulated`: the texts of files before, and then after it; else they are
        read."""
        file_undos: dict[Path, FileUndo] = {}
        simulated = {} if simulated is None else simulated
        undone_ids = {hunk_id for each in selection.values() for hunk_id in each.hunk_ids}
        for proposal_id in reversed(list(selection)):
            hunk_ids = selection[proposal_id].hunk_ids
            await self._simulate_proposal(proposal_id, hunk_ids, undone_ids, simulated, file_undos)
        return list(file_undos.values())

    async def _simulate_proposal(
        self,
        proposal_id: str,
        hunk_ids: Collection[str],
        undone_ids: Collection[str],
        simulated: dict[Path, FileText | None],
        file_undos: dict[Path, FileUndo],
    ) -> None:
        """What undoing these hunks would do to the files in `simulated`, where the steps before have left them; in the
        end all of `undone_ids` are undone."""
        for file in self._proposals.files(proposal_id):
            if not _has_hunk(file, hunk_ids):
                continue
            path = file.path_with(STATES_AFTER)
            current = simulated[path] if path in simulated else await self._proposals.read_if_text(path)
            taken = self._proposals.removed_texts(file.base.path, undone_ids)
            turned = await asyncio.to_thread(mark_hunks, file, current, hunk_ids, (), taken)
            old_form = FileVersion(path, None if current is None else current.text)
            moved = any(hunk.state == "undoing" for hunk in turned.file.hunks)
            new_form = await asyncio.to_thread(turned.file.version_with, STATES_AFTER) if moved else old_form
            if new_form.path != path:
                simulated[path] = None
            text = (current or file.base).with_text(new_form.text) if new_form.text is not None else None
            simulated[new_form.path] = text
            _record_undo(file_undos, proposal_id, file, old_form, new_form, hunk_ids, turned.reasons)

    def _file_result(self, file_undo: FileUndo) -> r.UndoneFile:
        change = _kind(file_undo.old_form, file_undo.new_form)
        return r.UndoneFile(
            path=str(file_undo.old_form.path),
            new_path=str(file_undo.new_form.path) if change == "rename" else None,
            action=change or "none",
            diff=self._diff(file_undo.old_form, file_undo.new_form),
            undone=file_undo.undone,
            skipped=file_undo.unchanged,
        )

    def _diff(self, old_form: FileVersion, new_form: FileVersion) -> str:
        old_path, new_path = self._proposals.relative(old_form.path), self._proposals.relative(new_form.path)
        head = f"rename from {old_path}\nrename to {new_path}\n" if old_form.path != new_form.path else ""
        return head + unified(new_path, old_form.text or "", new_form.text or "")

    def current_proposal(self, proposal_id: str, version: int) -> Proposal:
        """The proposal, for a decision. Raises `AmanuError` if it is not the version that the user saw."""
        self._require_writable()
        proposal = self._proposals.get(proposal_id)
        if version != proposal.version:
            raise AmanuError(
                "proposalConflict",
                "The proposal has changed since you saw it.",
                hint="Review it again, then decide.",
                details={"version": proposal.version},
            )
        return proposal

    def too_soon(self, proposal: Proposal) -> bool:
        """Whether the user cannot have read it yet: they were not asked about it, or only just now."""
        return any(map(self._asked_too_soon, proposal.tool_call_ids))

    def _asked_too_soon(self, call_id: str) -> bool:
        if self._approvals.pending(call_id) is not None:
            return self._approvals.too_soon(call_id)
        item = self._state.item(call_id)
        return item is not None and item.kind == "toolCall" and item.state in ("validating", "awaitingApproval")


def _not_undone(records: Iterable[Record], turn_id: str | None) -> list[str]:
    """What the calls of that turn, or of all turns, changed for good."""
    names: list[str] = []
    for record in records:
        if '"notUndone":["' in record.event and '"kind":"itemCompleted"' in record.event:
            with contextlib.suppress(ValidationError):
                event = read_event(record)
                if isinstance(event, ItemCompleted) and isinstance(event.item, ToolCall):
                    names += event.item.not_undone if turn_id in (None, event.item.turn_id) else []
    return names


def _row_result(proposal: Proposal, row: Row, fault: str) -> r.UndoneFile:
    """The outcome of undoing a row. `fault`: why it is not undone; "" if it is."""
    is_git = row.kind == "git"
    action = "edit" if is_git else "delete" if row.before is None else "create" if row.after is None else "edit"
    reason = next((line.text for line in row.lines if line.text == NO_UNDO), fault)
    ids = {"proposal_id": proposal.proposal_id, "hunk_id": row.row_id}
    is_rename = row.new_path is not None
    return r.UndoneFile(
        path=f"{row.path}/.git" if is_git else row.new_path or row.path,
        new_path=row.path if is_rename and not reason else None,
        action="none" if reason else "rename" if is_rename else action,
        diff=f"{row.title}\n",
        undone=[] if reason else [r.UndoneHunk(**ids)],
        skipped=[r.SkippedHunk(**ids, reason=reason)] if reason else [],
    )


_DECISION_SCOPE: dict[str, tuple[Collection[HunkState], bool]] = {
    "accept": (("pending", "conflicted"), False),
    "reject": (("pending", "conflicted"), False),
    "keep": (("applied",), True),
    "redo": (("reverted",), False),
}
"""Decision → (states of hunks it applies to, whether only to those not reviewed yet)."""


def _hunks(proposal: Proposal) -> Iterable[Hunk]:
    return (hunk for file in proposal.files for hunk in file.hunks)


def _has_hunk(file: LiveFile, hunk_ids: Collection[str]) -> bool:
    return any(hunk.hunk_id in hunk_ids for hunk in file.hunks)


def _record_undo(
    file_undos: dict[Path, FileUndo],
    proposal_id: str,
    file: LiveFile,
    old_form: FileVersion,
    new_form: FileVersion,
    hunk_ids: Collection[str],
    reasons: Mapping[str, str],
) -> None:
    """Add this step to what happens to the file."""
    file_undo = file_undos.pop(old_form.path, None) or FileUndo(old_form, new_form, file.base)
    file_undo.new_form = new_form
    file_undos[new_form.path] = file_undo
    for hunk in file.hunks:
        if hunk.hunk_id in reasons:
            reason = reasons[hunk.hunk_id]
            file_undo.unchanged.append(r.SkippedHunk(proposal_id=proposal_id, hunk_id=hunk.hunk_id, reason=reason))
        elif hunk.hunk_id in hunk_ids:
            file_undo.undone.append(r.UndoneHunk(proposal_id=proposal_id, hunk_id=hunk.hunk_id))


def _kind(old_form: FileVersion, new_form: FileVersion) -> Literal["edit", "create", "delete", "rename"] | None:
    if old_form.path != new_form.path:
        return "rename"
    if old_form.text == new_form.text:
        return None
    return "create" if old_form.text is None else "delete" if new_form.text is None else "edit"


def _change(old_form: FileVersion, new_form: FileVersion, diff: str, *, texts: bool) -> r.FileChange:
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    change = _kind(old_form, new_form)
    return r.FileChange(
        path=str(old_form.path),
        change=change or "edit",
        new_path=str(new_form.path) if change == "rename" else None,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        before=old_form.text if texts else None,
        after=new_form.text if texts else None,
    )
