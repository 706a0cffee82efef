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
from amanu.proposals.apply import SavePreimage, apply, lossy_message, settle
from amanu.proposals.crash_recovery import interrupted_files, recover
from amanu.proposals.model import (
    ALL_STATES,
    FILE_CHANGED,
    STATES_AFTER,
    STATES_BEFORE,
    LiveFile,
    LiveProposal,
    missing_file,
)
from amanu.proposals.report import report
from amanu.proposals.tracking import SMALL_TEXT, FileTracking
from amanu.proposals.undo import UndoResult, mark_hunks
from amanu.system.tasks import run_to_completion
from amanu.workspace.diff import unified, unified_hunks
from amanu.workspace.shown_files import ShownFiles
from amanu.workspace.text_file import FileText, line_end
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Check, DraftRun, Hunk, HunkState, Proposal
from amanu_protocol.requests import HunkDecision

_SHARED_HUNK_SECONDS = 5.0
"""Seconds a call waits for those it shares a hunk with: all are decided by then, one may still be asked about anew."""
_MAX_RUNS = 5
"""Commands kept with a draft, each with its last run."""
LISTED_STATES: Sequence[HunkState] = ("pending", "accepted", "applied", "conflicted", "undoing")
"""What a proposal still stands for."""


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
        self._on_change = on_change
        self._save_preimage = save_preimage
        self._accept_change = accept_change
        self._shared_hunk_seconds = shared_hunk_seconds
        self._drafting = drafting
        self.shown_files: dict[str | None, ShownFiles] = {None: workspace.shown_files}
        """What each sub-agent has been shown, and (None) the session's own agent: an edit is known to the one that
        made it."""
        self._live: dict[str, LiveProposal] = {}
        """Oldest first."""
        self._stored: dict[str, Proposal] = {}
        """Of a session that was opened again; they become live proposals when somebody asks for them."""
        self._lock = asyncio.Lock()
        self._published = asyncio.Event()
        """When some proposal is next published. Each is for once."""
        self._tracking = FileTracking(workspace, self._lock, self._find, self._publish)

    # Proposing --------------------------------------------------------------------------------------

    async def text(self, call: CallContext, path: Path) -> FileText:
        """What an edit of that call starts from: the file with what is drafted, and with the still undecided edits of
        earlier calls of the same step, else as the user sees it. A file that is not there is an empty one with
        `exists` False."""
        await self._follow_draft(path)
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

    def is_drafted(self, path: Path) -> bool:
        """Whether the draft has something open of that file."""
        return self._open_draft(path) is not None

    def pending_paths(self, call: CallContext) -> list[Path]:
        """The files of which the draft, or earlier calls of the same step, want something that is not decided."""
        files = [
            file
            for live in self._live.values()
            if _is_seen(live, call)
            for file in live.files
            if _is_pending(live, file)
        ]
        return [path for file in files for path in (file.base.path, file.new_path) if path is not None]

    async def draft(self, path: Path) -> FileText | None:
        """See `workspace.Drafts`."""
        await self._follow_draft(path)
        found = self._open_draft(path)
        return None if found is None else found[1].drafted_file(path)

    async def drafts(self) -> list[FileText]:
        """See `workspace.Drafts`."""
        paths = [
            path
            for live in self._live.values()
            if live.draft
            for file in live.files
            if file.is_open
            for path in (file.base.path, file.new_path)
            if path is not None
        ]
        return [file for path in dict.fromkeys(paths) if (file := await self.draft(path)) is not None]

    @property
    def has_draft(self) -> bool:
        """Whether something drafted is not decided yet."""
        return any(map(_is_open_draft, self._live.values()))

    async def note_besides(self, paths: Collection[Path], gone: Collection[Path]) -> None:
        """What belongs to the draft besides text now, and what did before and does not any more."""
        async with self._lock:
            found = next((live for live in reversed(self._live.values()) if _is_open_draft(live)), None)
            if found is None:
                return
            besides = sorted({*found.besides, *map(str, paths)} - {*map(str, gone)})
            if found.besides != besides:
                found.besides = besides
                self._on_change(found.wire())

    async def note_run(self, run: DraftRun) -> None:
        """A command ran on the draft as it is now."""
        async with self._lock:
            for live in self._live.values():
                if _is_open_draft(live):
                    live.add_run(run, _MAX_RUNS)
                    self._on_change(live.wire())

    async def propose(self, call: CallContext, edits: Sequence[FileEdit]) -> Proposal:
        """Propose the edits of a call. They join the undecided proposal of the same step that has one of the files; a
        draft joins that of its turn.

        Raises `ToolError` when nothing would change or the text moved since `text` gave it. Once it has begun it is not
        cancelled, like `resolve`: a thread would go on with hunks that nobody was told of."""
        async with self._lock:
            live = self._proposal_to_join(call, [edit.base.path for edit in edits])
            texts = await self._catch_up_earlier(live, edits)
            for edit in edits:
                self._check_edit(call, edit)
            return await run_to_completion(self._add_edits(live, edits, call.call_id, texts))

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve(self, proposal_id: str, decisions: Sequence[HunkDecision]) -> Proposal:
        """Take decisions on hunks and apply what is accepted, before returning: all files or none. Whatever is no
        known word is a refusal. A repeated decision changes nothing; a contradicting one is `proposalConflict`.

        Once it writes it is not cancelled: it ends, then the cancellation goes on."""
        async with self._lock:
            live = self._find(proposal_id)
            accepted = {decision.hunk_id for decision in decisions if decision.decision == "accept"}
            await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if hunk.hunk_id in accepted])
            hunks = {hunk.hunk_id: (file, hunk) for file, hunk in live.hunks()}
            for decision in decisions:
                _check_decision(hunks, decision)
            return await run_to_completion(self._carry_out(live, decisions))

    async def accept_all(self, proposal_id: str, call_id: str | None = None, *, by_user: bool = True) -> Proposal:
        """Accept and apply every undecided hunk. With `call_id`: only what that call wrote; a hunk that several
        calls wrote waits until each of them was allowed. Not `by_user`: a rule did it, the user reviews it
        afterwards."""
        async with self._lock:
            live = self._find(proposal_id)
            live.allowed_calls |= set(live.tool_call_ids if call_id is None else [call_id])
            texts = await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if live.is_waiting(hunk)])
            for file, hunk in live.hunks():
                if live.is_waiting(hunk) and live.owners(file, hunk) <= live.allowed_calls:
                    # A plan is reviewed as a whole, when it is to be approved.
                    reviewed = by_user or self._workspace.guard.is_plan(file.base.path)
                    _accept(live, file, hunk, None, reviewed=reviewed)
            return await run_to_completion(self._apply(live, texts))

    async def wait_for_shared_hunks(self, call_id: str) -> None:
        """Until other calls of the step that wrote the same hunk had their say, if they soon do: what is told of it
        before would be that it is still open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._shared_hunk_seconds):
                while self._awaits_others(call_id):
                    await self._published.wait()

    def _awaits_others(self, call_id: str) -> bool:
        live = self._of_call(call_id)
        owned = [] if live is None else [(hunk, live.owners(file, hunk)) for file, hunk in live.hunks()]
        return live is not None and any(
            live.is_waiting(hunk) and call_id in owners and not owners <= live.allowed_calls for hunk, owners in owned
        )

    async def reject_all(
        self, proposal_id: str, reason: str | None, call_id: str | None = None, *, by_user: bool = True
    ) -> Proposal:
        """Reject every undecided hunk. With `call_id`: every one that call had a part in. Not `by_user`: a rule
        did it."""
        async with self._lock:
            live = self._find(proposal_id)
            for file, hunk in live.hunks():
                if live.is_waiting(hunk) and (call_id is None or call_id in live.owners(file, hunk)):
                    file.update_hunk(hunk.hunk_id, state="rejected", reason=reason, reviewed=by_user)
            return self._publish(live)

    async def revise(self, proposal_id: str, hunk_id: str, text: str) -> Proposal:
        """The user's own text for an open hunk; it stays open. `AmanuError` proposalConflict when it is not."""
        async with self._lock:
            live = self._find(proposal_id)
            file, hunk = next(((f, h) for f, h in live.hunks() if h.hunk_id == hunk_id), (None, None))
            if file is None or hunk is None or hunk.state not in ("pending", "conflicted"):
                raise AmanuError("proposalConflict", "That change is not open any more. Look at it again.")
            if file.delete:
                raise _deletion_error()
            file.update_hunk(hunk_id, new_text=_with_file_line_ends(file, text), edited_by_user=True)
            file.text = await asyncio.to_thread(file.text_with, *ALL_STATES)
            return self._publish(live)

    async def catch_up(self, proposal_id: str) -> None:
        """Move what waits to be decided along with its files, as they are now."""
        async with self._lock:
            live = self._find(proposal_id)
            await self._tracking.catch_up(live, [file for file, hunk in live.hunks() if live.is_waiting(hunk)])

    async def review_after(self, proposal_id: str) -> Proposal:
        """Apply what is open; it is reviewed afterwards."""
        return await self.accept_all(proposal_id, by_user=False)

    async def review_before(self, proposal_id: str) -> Proposal:
        """Take back what was applied and not yet kept; it is open again."""
        async with self._lock:
            live = self._find(proposal_id)
            ids = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "applied" and not hunk.reviewed}
            await run_to_completion(self._mark_and_apply(live, undo_ids=ids))
            for file, hunk in live.hunks():
                if hunk.hunk_id in ids and hunk.state == "reverted":
                    file.update_hunk(hunk.hunk_id, state="pending")
            return self._publish(live)

    async def undo(self, proposal_id: str, hunk_ids: Collection[str]) -> list[SkippedHunk]:
        """Take applied hunks back, all files or none; those that were left, with why."""
        return await self._undo_or_redo(proposal_id, hunk_ids, undo=True)

    async def redo(self, proposal_id: str, hunk_ids: Collection[str]) -> list[SkippedHunk]:
        """Apply hunks that were taken back or rejected."""
        return await self._undo_or_redo(proposal_id, hunk_ids, undo=False)

    # Looking ----------------------------------------------------------------------------------------

    def get(self, proposal_id: str) -> Proposal:
        """As it is now. `AmanuError` proposalNotFound."""
        return self._find(proposal_id).wire()

    def of_call(self, call_id: str) -> Proposal | None:
        """The proposal the call's edits are in."""
        live = self._of_call(call_id)
        return None if live is None else live.wire()

    def states_of_call(self, call_id: str) -> set[HunkState]:
        """The states of the hunks that call had a part in."""
        live = self._of_call(call_id)
        hunks = [] if live is None else [hunk for file, hunk in live.hunks() if call_id in live.owners(file, hunk)]
        return {hunk.state for hunk in hunks}

    def files(self, proposal_id: str) -> Sequence[LiveFile]:
        """Its files; not to be changed."""
        return self._find(proposal_id).files

    def removed_texts(self, path: Path, except_ids: Collection[str]) -> list[str]:
        """What applied hunks took out of the file at that path; not those named."""
        stored_hunks = (
            file.hunks for proposal in self._stored.values() for file in proposal.files if Path(file.path) == path
        )
        live_hunks = (file.hunks for proposal in self._live.values() for file in proposal.files_at(path))
        return [
            hunk.old_text
            for hunks in (*stored_hunks, *live_hunks)
            for hunk in hunks
            if hunk.state == "applied" and hunk.old_text and hunk.hunk_id not in except_ids
        ]

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
        live = self._of_call(tool_call_id)
        return "" if live is None else report(live, tool_call_id, self._workspace.display_path)

    async def note_checks(
        self, proposal_id: str, path: Path, stage: Literal["proposed", "applied"], checks: Sequence[Check]
    ) -> None:
        """What checkers find of that file now, in the place of all that was noted about the same. The proposal's
        version stays: whoever is deciding just now decides on what they saw."""
        async with self._lock:
            live = self._find(proposal_id)
            for file in live.files_at(path):
                noted = [*(check for check in file.checks if check.about != stage), *checks]
                if noted != file.checks:
                    file.checks = noted
                    self._on_change(live.wire())

    async def begin_review(self, proposal_id: str, call_id: str) -> Proposal:
        """That call asks the user about the whole draft; clients show it there."""
        async with self._lock:
            live = self._find(proposal_id)
            if call_id not in live.tool_call_ids:
                live.tool_call_ids.append(call_id)
                return self._publish(live)
            return live.wire()

    async def review_report(self, proposal_id: str) -> str:
        """For the model: what became of all of a proposal."""
        async with self._lock:
            return report(self._find(proposal_id), None, self._workspace.display_path)

    async def settled_report(self, tool_call_id: str) -> str:
        """`report`, when what is being applied has been."""
        async with self._lock:
            return self.report(tool_call_id)

    def diff(self, proposal_id: str) -> str:
        """The proposed change as a unified diff, for people. What was rejected or taken back is left out."""
        return "".join(map(self._diff, self._find(proposal_id).files))

    # Life -------------------------------------------------------------------------------------------

    async def restore(self, proposals: Iterable[Proposal]) -> None:
        """Take over the proposals of a session that is opened again; what a crash interrupted comes to an end."""
        self._stored = {proposal.proposal_id: proposal for proposal in proposals}
        for proposal in list(self._stored.values()):
            if proposal.draft and proposal.state == "pending":
                self._find(proposal.proposal_id)
        for proposal in list(self._stored.values()):
            checking = any(check.state == "running" for file in proposal.files for check in file.checks)
            if checking or any(hunk.state in ("accepted", "undoing") for file in proposal.files for hunk in file.hunks):
                live = self._find(proposal.proposal_id)
                files = interrupted_files(live)
                live.attempted |= {hunk.hunk_id for file in files for hunk in file.hunks if hunk.state == "accepted"}
                await self._workspace.overlay.refresh(*(file.base.path for file in files))
                await asyncio.to_thread(recover, self._workspace, files)
                self._publish(live)
        for proposal in self._stored.values():
            if any(hunk.state in ("pending", "conflicted") for file in proposal.files for hunk in file.hunks):
                self._tracking.watch(proposal)

    async def wait_until_settled(self) -> None:
        """Return when nothing is being applied."""
        async with self._lock:
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
        for live in reversed(self._live.values()):
            if _is_seen(live, call) and any(_is_pending(live, file, paths) for file in live.files):
                return live
        return None

    def _proposal_to_join(self, call: CallContext, paths: Sequence[Path]) -> LiveProposal:
        """The proposal that edits of those files belong in; a new one where none is fit."""
        found = self._proposal_of_step(call, paths)
        is_draft = self._drafting() if found is None else found.draft
        is_draft = is_draft and not any(map(self._workspace.guard.is_admitted, paths))
        if is_draft:
            found = next((live for live in reversed(self._live.values()) if _takes_draft(live, call, paths)), None)
        if found is not None:
            return found
        proposal_id = f"p-{secrets.token_hex(6)}"
        return LiveProposal(proposal_id, call.turn_id, call.step, [], [], agent_id=_agent_id(call), draft=is_draft)

    def _open_draft(self, path: Path) -> tuple[LiveProposal, LiveFile] | None:
        """The draft that has something open of the file at that path, or of the one it moves there or away."""
        for live in reversed(self._live.values()):
            for file in live.files if live.draft else ():
                if file.is_open and file.has_path(path):
                    return live, file
        return None

    async def _follow_draft(self, path: Path) -> None:
        """Move what is drafted of that file along with what the user did there."""
        if self._open_draft(path) is not None:
            async with self._lock:
                if (found := self._open_draft(path)) is not None:
                    await self._move_along(*found)

    async def _move_along(self, live: LiveProposal, file: LiveFile) -> Mapping[Path, FileText]:
        """Move what is drafted of that file along with what the user did there. Returns its text, by path. The caller
        has the lock."""
        texts = await self._tracking.catch_up(live, [file])
        if file.is_open and _is_another(file, texts.get(file.base.path)):
            for hunk in file.hunks:
                if hunk.state == "pending":
                    file.update_hunk(hunk.hunk_id, state="conflicted", reason=FILE_CHANGED)
            self._publish(live)
        return texts

    async def _catch_up_earlier(self, live: LiveProposal, edits: Sequence[FileEdit]) -> Mapping[Path, FileText]:
        """Move what earlier drafts have of those files along with what the user did there: it is to be taken over from
        there. Returns the files as they are now."""
        texts: dict[Path, FileText] = {}
        for edit in edits:
            found = self._open_draft(edit.base.path)
            if found is not None and found[0] is not live:
                texts |= await self._move_along(*found)
                if not found[1].is_open:
                    raise self._changed_meanwhile(edit.base.path)
        return texts

    def _changed_meanwhile(self, path: Path) -> ToolError:
        return ToolError(f"{self._workspace.display_path(path)} changed at the same moment. Read it and try again.")

    def _check_edit(self, call: CallContext, edit: FileEdit) -> None:
        name = self._workspace.display_path(edit.base.path)
        if edit.base.lossy:
            raise ToolError(lossy_message(self._workspace, edit.base))
        if edit.text == edit.base.text and edit.new_path is None and (edit.base.exists or edit.base.from_buffer):
            raise NothingToDo(f"{name} already has exactly this content; nothing to change.")
        pending = self.pending(call, edit.base.path)
        if pending is not None and pending.proposed_file(edit.base.path).text != edit.base.text:
            raise self._changed_meanwhile(edit.base.path)
        if edit.text is not None:
            edit.base.encode(edit.text)

    async def _add_edits(
        self, live: LiveProposal, edits: Sequence[FileEdit], call_id: str, texts: Mapping[Path, FileText]
    ) -> Proposal:
        for edit in edits:
            await self._add_edit(live, edit, call_id, texts)
        if call_id not in live.tool_call_ids:
            live.tool_call_ids.append(call_id)
        self._live[live.proposal_id] = live
        return self._publish(live)

    async def _add_edit(self, live: LiveProposal, edit: FileEdit, call_id: str, texts: Mapping[Path, FileText]) -> None:
        path = edit.base.path
        file = next((candidate for candidate in live.files if candidate.has_path(path)), None)
        if file is None:
            file = await self._carried_over(live, path, texts) or LiveFile(edit.base, edit.base.text)
            live.files.append(file)
        before = file.drafted_file(path)
        if file.change == "create" and (edit.text is None or edit.new_path is not None):
            live.files.remove(file)  # what is only proposed is deleted, or moved, by proposing it no more
            if edit.new_path is not None:
                file = LiveFile(missing_file(edit.new_path), "")
                live.files.append(file)
                await _propose(live, file, replace(edit, new_path=None), call_id)
        else:
            await _propose(live, file, edit, call_id)
        if live.draft:
            self._note_drafted(live, path, before)

    async def _carried_over(self, live: LiveProposal, path: Path, texts: Mapping[Path, FileText]) -> LiveFile | None:
        """What an earlier draft has open of that file, taken over into this one; None when there is nothing. That the
        rest of it is decided does not matter: it starts from the file as it is, which is in `texts` as it was when the
        draft was moved along. What the user types after that moves it once more."""
        found = self._open_draft(path) if live.draft else None
        if found is None:
            return None
        earlier, source = found
        base_path = source.base.path
        base = texts.get(base_path) or await self.text_without_edits(base_path)
        text = None if source.delete else source.proposed_file(base_path).text
        calls = sorted(frozenset[str]().union(*source.owners.values())) or earlier.tool_call_ids
        file = LiveFile(base, base.text)
        explanation = " ".join(dict.fromkeys(filter(None, source.explanations.values())))
        await _propose(live, file, FileEdit(base, text, source.new_path, explanation), calls[-1])
        source.drop_open()
        if not _is_open_draft(earlier):
            live.besides = sorted({*live.besides, *earlier.besides})
        if not source.hunks:
            earlier.files.remove(source)
        live.tool_call_ids += [call for call in calls[-1:] if call not in live.tool_call_ids]
        self._publish(earlier)
        return file

    def _note_drafted(self, live: LiveProposal, path: Path, before: FileText) -> None:
        """The model knows the text that it drafted."""
        shown_files = self.shown_files.get(live.agent_id) or ShownFiles()
        found = next((file for file in live.files if file.has_path(path)), None)
        after = None if found is None else found.drafted_file(path)
        known = None if after is None or not after.from_buffer else after.sha256
        shown_files.edited(path, before if before.from_buffer else None, known)

    async def _undo_or_redo(self, proposal_id: str, hunk_ids: Collection[str], *, undo: bool) -> list[SkippedHunk]:
        async with self._lock:
            live = self._find(proposal_id)
            files = [file for file, hunk in live.hunks() if hunk.hunk_id in hunk_ids]
            await self._tracking.catch_up(live, [file for file in files if self._tracking.follows(live, file)])
            marking = self._mark_and_apply(live, hunk_ids) if undo else self._mark_and_apply(live, redo_ids=hunk_ids)
            reasons = await run_to_completion(marking)
            target_states: Collection[HunkState] = ("reverted",) if undo else ("applied",)
            for _, hunk in live.hunks():
                if hunk.hunk_id in hunk_ids and hunk.state not in target_states:
                    reasons.setdefault(hunk.hunk_id, hunk.reason or "")
            return [SkippedHunk(proposal_id, hunk_id, reason) for hunk_id, reason in reasons.items()]

    async def _carry_out(self, live: LiveProposal, decisions: Sequence[HunkDecision]) -> Proposal:
        """What was found to be fit to be decided so."""
        undo_ids = {decision.hunk_id for decision in decisions if decision.decision == "undo"}
        await self._mark(
            live, undo_ids, {decision.hunk_id for decision in decisions if decision.decision == "redo"} - undo_ids
        )
        files = {hunk.hunk_id: file for file, hunk in live.hunks()}
        for decision in decisions:
            file = files[decision.hunk_id]
            hunk = file.hunk(decision.hunk_id)
            match decision.decision:
                case "undo" | "redo":
                    pass
                case "keep":
                    file.update_hunk(hunk.hunk_id, reviewed=True)
                case "accept" if hunk.state in ("pending", "conflicted"):
                    _accept(live, file, hunk, decision.new_text)
                case "accept":
                    file.update_hunk(hunk.hunk_id, reviewed=True)
                case _ if hunk.state != "rejected":
                    file.update_hunk(hunk.hunk_id, state="rejected", reason=decision.reason, reviewed=True)
                case _:
                    pass
        return await self._apply(live)

    async def _mark_and_apply(
        self, live: LiveProposal, undo_ids: Collection[str] = (), redo_ids: Collection[str] = ()
    ) -> dict[str, str]:
        """Not to be cancelled in between: what is marked but not applied would be applied with the next decision."""
        reasons = await self._mark(live, undo_ids, redo_ids)
        await self._apply(live)
        return reasons

    async def _mark(self, live: LiveProposal, undo_ids: Collection[str], redo_ids: Collection[str]) -> dict[str, str]:
        """Mark hunks to be taken back or applied again, where they are now; those that cannot be, with why. All of them
        when a file cannot be looked at."""
        hunk_ids = {*undo_ids, *redo_ids}
        indexes = [
            index for index, file in enumerate(live.files) if any(hunk.hunk_id in hunk_ids for hunk in file.hunks)
        ]
        try:
            texts = {
                index: await self._workspace.read_if_exists(live.files[index].path_with(STATES_AFTER))
                for index in indexes
            }
        except ToolError as error:
            return {hunk.hunk_id: str(error) for _, hunk in live.hunks() if hunk.hunk_id in hunk_ids}
        results: dict[int, UndoResult] = {}
        for index in indexes:
            removed_texts = self.removed_texts(live.files[index].base.path, hunk_ids)
            results[index] = await asyncio.to_thread(
                mark_hunks, live.files[index], texts[index], undo_ids, redo_ids, removed_texts
            )
        reasons: dict[str, str] = {}
        for index, result in results.items():
            live.files[index] = result.file
            reasons |= result.reasons
        return reasons

    async def _apply(self, live: LiveProposal, texts: Mapping[Path, FileText] | None = None) -> Proposal:
        """`texts`: of its files, if they were just read."""
        files = interrupted_files(live)
        if not files:
            return self._publish(live)
        live.attempted |= {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "accepted"}
        undoing = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "undoing"}
        self._publish(live)
        try:
            before = await self._tracking.catch_up_others(live, files, texts or {})
            shown_files = self.shown_files.get(live.agent_id) or ShownFiles()  # of an agent that is gone: nobody's
            changed = await apply(self._workspace, files, self._save_preimage, live.turn_id, shown_files)
            if self._accept_change is not None:
                for path in dict.fromkeys(changed):
                    await self._accept_change(path)
        except AmanuError as error:  # its pre-image could not be kept: the file is as it was
            for file in files:
                settle(file, succeeded=False, reason=str(error))
            raise
        finally:
            for file in files:  # only when something failed that we do not know of
                settle(file, succeeded=False, reason="Applying it failed unexpectedly; check the file.")
                undone = {hunk.hunk_id for hunk in file.hunks if hunk.state == "reverted"} & undoing
                if file.anchor is not None:
                    await asyncio.to_thread(file.update_anchor, undone)
                file.remember_applied()
            self._publish(live)
        await self._tracking.move_others(live, files, before)
        return live.wire()

    def _publish(self, live: LiveProposal) -> Proposal:
        self._published.set()
        self._published = asyncio.Event()
        live.version += 1
        live.update_runs()
        proposal = live.wire()
        self._tracking.watch(proposal)
        self._on_change(proposal)
        return proposal

    def _find(self, proposal_id: str) -> LiveProposal:
        live = self._live.get(proposal_id)
        if live is None and proposal_id in self._stored:
            live = self._live[proposal_id] = LiveProposal.load(self._stored.pop(proposal_id))
        if live is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return live

    def _of_call(self, call_id: str) -> LiveProposal | None:
        for live in reversed(self._live.values()):
            if call_id in live.tool_call_ids:
                return live
        return None


async def _propose(live: LiveProposal, file: LiveFile, edit: FileEdit, call_id: str) -> None:
    arguments = (edit.text, call_id, live.hunk_numbers, live.proposal_id, edit.new_path, edit.explanation)
    if len(file.base.text) + len(edit.text or "") < SMALL_TEXT:
        file.propose(*arguments)
    else:
        await asyncio.to_thread(file.propose, *arguments)


def _is_seen(live: LiveProposal, call: CallContext) -> bool:
    """Whether that call works on what is undecided there."""
    return live.draft or (live.turn_id, live.agent_id, live.step) == (call.turn_id, _agent_id(call), call.step)


def _is_open_draft(live: LiveProposal) -> bool:
    return live.draft and any(file.is_open for file in live.files)


def _is_pending(live: LiveProposal, file: LiveFile, paths: Sequence[Path] | None = None) -> bool:
    """Whether it is about one of those files (None: whichever), and still to be decided."""
    is_pending = file.is_open if live.draft else file.is_undecided and bool(file.hunks)
    return is_pending and (paths is None or any(map(file.has_path, paths)))


def _is_another(file: LiveFile, current: FileText | None) -> bool:
    """Whether the file that is to be made, moved or removed as a whole is not as it was when that was proposed, or the
    one that is edited is gone: then nothing of it can move along."""
    if file.change == "edit":
        return current is None
    return (None if current is None else current.text) != file.version_with(STATES_BEFORE).text


def _takes_draft(live: LiveProposal, call: CallContext, paths: Sequence[Path]) -> bool:
    """Whether edits of those files can join that draft: it is of the same turn, and nothing it has of them is
    decided."""
    theirs = [file for file in live.files if any(map(file.has_path, paths))]
    return live.draft and live.turn_id == call.turn_id and all(file.is_undecided for file in theirs)


_ALLOWED_STATES: dict[str, Collection[HunkState]] = {
    "accept": ("pending", "conflicted", "accepted", "applied"),
    "keep": ("applied",),
    "undo": ("applied", "reverted"),
    "redo": ("reverted", "rejected", "applied"),
}
_REJECTABLE_STATES: Collection[HunkState] = ("pending", "conflicted", "rejected")


def _agent_id(call: CallContext) -> str | None:
    return None if call.agent is None else call.agent.agent_id


def _check_decision(hunks: dict[str, tuple[LiveFile, Hunk]], decision: HunkDecision) -> None:
    if decision.hunk_id not in hunks:
        raise AmanuError("proposalConflict", f"The proposal has no hunk {decision.hunk_id} any more. Look at it again.")
    state = hunks[decision.hunk_id][1].state
    if state not in _ALLOWED_STATES.get(decision.decision, _REJECTABLE_STATES):
        word = {"reverted": "taken back", "pending": "open", "conflicted": "in conflict"}.get(state, state)
        raise AmanuError("proposalConflict", f"Hunk {decision.hunk_id} is already {word}.")
    if decision.decision == "accept" and decision.new_text and hunks[decision.hunk_id][0].delete:
        raise _deletion_error()


def _deletion_error() -> AmanuError:
    return AmanuError("invalidParams", "This change deletes the file: it has no text to edit. Accept it, or reject it.")


def _accept(live: LiveProposal, file: LiveFile, hunk: Hunk, own_text: str | None, *, reviewed: bool = True) -> None:
    if hunk.hunk_id in file.conflicting:  # as what the user saw it is in conflict already, and stays so
        live.attempted.add(hunk.hunk_id)
        return
    own_text = None if own_text is None else _with_file_line_ends(file, own_text)
    if own_text is None or own_text == hunk.new_text:
        file.update_hunk(hunk.hunk_id, state="accepted", reason=None, reviewed=reviewed)
    else:
        file.update_hunk(
            hunk.hunk_id, state="accepted", reason=None, reviewed=reviewed, new_text=own_text, edited_by_user=True
        )


def _with_file_line_ends(file: LiveFile, own_text: str) -> str:
    """The user's text with the line ends of the file."""
    return own_text.replace("\n", "\r\n") if "\r" not in own_text and line_end(file.base.text) == "\r\n" else own_text
