"""The proposals of one session: made by tools, decided by the user or a rule, applied at once, undone at will.

Edits of one step to one file are computed in call order, each as if its predecessors were accepted, and shown as one
proposal. Hunks stay open until decided, however long that takes; what is typed meanwhile moves them along
(`tracking.py`), and the file's text at that moment decides whether they still fit. What a rule applied is reviewed
afterwards: kept or undone. Both are states of the same hunks, and each can be turned into the other.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amanu.core.tool import CallContext, NothingToDo, ToolError
from amanu.proposals.apply import SavePreimage, lossy_message
from amanu.proposals.crash_recovery import interrupted_files, recover
from amanu.proposals.decisions import accept, carry_out, check_decision, holds_back, not_open, revise
from amanu.proposals.drafts import Drafts, changed_meanwhile, takes_draft
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import ALL_STATES, FileEdit, LiveFile, LiveProposal, missing_file
from amanu.proposals.report import report
from amanu.proposals.tracking import FileTracking
from amanu.proposals.writer import ProposalWriter
from amanu.system.tasks import run_to_completion
from amanu.workspace.diff import unified, unified_hunks
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Check, Hunk, HunkState, Proposal
from amanu_protocol.requests import HunkDecision

_SHARED_HUNK_SECONDS = 5.0
"""Seconds a call waits for those it shares a hunk with: all are decided by then, one may still be asked about anew."""
LISTED_STATES: Sequence[HunkState] = ("pending", "accepted", "applied", "conflicted", "undoing")
"""What a proposal still stands for."""


@dataclass(frozen=True)
class SkippedHunk:
    """A hunk that was left as it is, and why."""

    proposal_id: str
    hunk_id: str
    reason: str


class Proposals:
    """`on_change` hears of each new version of a proposal, in order; `save_preimage` is durable when it returns;
    `accept_change` is told each path that was changed, and does not raise. While `drafting`, what is proposed is a
    draft: later calls see it, whichever step they are of, until it is decided."""

    def __init__(
        self,
        workspace: Workspace,
        on_change: Callable[[Proposal], None],
        save_preimage: SavePreimage,
        accept_change: Callable[[Path], Awaitable[None]] | None = None,
        shared_hunk_seconds: float = _SHARED_HUNK_SECONDS,
        drafting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._workspace = workspace
        self._shared_hunk_seconds = shared_hunk_seconds
        self._drafting = drafting
        self._live = LiveProposals(workspace.shown_files)
        self.shown_files = self._live.shown_files
        self._tracking = FileTracking(workspace, self._live)
        self._live.listeners.append(on_change)
        self.drafts = Drafts(workspace, self._live, self._tracking)
        self._writer = ProposalWriter(workspace, self._live, self._tracking, save_preimage, accept_change)

    # Proposing --------------------------------------------------------------------------------------

    async def text(self, call: CallContext, path: Path) -> FileText:
        """What an edit of that call starts from: the file with what is drafted, and with the still undecided edits of
        earlier calls of the same step, else as the user sees it. A file that is not there is an empty one with
        `exists` False."""
        await self.drafts.follow(path)
        file = self.pending(call, path)
        if file is not None:
            return file.proposed_file(path)
        return await self.text_without_edits(path)

    async def text_for_command(self, call: CallContext, path: Path) -> FileText:
        """The file as a command of that call is to find it: like `text`, but not where it is moved away from."""
        text, file = await self.text(call, path), self.pending(call, path)
        is_moved_away = file is not None and not file.delete and file.new_path not in (None, path)
        return missing_file(path) if is_moved_away else text

    async def text_without_edits(self, path: Path) -> FileText:
        """The file as the user sees it; like `text` when it is not there."""
        return await self._workspace.read_if_exists(path) or missing_file(path)

    def pending(self, call: CallContext, path: Path) -> LiveFile | None:
        """What the draft, or earlier calls of the same step, want of the file at that path, or of the one they move
        there; not to be changed. None when they want nothing, or some of it is decided and it is no draft."""
        live = self._proposal_of_step(call, [path])
        return None if live is None else next(file for file in live.files if _is_pending(live, file, [path]))

    def pending_paths(self, call: CallContext) -> list[Path]:
        """The files of which the draft, or earlier calls of the same step, want something that is not decided."""
        files = [file for live in self._live if _is_seen(live, call) for file in live.files if _is_pending(live, file)]
        return [path for file in files for path in (file.base.path, file.new_path) if path is not None]

    async def propose(self, call: CallContext, edits: Sequence[FileEdit]) -> Proposal:
        """Propose the edits of a call. They join the undecided proposal of the same step that has one of the files; a
        draft joins that of its turn.

        Raises `ToolError` when nothing would change or the text moved since `text` gave it. Once it has begun it is not
        cancelled, like `resolve`: a thread would go on with hunks that nobody was told of."""
        async with self._live.lock:
            live = self._proposal_to_join(call, [edit.base.path for edit in edits])
            texts = await self.drafts.follow_earlier(live, edits)
            for edit in edits:
                self._check_edit(call, edit)
            return await run_to_completion(self._add_edits(live, edits, call.call_id, texts))

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve(self, proposal_id: str, decisions: Sequence[HunkDecision]) -> Proposal:
        """Take decisions on hunks and apply what is accepted, before returning: all files or none. Whatever is no
        known word is a refusal. A repeated decision changes nothing; a contradicting one is `proposalConflict`.

        Once it writes it is not cancelled: it ends, then the cancellation goes on."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            accepted = {decision.hunk_id for decision in decisions if decision.decision == "accept"}
            await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if hunk.hunk_id in accepted])
            hunks = {hunk.hunk_id: (file, hunk) for file, hunk in live.hunks()}
            for decision in decisions:
                check_decision(hunks, decision)
            return await run_to_completion(self._carry_out(live, decisions))

    async def accept_all(self, proposal_id: str, call_id: str | None = None, *, by_user: bool = True) -> Proposal:
        """Accept and apply every undecided hunk. With `call_id`: only what that call wrote; a hunk that several
        calls wrote waits until all of them are allowed or have ended, except in a draft, whose calls need no approval.
        Not `by_user`: a rule did it, the user reviews it afterwards."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            live.allowed_calls |= set(live.tool_call_ids if call_id is None else [call_id])
            texts = await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if _is_open(hunk)])
            free = live.allowed_calls | live.ended_calls
            chosen = [
                (file, hunk)
                for file, hunk in live.hunks()
                if _is_open(hunk)
                and ((owners := live.owners(file, hunk)) <= free or live.draft)
                and (call_id is None or call_id in owners)
            ]
            if not holds_back(live, chosen, self._workspace.display_path):
                for file, hunk in chosen:
                    # A plan is reviewed as a whole, when it is to be approved.
                    reviewed = by_user or self._workspace.guard.is_plan(file.base.path)
                    accept(live, file, hunk, reviewed=reviewed)
            return await run_to_completion(self._writer.apply(live, texts))

    async def wait_for_shared_hunks(self, call_id: str) -> None:
        """Until other calls of the step that wrote the same hunk had their say, if they soon do: what is told of it
        before would be that it is still open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._shared_hunk_seconds):
                while self._awaits_others(call_id):
                    await self._live.wait_for_next()

    def _awaits_others(self, call_id: str) -> bool:
        live = self._live.of_call(call_id)
        owned = [] if live is None else [(hunk, live.owners(file, hunk)) for file, hunk in live.hunks()]
        return (
            live is not None
            and not live.draft
            and any(
                live.is_waiting(hunk) and call_id in owners and not owners <= live.allowed_calls | live.ended_calls
                for hunk, owners in owned
            )
        )

    async def reject_all(
        self, proposal_id: str, reason: str | None, call_id: str | None = None, *, by_user: bool = True
    ) -> Proposal:
        """Reject every undecided hunk. With `call_id`: every one that call had a part in. Not `by_user`: a rule
        did it."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            for file, hunk in live.hunks():
                if live.is_waiting(hunk) and (call_id is None or call_id in live.owners(file, hunk)):
                    file.update_hunk(hunk.hunk_id, state="rejected", reason=reason, reviewed=by_user)
            return self._live.publish(live)

    async def revise(self, proposal_id: str, hunk_id: str, text: str) -> Proposal:
        """The user's own text for an open hunk; it stays open. `AmanuError` proposalConflict when it is not."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            file, hunk = next(((f, h) for f, h in live.hunks() if h.hunk_id == hunk_id), (None, None))
            if file is None or hunk is None:
                raise not_open()
            revise(file, hunk, text)
            file.text = await asyncio.to_thread(file.text_with, *ALL_STATES)
            return self._live.publish(live)

    async def catch_up(self, proposal_id: str) -> None:
        """Move what waits to be decided along with its files, as they are now."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if live.is_waiting(hunk)])

    async def review_after(self, proposal_id: str) -> Proposal:
        """Apply what is open; it is reviewed afterwards."""
        return await self.accept_all(proposal_id, by_user=False)

    async def review_before(self, proposal_id: str) -> Proposal:
        """Take back what was applied and not yet kept; it is open again."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            ids = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "applied" and not hunk.reviewed}
            await run_to_completion(self._writer.mark_and_apply(live, undo_ids=ids))
            for file, hunk in live.hunks():
                if hunk.hunk_id in ids and hunk.state == "reverted":
                    file.update_hunk(hunk.hunk_id, state="pending")
            return self._live.publish(live)

    async def undo(self, proposal_id: str, hunk_ids: Collection[str]) -> list[SkippedHunk]:
        """Take applied hunks back, all files or none; those that were left, with why."""
        return await self._undo_or_redo(proposal_id, hunk_ids, undo=True)

    async def redo(self, proposal_id: str, hunk_ids: Collection[str]) -> list[SkippedHunk]:
        """Apply hunks that were taken back or rejected."""
        return await self._undo_or_redo(proposal_id, hunk_ids, undo=False)

    # Looking ----------------------------------------------------------------------------------------

    def get(self, proposal_id: str) -> Proposal:
        """As it is now. `AmanuError` proposalNotFound."""
        return self._live.find(proposal_id).wire()

    def of_call(self, call_id: str) -> Proposal | None:
        """The proposal the call's edits are in."""
        live = self._live.of_call(call_id)
        return None if live is None else live.wire()

    def states_of_call(self, call_id: str) -> set[HunkState]:
        """The states of the hunks that call had a part in."""
        live = self._live.of_call(call_id)
        hunks = [] if live is None else [hunk for file, hunk in live.hunks() if call_id in live.owners(file, hunk)]
        return {hunk.state for hunk in hunks}

    def applied_files(self, call_id: str) -> int:
        """The number of files in which something of that call is applied."""
        live = self._live.of_call(call_id)
        hunks = [] if live is None else [(file, hunk) for file, hunk in live.hunks() if hunk.state == "applied"]
        return len({id(file) for file, hunk in hunks if live is not None and call_id in live.owners(file, hunk)})

    def files(self, proposal_id: str) -> Sequence[LiveFile]:
        """Its files; not to be changed."""
        return self._live.find(proposal_id).files

    def removed_texts(self, path: Path, except_ids: Collection[str]) -> list[str]:
        """What applied hunks took out of the file at that path; not those named."""
        return self._live.removed_texts(path, except_ids)

    async def read_if_text(self, path: Path) -> FileText | None:
        """The file as the user sees it; None when there is none, or none of text."""
        try:
            return await self._workspace.read_if_exists(path)
        except ToolError:
            return None

    def relative(self, path: Path) -> str:
        return self._workspace.relative(path)

    def report(self, tool_call_id: str) -> str:
        """For the model: what of that call was applied, refused and why, changed by the user, is open."""
        live = self._live.of_call(tool_call_id)
        return "" if live is None else report(live, tool_call_id, self._workspace.display_path)

    async def note_checks(
        self, proposal_id: str, path: Path, stage: Literal["proposed", "applied"], checks: Sequence[Check]
    ) -> None:
        """What checkers find of that file now, in the place of all that was noted about the same. The proposal's
        version stays: whoever is deciding just now decides on what they saw."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            for file in live.files_at(path):
                noted = [*(check for check in file.checks if check.about != stage), *checks]
                if noted != file.checks:
                    file.checks = noted
                    self._live.tell(live)

    async def review_report(self, proposal_id: str) -> str:
        """For the model: what became of all of a proposal."""
        async with self._live.lock:
            return report(self._live.find(proposal_id), None, self._workspace.display_path)

    async def settled_report(self, tool_call_id: str) -> str:
        """`report` of a call that ends now, when what is being applied has been."""
        async with self._live.lock:
            if (live := self._live.of_call(tool_call_id)) is not None:
                live.ended_calls.add(tool_call_id)
            return self.report(tool_call_id)

    def diff(self, proposal_id: str) -> str:
        """The proposed change as a unified diff, for people. What was rejected or taken back is left out."""
        return "".join(map(self._diff, self._live.find(proposal_id).files))

    # Life -------------------------------------------------------------------------------------------

    async def restore(self, proposals: Iterable[Proposal]) -> None:
        """Take over the proposals of a session that is opened again; what a crash interrupted comes to an end."""
        restored = list(proposals)
        self._live.restore(restored)
        for proposal in restored:
            if proposal.draft and proposal.state == "pending":
                self._live.find(proposal.proposal_id)
        for proposal in restored:
            checking = any(check.state == "running" for file in proposal.files for check in file.checks)
            if checking or any(hunk.state in ("accepted", "undoing") for file in proposal.files for hunk in file.hunks):
                live = self._live.find(proposal.proposal_id)
                files = interrupted_files(live)
                live.attempted |= {hunk.hunk_id for file in files for hunk in file.hunks if hunk.state == "accepted"}
                await self._workspace.overlay.refresh(*(file.base.path for file in files))
                await asyncio.to_thread(recover, self._workspace, files)
                self._live.publish(live)
        for proposal in [*self._live.stored.values(), *(live.wire() for live in self._live)]:
            if any(hunk.state in ("pending", "conflicted") for file in proposal.files for hunk in file.hunks):
                self._tracking.watch(proposal)

    async def wait_until_settled(self) -> None:
        """Return when nothing is being applied."""
        async with self._live.lock:
            pass

    async def close(self) -> None:
        """Move no hunks any more. Returns when nothing is being moved or applied."""
        self._tracking.close()
        await self.wait_until_settled()

    # ------------------------------------------------------------------------------------------------

    def _diff(self, file: LiveFile) -> str:
        path = self._workspace.relative(file.base.path)
        if file.new_path is None or file.version_with(LISTED_STATES).path == file.base.path:
            hunks = file.plain_hunks(*LISTED_STATES)
            if hunks is not None:
                return unified_hunks(path, file.base.text, hunks)
            return unified(path, file.base.text, file.text_with(*LISTED_STATES))
        new_path = self._workspace.relative(file.new_path)
        return f"rename {path} → {new_path}\n{unified(new_path, file.base.text, file.text_with(*LISTED_STATES))}"

    def _proposal_of_step(self, call: CallContext, paths: Sequence[Path]) -> LiveProposal | None:
        """The draft, or the proposal of an earlier call of the same step, that has one of the files, with nothing of it
        decided, or of a draft not all."""
        for live in reversed(self._live):
            if _is_seen(live, call) and any(_is_pending(live, file, paths) for file in live.files):
                return live
        return None

    def _proposal_to_join(self, call: CallContext, paths: Sequence[Path]) -> LiveProposal:
        """The proposal that edits of those files belong in; a new one where none is fit."""
        found = self._proposal_of_step(call, paths)
        is_draft = self._drafting() if found is None else found.draft
        is_draft = is_draft and not any(map(self._workspace.guard.is_admitted, paths))
        if is_draft:
            found = next((live for live in reversed(self._live) if takes_draft(live, call, paths)), None)
        if found is not None:
            return found
        proposal_id = f"p-{secrets.token_hex(6)}"
        return LiveProposal(proposal_id, call.turn_id, call.step, [], [], agent_id=_agent_id(call), draft=is_draft)

    def _check_edit(self, call: CallContext, edit: FileEdit) -> None:
        name = self._workspace.display_path(edit.base.path)
        if edit.base.lossy:
            raise ToolError(lossy_message(self._workspace, edit.base))
        if edit.text == edit.base.text and edit.new_path is None and (edit.base.exists or edit.base.from_buffer):
            raise NothingToDo(f"{name} already has exactly this content; nothing to change.")
        pending = self.pending(call, edit.base.path)
        if pending is not None and pending.proposed_file(edit.base.path).text != edit.base.text:
            raise changed_meanwhile(self._workspace, edit.base.path)
        if edit.text is not None:
            edit.base.encode(edit.text)

    async def _add_edits(
        self, live: LiveProposal, edits: Sequence[FileEdit], call_id: str, texts: Mapping[Path, FileText]
    ) -> Proposal:
        known = len(live.taken_over)
        self._live.add(live)
        for edit in edits:
            await self._add_edit(live, edit, call_id, texts)
            await asyncio.sleep(0)  # there may be hundreds
        if call_id not in live.tool_call_ids:
            live.tool_call_ids.append(call_id)
        proposal = self._live.publish(live)
        # Published last, so that a draft being taken over never looks decided.
        for earlier in dict.fromkeys(taken.proposal_id for taken in live.taken_over[known:]):
            self._live.publish(self._live.find(earlier))
        return proposal

    async def _add_edit(self, live: LiveProposal, edit: FileEdit, call_id: str, texts: Mapping[Path, FileText]) -> None:
        path = edit.base.path
        file = next((candidate for candidate in live.files if candidate.has_path(path)), None)
        if file is None:
            file = await self.drafts.carried_over(live, path, texts) or LiveFile(edit.base, edit.base.text)
            live.files.append(file)
        before = file.drafted_file(path)
        if file.change == "create" and (edit.text is None or edit.new_path is not None):
            live.files.remove(file)  # what is only proposed is deleted, or moved, by proposing it no more
            if edit.new_path is not None:
                file = LiveFile(missing_file(edit.new_path), "")
                live.files.append(file)
                await live.propose(file, replace(edit, new_path=None), call_id)
        else:
            await live.propose(file, edit, call_id)
        if live.draft:
            self._note_drafted(live, path, before)

    def _note_drafted(self, live: LiveProposal, path: Path, before: FileText) -> None:
        """The model knows the text that it drafted."""
        shown_files = self._live.shown_to(live)
        found = next((file for file in live.files if file.has_path(path)), None)
        after = None if found is None else found.drafted_file(path)
        known = None if after is None or not after.from_buffer else after.sha256
        shown_files.edited(path, before if before.from_buffer else None, known)

    async def _undo_or_redo(self, proposal_id: str, hunk_ids: Collection[str], *, undo: bool) -> list[SkippedHunk]:
        async with self._live.lock:
            live = self._live.find(proposal_id)
            files = [file for file, hunk in live.hunks() if hunk.hunk_id in hunk_ids]
            await self._tracking.catch_up(live, [file for file in files if self._tracking.follows(live, file)])
            marking = (
                self._writer.mark_and_apply(live, hunk_ids)
                if undo
                else self._writer.mark_and_apply(live, redo_ids=hunk_ids)
            )
            reasons = await run_to_completion(marking)
            target_states: Collection[HunkState] = ("reverted",) if undo else ("applied",)
            for _, hunk in live.hunks():
                if hunk.hunk_id in hunk_ids and hunk.state not in target_states:
                    reasons.setdefault(hunk.hunk_id, hunk.reason or "")
            return [SkippedHunk(proposal_id, hunk_id, reason) for hunk_id, reason in reasons.items()]

    async def _carry_out(self, live: LiveProposal, decisions: Sequence[HunkDecision]) -> Proposal:
        """What was found to be fit to be decided so."""
        undo_ids = {decision.hunk_id for decision in decisions if decision.decision == "undo"}
        redo_ids = {decision.hunk_id for decision in decisions if decision.decision == "redo"} - undo_ids
        await self._writer.mark(live, undo_ids, redo_ids)
        files = {hunk.hunk_id: file for file, hunk in live.hunks()}
        accepted = [decision.hunk_id for decision in decisions if decision.decision == "accept"]
        chosen = [(files[hunk_id], files[hunk_id].hunk(hunk_id)) for hunk_id in accepted]
        held_back = holds_back(live, chosen, self._workspace.display_path)
        for decision in decisions:
            if not (held_back and decision.decision == "accept"):
                carry_out(live, files[decision.hunk_id], decision)
            elif decision.new_text is not None:
                revise(files[decision.hunk_id], files[decision.hunk_id].hunk(decision.hunk_id), decision.new_text)
        return await self._writer.apply(live)


def _is_open(hunk: Hunk) -> bool:
    """Whether a yes is to it, too: it is undecided or in conflict."""
    return hunk.state in ("pending", "accepted", "conflicted")


def _is_seen(live: LiveProposal, call: CallContext) -> bool:
    """Whether that call works on what is undecided there."""
    return live.draft or (live.turn_id, live.agent_id, live.step) == (call.turn_id, _agent_id(call), call.step)


def _is_pending(live: LiveProposal, file: LiveFile, paths: Sequence[Path] | None = None) -> bool:
    """Whether it is about one of those files (None: whichever), and still to be decided."""
    is_pending = file.is_open if live.draft else file.is_undecided and bool(file.hunks)
    return is_pending and (paths is None or any(map(file.has_path, paths)))


def _agent_id(call: CallContext) -> str | None:
    return None if call.agent is None else call.agent.agent_id
