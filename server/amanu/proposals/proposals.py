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
from amanu.proposals.decisions import (
    accept,
    carry_out,
    carry_out_row,
    check_decision,
    check_row_decision,
    holds_back,
    not_open,
    reject_rows_without_needs,
    revise,
    revise_all,
    with_needed,
)
from amanu.proposals.drafts import Drafts, changed_meanwhile, takes_draft
from amanu.proposals.edited_copy import copy_now, edited_copy
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import ALL_STATES, SMALL_TEXT, FileEdit, LiveFile, LiveProposal, missing_file
from amanu.proposals.recovery import Recovery
from amanu.proposals.report import report
from amanu.proposals.row_plan import RowPlanner
from amanu.proposals.rows import OPEN, LiveRow, RowChange, RowKey
from amanu.proposals.text_plan import lossy_message
from amanu.proposals.tracking import FileTracking
from amanu.proposals.transaction import SavePreimage, Transactions
from amanu.proposals.writer import ProposalWriter
from amanu.system.tasks import run_to_completion
from amanu.text.display import one_line
from amanu.workspace.diff import unified, unified_lines
from amanu.workspace.git.staged import StagedFiles
from amanu.workspace.text_file import FileText, split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Check, Hunk, HunkState, Proposal
from amanu_protocol.requests import HunkDecision, RowDecision, SeenProposal

_SHARED_HUNK_SECONDS = 5.0
"""Seconds a call waits for those it shares a hunk with: all are decided by then, one may still be asked about anew."""
_NOT_REDONE = "Something else could not be applied again, so this was not either."
LISTED_STATES: Sequence[HunkState] = ("pending", "accepted", "applied", "conflicted", "undoing")
"""What a proposal still stands for."""


@dataclass(frozen=True)
class SkippedHunk:
    """A hunk that was left as it is, and why."""

    proposal_id: str
    hunk_id: str
    reason: str


async def _nothing() -> None:
    pass


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
        rows: RowPlanner | None = None,
        durable: Callable[[], Awaitable[None]] = _nothing,
        asked: Callable[[LiveProposal], bool] = lambda live: False,
        staged: StagedFiles | None = None,
    ) -> None:
        self._workspace = workspace
        self._recovery = Recovery(workspace, rows)
        self._shared_hunk_seconds = shared_hunk_seconds
        self._drafting = drafting
        self._live = LiveProposals(workspace.shown_files)
        self.shown_files = self._live.shown_files
        self._tracking = FileTracking(workspace, self._live, rows, asked, staged)
        self._live.listeners.append(on_change)
        self.drafts = Drafts(workspace, self._live, self._tracking, rows)
        transactions = Transactions(workspace, rows, save_preimage, durable, self._live.publish)
        self._writer = ProposalWriter(transactions, self._live, self._tracking, accept_change)

    # Proposing --------------------------------------------------------------------------------------

    async def text(self, call: CallContext, path: Path) -> FileText:
        """What an edit of that call starts from: the file with what is drafted, and with the still undecided edits of
        earlier calls of the same step, else as the user sees it. A file that is not there is an empty one with
        `exists` False. Raises `ToolError`, also for a file in a drafted new folder."""
        self._check_around(path)
        return await self._text(call, path)

    async def _text(self, call: CallContext, path: Path) -> FileText:
        await self.drafts.follow(path)
        file = self.pending(call, path)
        if file is not None:
            return file.proposed_file(path)
        return await self.text_without_edits(path)

    async def text_for_command(self, call: CallContext, path: Path) -> FileText:
        """The file as a command of that call is to find it: like `text`, but not where it is moved away from."""
        text, file = await self._text(call, path), self.pending(call, path)
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

    async def propose(
        self, call: CallContext, edits: Sequence[FileEdit], rows: Sequence[RowChange] = (), *, drafts: bool = True
    ) -> Proposal:
        """Propose the edits of a call, and what else it changes. They join the undecided proposal of the same step that
        has one of the files; a draft joins that of its turn. A row that is drafted already stays in its proposal; a row
        that takes the place of drafted text removes that text from the draft. Without `drafts` nothing is drafted: the
        user is asked at once, whatever the mode.

        Raises `ToolError` when nothing would change or the text moved since `text` gave it. Once it has begun it is not
        cancelled, like `resolve`: a thread would go on with hunks that nobody was told of."""
        async with self._live.lock:
            live = self._proposal_to_join(call, [edit.base.path for edit in edits], drafts=drafts)
            if rows and not live.draft:
                live = self._live.of_call(call.call_id) or live
            texts = await self.drafts.follow_earlier(live, edits)
            replaced = {change.key for change in rows}
            others = [row.change for row in self.drafts.open_rows() if row.change.key not in replaced]
            drafted = {part.key for change in others for part in change.parts}
            for edit in edits:
                self._check_edit(call, edit, drafted)
            if live.draft:
                self.drafts.drop_text([path for change in rows if change.key[0] == "path" for path in change.paths])
            owners = self.drafts.put_rows(live, rows, call)
            if owners and not edits and not live.rows:
                live = owners[-1]
            for owner in owners:
                if owner is not live:
                    self._live.publish(owner)
            return await run_to_completion(self._add_edits(live, edits, call.call_id, texts))

    async def put_rows(self, call: CallContext, rows: Sequence[RowChange]) -> None:
        """Replace the changes that the rows of that call stand for."""
        async with self._live.lock:
            if (live := self._live.of_call(call.call_id)) is not None:
                for change in rows:
                    live.put_row(live.row_at(change.key), change, call.turn_id, call.call_id)
                self._live.publish(live)

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve(
        self, proposal_id: str, decisions: Sequence[HunkDecision], row_decisions: Sequence[RowDecision] = ()
    ) -> Proposal:
        """Take decisions on hunks and rows and apply what is accepted, and what that needs, before returning: all files
        or none. An unknown word is a refusal. A repeated decision changes nothing; a contradicting one is
        `proposalConflict`.

        Once it writes it is not cancelled: it ends, then the cancellation goes on."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            decisions, row_decisions = with_needed(live, decisions, row_decisions)
            accepted = {decision.hunk_id for decision in decisions if decision.decision == "accept"}
            await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if hunk.hunk_id in accepted])
            hunks = {hunk.hunk_id: (file, hunk) for file, hunk in live.hunks()}
            for decision in decisions:
                check_decision(hunks, decision)
            rows = {row.row_id: row for row in live.rows}
            for row_decision in row_decisions:
                check_row_decision(rows, row_decision)
            return await run_to_completion(self._carry_out(live, decisions, row_decisions))

    async def accept_all(self, proposal_id: str, call_id: str | None = None, *, by_user: bool = True) -> Proposal:
        """Accept and apply every undecided hunk. With `call_id`: only what that call wrote; a hunk that several
        calls wrote waits until all of them are allowed or have ended, except in a draft, whose calls need no approval.
        Not `by_user`: a rule did it, the user reviews it afterwards."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            live.allowed_calls |= set(live.tool_call_ids if call_id is None else [call_id])
            reject_rows_without_needs(live, self._workspace.display_path)
            texts = await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if _is_open(hunk)])
            free = live.allowed_calls | live.ended_calls
            chosen = [
                (file, hunk)
                for file, hunk in live.hunks()
                if _is_open(hunk)
                and ((owners := live.owners(file, hunk)) <= free or live.draft)
                and (call_id is None or call_id in owners)
            ]
            rows = [
                row
                for row in live.rows
                if row.is_open and not row.undecidable and (call_id is None or call_id in row.owners)
            ]
            async with self._writer.exclusive(rows):
                faults = await self._writer.faults(live, rows)
                if not holds_back(live, chosen, rows, faults, self._workspace.display_path):
                    for file, hunk in chosen:
                        # A plan is reviewed as a whole, when it is to be approved.
                        reviewed = by_user or self._workspace.guard.is_plan(file.base.path)
                        accept(live, file, hunk, reviewed=reviewed)
                    for row in rows:
                        row.state, row.reason, row.reviewed = "accepted", None, by_user
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
            for row in live.rows:
                if row.is_open and (call_id is None or call_id in row.owners):
                    row.state, row.reason, row.reviewed = "rejected", reason, by_user
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

    async def revise_copy(
        self, seen: SeenProposal, path: Path, text: str, seen_text: str | None = None
    ) -> tuple[Proposal, bool]:
        """An edited copy of the proposed text of the file at that path, made from the version that was seen, or from
        `seen_text`: its open hunks get the texts they have there. Returns also whether something else was edited, which
        is not taken. No new version if no hunk was edited. `AmanuError` invalidParams if the proposal has no such file,
        proposalConflict if it has another version by now, or the edits meet what has become of `seen_text`."""
        async with self._live.lock:
            live = self._live.find(seen.proposal_id)
            if live.version != seen.version:
                raise AmanuError("proposalConflict", "The proposal has changed since you saw it.")
            file = next((file for file in live.files if file.base.path == path), None)
            file = file or next((file for file in live.files if file.has_path(path)), None)
            if file is None:
                name = self._workspace.display_path(path)
                raise AmanuError("invalidParams", f"The proposal does not change {one_line(name)}.")
            if seen_text is not None:
                merged = await asyncio.to_thread(copy_now, file, seen_text, text)
                if merged is None:
                    raise AmanuError("proposalConflict", "What you edited has changed since you saw it.")
                text = merged
            if len(file.base.text) + len(text) < SMALL_TEXT:
                copy = edited_copy(file, text)
            else:
                copy = await asyncio.to_thread(edited_copy, file, text)
            if not copy.texts:
                return live.wire(), copy.outside
            revise_all(file, copy.texts)
            file.text = await asyncio.to_thread(file.text_with, *ALL_STATES)
            return self._live.publish(live), copy.outside

    async def catch_up(self, proposal_id: str) -> None:
        """Move what waits to be decided along with its files, as they are now."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            files = [file for file, hunk in live.hunks() if live.is_waiting(hunk)]
            await run_to_completion(self._tracking.catch_up(live, files))

    async def moved_copies(self, proposal_id: str, hunk_ids: Collection[str]) -> tuple[int, Sequence[LiveFile]]:
        """Its version, and copies of its files in which one of these hunks waits, moved to their texts as they are
        now."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            files = await run_to_completion(self._tracking.moved_copies(live, hunk_ids))
            return live.version, files

    async def review_after(self, proposal_id: str) -> Proposal:
        """Apply what is open; it is reviewed afterwards."""
        return await self.accept_all(proposal_id, by_user=False)

    async def review_before(self, proposal_id: str) -> Proposal:
        """Take back what was applied and not yet kept; it is open again."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            ids = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "applied" and not hunk.reviewed}
            rows = [row for row in live.rows if row.state == "applied" and not row.reviewed]
            async with self._writer.exclusive(rows):
                for row in rows:
                    row.state = "undoing"
                await run_to_completion(self._writer.mark_and_apply(live, ids))
            for file, hunk in live.hunks():
                if hunk.hunk_id in ids and hunk.state == "reverted":
                    file.update_hunk(hunk.hunk_id, state="pending")
            for row in rows:
                row.state = "pending" if row.state == "reverted" else row.state
            return self._live.publish(live)

    async def undo(
        self, proposal_id: str, hunk_ids: Collection[str], row_ids: Collection[str] = ()
    ) -> list[SkippedHunk]:
        """Take applied hunks and rows back, all text files or none. Returns the hunks that were left, with why."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            rows = [row for row in live.rows if row.row_id in row_ids and row.state == "applied"]
            files = [file for file, hunk in live.hunks() if hunk.hunk_id in hunk_ids]
            await self._tracking.catch_up(live, [file for file in files if self._tracking.follows(live, file)])
            async with self._writer.exclusive(rows):
                # Must not be cancelled from here on, or the next decision would carry these out.
                for row in rows:
                    row.state = "undoing"
                reasons = await run_to_completion(self._writer.mark_and_apply(live, hunk_ids))
            for _, hunk in live.hunks():
                if hunk.hunk_id in hunk_ids and hunk.state != "reverted":
                    reasons.setdefault(hunk.hunk_id, hunk.reason or "")
            return [SkippedHunk(proposal_id, hunk_id, reason) for hunk_id, reason in reasons.items()]

    async def undo_faults(self, proposal_ids: Sequence[str], row_ids: Collection[str]) -> Mapping[str, str]:
        """Row id → why undo would leave the row as it is. `proposal_ids`: the proposals of these rows, newest first."""
        return await self._writer.undo_faults([*map(self._live.find, proposal_ids)], row_ids)

    # Looking ----------------------------------------------------------------------------------------

    def get(self, proposal_id: str) -> Proposal:
        """As it is now. `AmanuError` proposalNotFound."""
        return self._live.find(proposal_id).wire()

    def of_call(self, call_id: str) -> Proposal | None:
        """The proposal the call's edits are in."""
        live = self._live.of_call(call_id)
        return None if live is None else live.wire()

    def states_of_call(self, call_id: str) -> set[HunkState]:
        """The states of the hunks and rows that the call had a part in."""
        live = self._live.of_call(call_id)
        hunks = [] if live is None else [hunk for file, hunk in live.hunks() if call_id in live.owners(file, hunk)]
        return {each.state for each in (*hunks, *self.rows_of_call(call_id))}

    def rows_of_call(self, call_id: str) -> list[LiveRow]:
        """The rows that the call had a part in. The caller must not change them."""
        return [row for live in self._live for row in live.rows if call_id in row.owners]

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
            is_lost = any(row.kind == "git" and row.after is None and row.state in OPEN for row in proposal.rows)
            is_interrupted = any(change.state in ("accepted", "undoing") for change in proposal.changes)
            if not (checking or is_lost or is_interrupted):
                continue
            live = self._live.find(proposal.proposal_id)
            live.attempted |= {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "accepted"}
            await self._workspace.overlay.refresh(*(file.base.path for file in live.files if file.is_interrupted))
            await asyncio.to_thread(self._recovery.finish, live)
            for row in live.rows:
                if row.is_open and row.undecidable:
                    row.state, row.reason = "rejected", row.undecidable
            self._live.publish(live)
        known = [*self._live.stored.values(), *(live.wire() for live in self._live)]
        self._tracking.watch_again(known)

    def question_ended(self) -> None:
        """A question about some proposal is answered, or not asked any more."""
        self._tracking.question_ended()

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
                replaced = [(hunk.base_lines.start, hunk.base_lines.end, hunk.new_text) for hunk in hunks]
                return unified_lines(path, split_lines(file.base.text), replaced)
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

    def _proposal_to_join(self, call: CallContext, paths: Sequence[Path], *, drafts: bool) -> LiveProposal:
        """The proposal that edits of those files belong in; a new one where none is fit."""
        found = self._proposal_of_step(call, paths)
        is_draft = drafts and self._drafting() if found is None else found.draft
        is_draft = is_draft and not any(map(self._workspace.guard.is_admitted, paths))
        if is_draft:
            found = next((live for live in reversed(self._live) if takes_draft(live, call, paths)), None)
        if found is not None:
            return found
        proposal_id = f"p-{secrets.token_hex(6)}"
        return LiveProposal(proposal_id, call.turn_id, call.step, [], [], agent_id=_agent_id(call), draft=is_draft)

    def _check_edit(self, call: CallContext, edit: FileEdit, drafted: Collection[RowKey]) -> None:
        """`drafted`: keys of the drafted rows that stay."""
        name = self._workspace.display_path(edit.base.path)
        if edit.base.lossy:
            raise ToolError(lossy_message(self._workspace, edit.base))
        for path in filter(None, (edit.base.path, edit.new_path)):
            self._check_place(path, drafted)
        if edit.text == edit.base.text and edit.new_path is None and (edit.base.exists or edit.base.from_buffer):
            raise NothingToDo(f"{name} already has exactly this content; nothing to change.")
        pending = self.pending(call, edit.base.path)
        is_free = pending is not None and _is_free_again(pending, edit)
        if pending is not None and not is_free and pending.proposed_file(edit.base.path).text != edit.base.text:
            raise changed_meanwhile(self._workspace, edit.base.path)
        if edit.text is not None:
            edit.base.encode(edit.text)

    def _check_place(self, path: Path, drafted: Collection[RowKey]) -> None:
        """Raise `ToolError` if a drafted row has something else than text there, or the folder that would have it."""
        name = self._workspace.display_path(path)
        if ("path", path) in drafted:
            raise ToolError(
                f"A command has drafted another version of {name}, which is not text. Use a command to change it."
            )
        self._check_around(path)

    def _check_around(self, path: Path) -> None:
        """Raise `ToolError` if the path is in a drafted new folder."""
        if (tree := self.drafts.tree_around(path)) is not None:
            name, folder = map(self._workspace.display_path, (path, tree.path))
            raise ToolError(
                f"A command has drafted the new folder {folder}, which is decided as a whole. Use a command to change "
                f"{name}."
            )

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
        if _is_free_again(file, edit):
            text = file.proposed_file(path).text
            if (moved := file.give_up_move()) is not None:
                live.files.append(moved)
                await live.propose(moved, FileEdit(moved.base, text), call_id)
        if live.draft and (edit.text is None or edit.new_path is not None):
            self.drafts.drop_bits(path)
        if file.change == "create" and (edit.text is None or edit.new_path is not None):
            live.files.remove(file)  # what is only proposed is deleted, or moved, by proposing it no more
            if edit.new_path is not None:
                file = LiveFile(replace(missing_file(edit.new_path), encoding=file.base.encoding), "")
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

    async def _carry_out(
        self, live: LiveProposal, decisions: Sequence[HunkDecision], row_decisions: Sequence[RowDecision]
    ) -> Proposal:
        """What was found to be fit to be decided so."""
        undo_ids = {decision.hunk_id for decision in decisions if decision.decision == "undo"}
        redo_ids = {decision.hunk_id for decision in decisions if decision.decision == "redo"} - undo_ids
        former = {hunk.hunk_id: hunk.state for _, hunk in live.hunks() if hunk.hunk_id in redo_ids}
        lost = (await self._writer.mark(live, undo_ids, redo_ids)).keys() & redo_ids
        files = {hunk.hunk_id: file for file, hunk in live.hunks()}
        accepted = [decision.hunk_id for decision in decisions if decision.decision == "accept"]
        chosen = [(files[hunk_id], files[hunk_id].hunk(hunk_id)) for hunk_id in accepted]
        by_id = {row.row_id: row for row in live.rows}
        applying = {decision.row_id for decision in row_decisions if decision.decision in ("accept", "redo")}
        rows = [row for row in live.rows if row.row_id in applying and row.state != "applied"]
        async with self._writer.exclusive(rows):
            faults = await self._writer.faults(live, rows)
            held_back = holds_back(live, chosen, rows, faults, self._workspace.display_path) or bool(lost)
            for hunk_id in redo_ids - lost if held_back else ():
                files[hunk_id].update_hunk(hunk_id, state=former[hunk_id], reason=_NOT_REDONE)
            for row_decision in row_decisions:
                if not (held_back and row_decision.decision in ("accept", "redo")):
                    carry_out_row(by_id[row_decision.row_id], row_decision)
            for decision in decisions:
                if not (held_back and decision.decision == "accept"):
                    carry_out(live, files[decision.hunk_id], decision)
                elif decision.new_text is not None:
                    revise(files[decision.hunk_id], files[decision.hunk_id].hunk(decision.hunk_id), decision.new_text)
            reject_rows_without_needs(live, self._workspace.display_path)
            return await self._writer.apply(live)


def _is_free_again(file: LiveFile, edit: FileEdit) -> bool:
    """Whether the edit makes a new file at the path from which `file` is moved away."""
    is_moved_away = file.change == "rename" and file.new_path != file.base.path == edit.base.path
    return is_moved_away and not edit.base.exists and edit.text is not None


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
