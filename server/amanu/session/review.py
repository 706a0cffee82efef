"""The requests about one session's edits: decide, revise, undo, see what changed.

A scope names hunks of many proposals; undoing goes from the newest to the oldest, each as if what came after it had
been undone before.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from amanu.proposals.model import STATES_AFTER, FileVersion, LiveFile
from amanu.proposals.undo import mark_hunks
from amanu.session.core import SessionCore
from amanu.workspace.diff import unified
from amanu.workspace.text_file import FileText
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, HunkState, Proposal

Wanted = Mapping[str, Collection[str]]
"""Hunks by proposal."""


@dataclass
class _Way:
    """What happens to one file, from what it was before to what it is after."""

    old_form: FileVersion
    new_form: FileVersion
    undone: list[r.UndoneHunk] = field(default_factory=list[r.UndoneHunk])
    unchanged: list[r.SkippedHunk] = field(default_factory=list[r.SkippedHunk])


class SessionEdits:
    """One method per request, raising `AmanuError`."""

    def __init__(self, core: SessionCore) -> None:
        self._proposals = core.proposals
        self._approvals = core.approvals
        self._state = core.state
        self._emit = core.emit
        self._check = core.access.require_writable

    def proposal(self, proposal_id: str) -> Proposal:
        proposal = next(
            (candidate for candidate in self._state.proposals if candidate.proposal_id == proposal_id), None
        )
        if proposal is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return proposal

    async def resolve(self, params: r.ProposalResolveParams) -> r.ProposalResolveResult:
        """Decide hunks; accepted ones are in their file when this returns, or conflicted."""
        proposal = self._current(params.proposal_id, params.version)
        if self._too_soon(proposal):
            return r.ProposalResolveResult(status="tooSoon", proposal=proposal)
        proposal = await self._proposals.resolve(params.proposal_id, params.hunks)
        await self._emit.durable()
        return r.ProposalResolveResult(status="resolved", proposal=proposal)

    async def decide(self, params: r.ProposalDecideParams) -> r.ProposalDecideResult:
        """Decide whatever the scope has that this decision is for, of what the user saw; oldest first."""
        states, unreviewed = _DECIDED[params.decision]
        versions = {entry.proposal_id: entry.version for entry in params.seen}
        selection = self.wanted(params.scope, states)
        selected = {
            proposal_id: [
                hunk.hunk_id
                for hunk in _hunks(self._proposals.get(proposal_id))
                if hunk.hunk_id in hunk_ids and not (unreviewed and hunk.reviewed)
            ]
            for proposal_id, hunk_ids in selection.items()
            if proposal_id in versions
        }
        previous = [self._current(proposal_id, versions[proposal_id]) for proposal_id in selected]
        if any(map(self._too_soon, previous)):
            return r.ProposalDecideResult(status="tooSoon", proposals=previous)
        for proposal_id, hunk_ids in selected.items():
            decisions = [r.HunkDecision(hunk_id=hunk_id, decision=params.decision) for hunk_id in hunk_ids]
            if decisions:
                await self._proposals.resolve(proposal_id, decisions)
        await self._emit.durable()
        return r.ProposalDecideResult(status="resolved", proposals=list(map(self._proposals.get, selected)))

    async def revise(self, params: r.ProposalReviseParams) -> r.ProposalResult:
        """The user's own text for an open hunk, without deciding it."""
        self._current(params.proposal_id, params.version)
        proposal = await self._proposals.revise(params.proposal_id, params.hunk_id, params.new_text)
        await self._emit.durable()
        return r.ProposalResult(proposal=proposal)

    async def set_review(self, params: r.ProposalSetReviewParams) -> r.ProposalResult:
        """Review it before it is applied, or after."""
        proposal = self._current(params.proposal_id, params.version)
        if self._too_soon(proposal):
            raise AmanuError("proposalConflict", "That was too soon after the question appeared. Do it again.")
        is_after = params.review == "after"
        action = self._proposals.review_after if is_after else self._proposals.review_before
        proposal = await action(params.proposal_id)
        await self._emit.durable()
        return r.ProposalResult(proposal=proposal)

    async def undo(self, params: r.ProposalUndoParams) -> r.ProposalUndoResult:
        """Take back what the scope has applied, or with `dryRun` only say what that would do."""
        if params.scope.proposal_id is not None:
            self.proposal(params.scope.proposal_id)
        selection = self.wanted(params.scope, ("applied",))
        return r.ProposalUndoResult(files=await self.take_back(selection, dry_run=params.dry_run))

    async def take_back(self, selection: Wanted, *, dry_run: bool) -> list[r.UndoneFile]:
        """Undo these hunks, newest proposal first; one entry per file."""
        if dry_run:
            files = await self._rehearsed(selection)
        else:
            self._check()
            by_path: dict[Path, _Way] = {}
            for proposal_id in reversed(list(selection)):
                await self._take_back(proposal_id, selection[proposal_id], by_path)
            await self._emit.durable()
            files = list(by_path.values())
        return await asyncio.to_thread(lambda: [self._undone(file_undo) for file_undo in files])

    async def reject_open(self, turn_ids: Collection[str], reason: str) -> None:
        """Reject whatever these turns left undecided."""
        for turn_id in turn_ids:
            for proposal_id in self.wanted(r.EditScope(turn_id=turn_id), ("pending", "conflicted")):
                await self._proposals.reject_all(proposal_id, reason)

    async def diff(self, params: r.ProposalDiffParams) -> r.ProposalDiffResult:
        """What is applied of the scope: from the files as they would be without it to the files as they are. A hunk
        that cannot be told from what came later is a change of its own."""
        selection = self.wanted(params.scope, ("applied",))
        file_undos = await self._rehearsed(selection)
        steps = sorted(
            (
                (file_undo.new_form, file_undo.old_form)
                for file_undo in file_undos
                if file_undo.old_form != file_undo.new_form
            ),
            key=lambda forms: forms[1].path,
        )
        unchanged_ids = {hunk.hunk_id for file_undo in file_undos for hunk in file_undo.unchanged}
        for proposal_id in selection:
            for file in self._proposals.files(proposal_id):
                if _has(file, unchanged_ids):
                    alone = replace(file, hunks=[hunk for hunk in file.hunks if hunk.hunk_id in unchanged_ids])
                    steps.append((alone.version_with(()), alone.version_with(("applied",))))
        diffs = await asyncio.to_thread(lambda: [self._diff(*step) for step in steps])
        changes = [_change(*step, diff) for step, diff in zip(steps, diffs, strict=True)]
        return r.ProposalDiffResult(diff="".join(diffs), files=changes)

    # ------------------------------------------------------------------------------------------------

    def wanted(self, scope: r.EditScope, states: Collection[HunkState]) -> dict[str, Collection[str]]:
        """The scope's hunks in one of these states, by proposal, oldest first."""
        selection: dict[str, Collection[str]] = {}
        named = None if scope.hunk_ids is None else frozenset(scope.hunk_ids)
        for proposal in self._state.proposals:
            if scope.proposal_id not in (None, proposal.proposal_id) or scope.turn_id not in (None, proposal.turn_id):
                continue
            hunk_ids = dict.fromkeys(  # in order, and quick to look in: there may be thousands
                hunk.hunk_id
                for file in proposal.files
                if scope.path in (None, file.path, file.new_path)
                for hunk in file.hunks
                if hunk.state in states and (named is None or hunk.hunk_id in named)
            )
            if hunk_ids:
                selection[proposal.proposal_id] = hunk_ids
        return selection

    async def _take_back(self, proposal_id: str, hunk_ids: Collection[str], file_undos: dict[Path, _Way]) -> None:
        files = [file for file in self._proposals.files(proposal_id) if _has(file, hunk_ids)]
        texts_before = {file.base.path: await self._present(file) for file in files}
        reasons = {hunk.hunk_id: hunk.reason for hunk in await self._proposals.undo(proposal_id, hunk_ids)}
        for file in self._proposals.files(proposal_id):
            if file.base.path in texts_before:
                current = await self._present(file)
                _note(file_undos, proposal_id, file, texts_before[file.base.path], current, hunk_ids, reasons)

    async def _present(self, file: LiveFile) -> FileVersion:
        """Where the file is by our account, and what it says."""
        path = file.path_with(STATES_AFTER)
        found = await self._proposals.read_if_text(path)
        return FileVersion(path, None if found is None else found.text)

    async def _rehearsed(self, selection: Wanted) -> list[_Way]:
        """What `_take_back` of all of them would do."""
        file_undos: dict[Path, _Way] = {}
        simulated: dict[Path, FileText | None] = {}
        undone_ids = {hunk_id for hunk_ids in selection.values() for hunk_id in hunk_ids}
        for proposal_id in reversed(list(selection)):
            await self._rehearse(proposal_id, selection[proposal_id], undone_ids, simulated, file_undos)
        return list(file_undos.values())

    async def _rehearse(
        self,
        proposal_id: str,
        hunk_ids: Collection[str],
        undone_ids: Collection[str],
        simulated: dict[Path, FileText | None],
        file_undos: dict[Path, _Way],
    ) -> None:
        """What `_take_back` would do, with files as `shown` by the steps before; by then all of `gone` is undone."""
        for file in self._proposals.files(proposal_id):
            if not _has(file, hunk_ids):
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
            _note(file_undos, proposal_id, file, old_form, new_form, hunk_ids, turned.reasons)

    def _undone(self, file_undo: _Way) -> r.UndoneFile:
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

    def _current(self, proposal_id: str, version: int) -> Proposal:
        self._check()
        proposal = self._proposals.get(proposal_id)
        if version != proposal.version:
            raise AmanuError(
                "proposalConflict",
                "The proposal has changed since you saw it.",
                hint="Look at it again and decide.",
                details={"version": proposal.version},
            )
        return proposal

    def _too_soon(self, proposal: Proposal) -> bool:
        """The user cannot have read what they decide: they were not asked yet, or just now."""
        return any(map(self._asked_too_soon, proposal.tool_call_ids))

    def _asked_too_soon(self, call_id: str) -> bool:
        pending = self._approvals.pending(call_id)
        if pending is not None:
            return pending.too_soon
        item = self._state.item(call_id)
        return item is not None and item.kind == "toolCall" and item.state in ("validating", "awaitingApproval")


_DECIDED: dict[str, tuple[Collection[HunkState], bool]] = {
    "accept": (("pending", "conflicted"), False),
    "reject": (("pending", "conflicted"), False),
    "keep": (("applied",), True),
    "redo": (("reverted",), False),
}
"""What a decision is for: hunks in these states, and whether only those nobody has reviewed."""


def _hunks(proposal: Proposal) -> Iterable[Hunk]:
    return (hunk for file in proposal.files for hunk in file.hunks)


def _has(file: LiveFile, hunk_ids: Collection[str]) -> bool:
    return any(hunk.hunk_id in hunk_ids for hunk in file.hunks)


def _note(
    file_undos: dict[Path, _Way],
    proposal_id: str,
    file: LiveFile,
    old_form: FileVersion,
    new_form: FileVersion,
    hunk_ids: Collection[str],
    reasons: Mapping[str, str],
) -> None:
    """Add to what happens to the file that was there before."""
    file_undo = file_undos.pop(old_form.path, None) or _Way(old_form, new_form)
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


def _change(old_form: FileVersion, new_form: FileVersion, diff: str) -> r.FileChange:
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    change = _kind(old_form, new_form)
    return r.FileChange(
        path=str(old_form.path),
        change=change or "edit",
        new_path=str(new_form.path) if change == "rename" else None,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
    )
