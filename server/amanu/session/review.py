"""The requests about one session's edits: decide, revise, undo, see what changed.

A scope names hunks of many proposals; undoing goes from the newest to the oldest, each as if what came after it had
been undone before.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from amanu.proposals.model import AFTER, Form, LiveFile
from amanu.proposals.undo import turn
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

    before: Form
    after: Form
    undone: list[r.UndoneHunk] = field(default_factory=list[r.UndoneHunk])
    left: list[r.LeftHunk] = field(default_factory=list[r.LeftHunk])


class Edits:
    """One method per request, raising `AmanuError`."""

    def __init__(self, core: SessionCore) -> None:
        self._proposals = core.proposals
        self._approvals = core.approvals
        self._state = core.state
        self._emit = core.emit
        self._check = core.access.require_writable

    def proposal(self, proposal_id: str) -> Proposal:
        found = next((each for each in self._state.proposals if each.proposal_id == proposal_id), None)
        if found is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return found

    async def resolve(self, params: r.ProposalResolveParams) -> r.ProposalResolveResult:
        """Decide hunks; accepted ones are in their file when this returns, or conflicted."""
        proposal = self._current(params.proposal_id, params.version)
        if self._too_soon(proposal):
            return r.ProposalResolveResult(status="tooSoon", proposal=proposal)
        proposal = await self._proposals.resolve(params.proposal_id, params.hunks)
        await self._emit.durable()
        return r.ProposalResolveResult(status="resolved", proposal=proposal)

    async def decide(self, params: r.ProposalDecideParams) -> r.ProposalDecideResult:
        """Decide whatever the scope has that this decision is for, of what the person saw; oldest first."""
        states, unreviewed = _DECIDED[params.decision]
        seen = {each.proposal_id: each.version for each in params.seen}
        found = self.wanted(params.scope, states)
        wanted = {
            proposal_id: [
                hunk.hunk_id
                for hunk in _hunks(self._proposals.get(proposal_id))
                if hunk.hunk_id in hunk_ids and not (unreviewed and hunk.reviewed)
            ]
            for proposal_id, hunk_ids in found.items()
            if proposal_id in seen
        }
        before = [self._current(proposal_id, seen[proposal_id]) for proposal_id in wanted]
        if any(map(self._too_soon, before)):
            return r.ProposalDecideResult(status="tooSoon", proposals=before)
        for proposal_id, hunk_ids in wanted.items():
            decisions = [r.HunkDecision(hunk_id=each, decision=params.decision) for each in hunk_ids]
            if decisions:
                await self._proposals.resolve(proposal_id, decisions)
        await self._emit.durable()
        return r.ProposalDecideResult(status="resolved", proposals=list(map(self._proposals.get, wanted)))

    async def revise(self, params: r.ProposalReviseParams) -> r.ProposalResult:
        """The person's own text for an open hunk, without deciding it."""
        self._current(params.proposal_id, params.version)
        proposal = await self._proposals.revise(params.proposal_id, params.hunk_id, params.new_text)
        await self._emit.durable()
        return r.ProposalResult(proposal=proposal)

    async def set_review(self, params: r.ProposalSetReviewParams) -> r.ProposalResult:
        """Review it before it is applied, or after."""
        proposal = self._current(params.proposal_id, params.version)
        if self._too_soon(proposal):
            raise AmanuError("proposalConflict", "That was too soon after the question appeared. Do it again.")
        after = params.review == "after"
        work = self._proposals.review_after if after else self._proposals.review_before
        proposal = await work(params.proposal_id)
        await self._emit.durable()
        return r.ProposalResult(proposal=proposal)

    async def undo(self, params: r.ProposalUndoParams) -> r.ProposalUndoResult:
        """Take back what the scope has applied, or with `dryRun` only say what that would do."""
        if params.scope.proposal_id is not None:
            self.proposal(params.scope.proposal_id)
        wanted = self.wanted(params.scope, ("applied",))
        return r.ProposalUndoResult(files=await self.take_back(wanted, dry_run=params.dry_run))

    async def take_back(self, wanted: Wanted, *, dry_run: bool) -> list[r.UndoneFile]:
        """Undo these hunks, newest proposal first; one entry per file."""
        if dry_run:
            found = await self._rehearsed(wanted)
        else:
            self._check()
            ways: dict[Path, _Way] = {}
            for proposal_id in reversed(list(wanted)):
                await self._take_back(proposal_id, wanted[proposal_id], ways)
            await self._emit.durable()
            found = list(ways.values())
        return await asyncio.to_thread(lambda: [self._undone(way) for way in found])

    async def reject_open(self, turn_ids: Collection[str], reason: str) -> None:
        """Reject whatever these turns left undecided."""
        for turn_id in turn_ids:
            for proposal_id in self.wanted(r.EditScope(turn_id=turn_id), ("pending", "conflicted")):
                await self._proposals.reject_all(proposal_id, reason)

    async def diff(self, params: r.ProposalDiffParams) -> r.ProposalDiffResult:
        """What is applied of the scope: from the files as they would be without it to the files as they are. A hunk
        that cannot be told from what came later is a change of its own."""
        wanted = self.wanted(params.scope, ("applied",))
        ways = await self._rehearsed(wanted)
        steps = sorted(
            ((way.after, way.before) for way in ways if way.before != way.after), key=lambda each: each[1].path
        )
        left = {each.hunk_id for way in ways for each in way.left}
        for proposal_id in wanted:
            for file in self._proposals.files(proposal_id):
                if _has(file, left):
                    alone = replace(file, hunks=[hunk for hunk in file.hunks if hunk.hunk_id in left])
                    steps.append((alone.form(()), alone.form(("applied",))))
        diffs = await asyncio.to_thread(lambda: [self._diff(*each) for each in steps])
        changes = [_change(*each, diff) for each, diff in zip(steps, diffs, strict=True)]
        return r.ProposalDiffResult(diff="".join(diffs), files=changes)

    # ------------------------------------------------------------------------------------------------

    def wanted(self, scope: r.EditScope, states: Collection[HunkState]) -> dict[str, Collection[str]]:
        """The scope's hunks in one of these states, by proposal, oldest first."""
        wanted: dict[str, Collection[str]] = {}
        named = None if scope.hunk_ids is None else frozenset(scope.hunk_ids)
        for proposal in self._state.proposals:
            if scope.proposal_id not in (None, proposal.proposal_id) or scope.turn_id not in (None, proposal.turn_id):
                continue
            found = dict.fromkeys(  # in order, and quick to look in: there may be thousands
                hunk.hunk_id
                for file in proposal.files
                if scope.path in (None, file.path, file.new_path)
                for hunk in file.hunks
                if hunk.state in states and (named is None or hunk.hunk_id in named)
            )
            if found:
                wanted[proposal.proposal_id] = found
        return wanted

    async def _take_back(self, proposal_id: str, hunk_ids: Collection[str], ways: dict[Path, _Way]) -> None:
        files = [file for file in self._proposals.files(proposal_id) if _has(file, hunk_ids)]
        before = {file.base.path: await self._present(file) for file in files}
        left = {each.hunk_id: each.reason for each in await self._proposals.undo(proposal_id, hunk_ids)}
        for file in self._proposals.files(proposal_id):
            if file.base.path in before:
                after = await self._present(file)
                _note(ways, proposal_id, file, before[file.base.path], after, hunk_ids, left)

    async def _present(self, file: LiveFile) -> Form:
        """Where the file is by our account, and what it says."""
        path = file.place(AFTER)
        found = await self._proposals.look(path)
        return Form(path, None if found is None else found.text)

    async def _rehearsed(self, wanted: Wanted) -> list[_Way]:
        """What `_take_back` of all of them would do."""
        ways: dict[Path, _Way] = {}
        shown: dict[Path, FileText | None] = {}
        gone = {hunk_id for hunk_ids in wanted.values() for hunk_id in hunk_ids}
        for proposal_id in reversed(list(wanted)):
            await self._rehearse(proposal_id, wanted[proposal_id], gone, shown, ways)
        return list(ways.values())

    async def _rehearse(
        self,
        proposal_id: str,
        hunk_ids: Collection[str],
        gone: Collection[str],
        shown: dict[Path, FileText | None],
        ways: dict[Path, _Way],
    ) -> None:
        """What `_take_back` would do, with files as `shown` by the steps before; by then all of `gone` is undone."""
        for file in self._proposals.files(proposal_id):
            if not _has(file, hunk_ids):
                continue
            path = file.place(AFTER)
            now = shown[path] if path in shown else await self._proposals.look(path)
            taken = self._proposals.taken(file.base.path, gone)
            turned = await asyncio.to_thread(turn, file, now, hunk_ids, (), taken)
            before = Form(path, None if now is None else now.text)
            moved = any(hunk.state == "undoing" for hunk in turned.file.hunks)
            after = await asyncio.to_thread(turned.file.form, AFTER) if moved else before
            if after.path != path:
                shown[path] = None
            text = (now or file.base).with_text(after.text) if after.text is not None else None
            shown[after.path] = text
            _note(ways, proposal_id, file, before, after, hunk_ids, turned.left)

    def _undone(self, way: _Way) -> r.UndoneFile:
        change = _kind(way.before, way.after)
        return r.UndoneFile(
            path=str(way.before.path),
            new_path=str(way.after.path) if change == "rename" else None,
            action=change or "none",
            diff=self._diff(way.before, way.after),
            undone=way.undone,
            left=way.left,
        )

    def _diff(self, before: Form, after: Form) -> str:
        old, new = self._proposals.relative(before.path), self._proposals.relative(after.path)
        head = f"rename from {old}\nrename to {new}\n" if before.path != after.path else ""
        return head + unified(new, before.text or "", after.text or "")

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
        """The person cannot have read what they decide: they were not asked yet, or just now."""
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
    "redo": (("revertedByPerson",), False),
}
"""What a decision is for: hunks in these states, and whether only those nobody has reviewed."""


def _hunks(proposal: Proposal) -> Iterable[Hunk]:
    return (hunk for file in proposal.files for hunk in file.hunks)


def _has(file: LiveFile, hunk_ids: Collection[str]) -> bool:
    return any(hunk.hunk_id in hunk_ids for hunk in file.hunks)


def _note(
    ways: dict[Path, _Way],
    proposal_id: str,
    file: LiveFile,
    before: Form,
    after: Form,
    hunk_ids: Collection[str],
    left: Mapping[str, str],
) -> None:
    """Add to what happens to the file that was there before."""
    way = ways.pop(before.path, None) or _Way(before, after)
    way.after = after
    ways[after.path] = way
    for hunk in file.hunks:
        if hunk.hunk_id in left:
            reason = left[hunk.hunk_id]
            way.left.append(r.LeftHunk(proposal_id=proposal_id, hunk_id=hunk.hunk_id, reason=reason))
        elif hunk.hunk_id in hunk_ids:
            way.undone.append(r.UndoneHunk(proposal_id=proposal_id, hunk_id=hunk.hunk_id))


def _kind(before: Form, after: Form) -> Literal["edit", "create", "delete", "rename"] | None:
    if before.path != after.path:
        return "rename"
    if before.text == after.text:
        return None
    return "create" if before.text is None else "delete" if after.text is None else "edit"


def _change(before: Form, after: Form, diff: str) -> r.FileChange:
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    change = _kind(before, after)
    return r.FileChange(
        path=str(before.path),
        change=change or "edit",
        new_path=str(after.path) if change == "rename" else None,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
    )
