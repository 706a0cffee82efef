"""The proposals of one session: drafted by tools, decided by the person or a rule, applied at once.

Edits of one step to one file are computed in call order, each as if its predecessors were accepted, and shown as one
proposal. Hunks stay open until decided, however long that takes; what is typed meanwhile moves them along
(`reanchor.py`), and the file's text at that moment decides whether they still fit.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from amanu.tools.base import CallContext, ToolError
from amanu.workspace import disk
from amanu.workspace.apply import SavePreimage, apply, lossy, settle
from amanu.workspace.draft import UNDECIDED, Draft, DraftFile, nothing
from amanu.workspace.files import FileText, line_end
from amanu.workspace.hunks import unified
from amanu.workspace.reanchor import reanchor
from amanu.workspace.report import report
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Check, Hunk, Proposal
from amanu_protocol.requests import HunkDecision

T = TypeVar("T")
_SMALL = 64 * 1024  # characters that are compared in the event loop: under 5 ms
QUIET = 0.3
"""Seconds without a change after which open hunks are moved to where the person's typing left their lines."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileEdit:
    """`base`, as `Proposals.text` gave it, becomes `text` (None: the file is deleted)."""

    base: FileText
    text: str | None
    new_path: Path | None = None
    """Where the file goes, resolved; None: it stays."""
    explanation: str = ""
    """What it is for, in the model's words: for the person."""


class Proposals:
    """`changed` hears of each new version of a proposal, in order; `save_preimage` is durable when it returns."""

    def __init__(self, workspace: Workspace, changed: Callable[[Proposal], None], save_preimage: SavePreimage) -> None:
        self._workspace = workspace
        self._changed = changed
        self._save_preimage = save_preimage
        self._drafts: dict[str, Draft] = {}
        self._stored: dict[str, Proposal] = {}
        """Of a session that was opened again; they become drafts when somebody asks for them."""
        self._lock = asyncio.Lock()
        self._watched: dict[tuple[str, Path], Callable[[], None]] = {}
        """Open proposals and their files, with what ends watching them."""
        self._due: dict[tuple[str, Path], asyncio.TimerHandle] = {}
        self._moving: set[asyncio.Task[None]] = set()

    async def text(self, call: CallContext, path: Path) -> FileText:
        """What an edit of that call starts from: the file with the still undecided edits of earlier calls of the
        same step, else as the person sees it. A file that is not there is an empty one with `exists` False."""
        draft = self._joinable(call, [path])
        if draft is not None:
            file = next(each for each in draft.files if each.base.path == path)
            return file.base.with_text(file.text)
        return await self._workspace.look(path) or nothing(path)

    async def draft(self, call: CallContext, edits: Sequence[FileEdit]) -> Proposal:
        """Propose the edits of a call. They join the undecided proposal of the same step that has one of the files.

        Raises `ToolError` when nothing would change or the text moved since `text` gave it."""
        async with self._lock:
            draft = self._joinable(call, [edit.base.path for edit in edits])
            if draft is None:
                proposal_id = f"p-{secrets.token_hex(6)}"
                draft = Draft(proposal_id, call.turn_id, call.step, [], [])
            for edit in edits:
                self._check(draft, edit)
            for edit in edits:
                await self._propose(draft, edit, call.call_id)
            if call.call_id not in draft.tool_call_ids:
                draft.tool_call_ids.append(call.call_id)
            self._drafts[draft.proposal_id] = draft
            return self._publish(draft)

    def get(self, proposal_id: str) -> Proposal:
        """As it is now. `AmanuError` proposalNotFound."""
        return self._find(proposal_id).wire()

    def of_call(self, call_id: str) -> Proposal | None:
        """The proposal the call's edits are in."""
        draft = self._of_call(call_id)
        return None if draft is None else draft.wire()

    async def resolve(self, proposal_id: str, decisions: Sequence[HunkDecision]) -> Proposal:
        """Take decisions on hunks and apply what is accepted, before returning. Whatever is not `accept` is a
        refusal. A repeated decision changes nothing; a contradicting one is `proposalConflict`.

        Once it writes it is not cancelled: it ends, then the cancellation goes on."""
        async with self._lock:
            draft = self._find(proposal_id)
            accepted = {each.hunk_id for each in decisions if each.decision == "accept"}
            await self._reanchor(draft, [file for file, hunk in draft.hunks() if hunk.hunk_id in accepted])
            known = {hunk.hunk_id: (file, hunk) for file, hunk in draft.hunks()}
            for each in decisions:
                _check_decision(known, each)
            for each in decisions:
                file, hunk = known[each.hunk_id]
                if each.decision != "accept":
                    if hunk.state != "rejected":
                        file.put(hunk.hunk_id, state="rejected", reason=each.reason)
                elif hunk.state in ("pending", "conflicted"):
                    _accept(draft, file, hunk, each.new_text)
            return await unbroken(self._apply(draft))

    async def accept_all(self, proposal_id: str, call_id: str | None = None) -> Proposal:
        """Accept and apply every undecided hunk. With `call_id`: only what that call wrote; a hunk that several
        calls wrote waits until each of them was allowed."""
        async with self._lock:
            draft = self._find(proposal_id)
            draft.allowed |= set(draft.tool_call_ids if call_id is None else [call_id])
            await self._reanchor(draft, [file for file, hunk in draft.hunks() if draft.waits(hunk)])
            for file, hunk in draft.hunks():
                if draft.waits(hunk) and draft.owners(file, hunk) <= draft.allowed:
                    _accept(draft, file, hunk, None)
            return await unbroken(self._apply(draft))

    async def reject_all(self, proposal_id: str, reason: str | None, call_id: str | None = None) -> Proposal:
        """Reject every undecided hunk. With `call_id`: every one that call had a part in."""
        async with self._lock:
            draft = self._find(proposal_id)
            for file, hunk in draft.hunks():
                if draft.waits(hunk) and (call_id is None or call_id in draft.owners(file, hunk)):
                    file.put(hunk.hunk_id, state="rejected", reason=reason)
            return self._publish(draft)

    def report(self, tool_call_id: str) -> str:
        """For the model: what of that call was applied, refused and why, changed by the person, is open."""
        draft = self._of_call(tool_call_id)
        return "" if draft is None else report(draft, tool_call_id, self._workspace.shown)

    async def note_checks(
        self, proposal_id: str, path: Path, about: Literal["proposed", "applied"], checks: Sequence[Check]
    ) -> None:
        """What checkers find of that file now, in the place of all that was noted about the same. The proposal's
        version stays: whoever is deciding just now decides on what they saw."""
        async with self._lock:
            draft = self._find(proposal_id)
            for file in draft.at(path):
                noted = [*(each for each in file.checks if each.about != about), *checks]
                if noted != file.checks:
                    file.checks = noted
                    self._changed(draft.wire())

    async def settled(self) -> None:
        """Return when nothing is being applied."""
        async with self._lock:
            pass

    async def close(self) -> None:
        """Move no hunks any more. Returns when nothing is being moved or applied."""
        for stop in self._watched.values():
            stop()
        for due in self._due.values():
            due.cancel()
        self._watched.clear()
        self._due.clear()
        await self.settled()

    async def outcome(self, tool_call_id: str) -> str:
        """`report`, when what is being applied has been."""
        async with self._lock:
            return self.report(tool_call_id)

    def diff(self, proposal_id: str) -> str:
        """The proposed change as a unified diff, for people. What was rejected is left out."""
        return "".join(
            unified(
                self._workspace.relative(file.base.path),
                file.base.text,
                file.having("pending", "accepted", "applied", "conflicted"),
            )
            for file in self._find(proposal_id).files
        )

    async def restore(self, proposals: Iterable[Proposal]) -> None:
        """Take over the proposals of a session that is opened again. A hunk that was accepted but not known to be
        applied when the daemon died: the file's present text tells which."""
        self._stored = {proposal.proposal_id: proposal for proposal in proposals}
        for proposal in self._stored.values():
            self._watch(proposal)
        for proposal in list(self._stored.values()):
            torn = {hunk.hunk_id for file in proposal.files for hunk in file.hunks if hunk.state == "accepted"}
            checked = any(check.state == "running" for file in proposal.files for check in file.checks)
            if torn or checked:  # a check ended with the daemon that made it
                draft = self._find(proposal.proposal_id)
                draft.tried |= torn
                await asyncio.to_thread(self._recover_torn, draft)
                self._publish(draft)

    def _recover_torn(self, draft: Draft) -> None:
        for file in draft.files:
            if any(hunk.state == "accepted" for hunk in file.hunks):
                self._recover(file)

    def _recover(self, file: DraftFile) -> None:
        disk.sweep(self._workspace.guard, file.base.path)
        try:
            now = self._workspace.look_on_disk(file.base.path)
        except ToolError as error:
            settle(file, "conflicted", str(error))
            return
        there = now is not None
        target = file.having("applied", "accepted")
        if (there and now.text == target) or (file.delete and target == "" and not there):
            settle(file, "applied")
        elif (there and now.text == file.having("applied")) or (file.change == "create" and not there):
            settle(file, "pending")
        else:
            settle(file, "conflicted", "The file changed while Amanu was not running.")

    def _joinable(self, call: CallContext, paths: Sequence[Path]) -> Draft | None:
        """The proposal of an earlier call of the same step that has one of the files, nothing of it decided."""
        for draft in reversed(self._drafts.values()):
            if (draft.turn_id, draft.step) != (call.turn_id, call.step):
                continue
            if any(file.base.path in paths and file.untouched and file.hunks for file in draft.files):
                return draft
        return None

    def _check(self, draft: Draft, edit: FileEdit) -> None:
        shown = self._workspace.shown(edit.base.path)
        if edit.base.lossy:
            raise ToolError(lossy(self._workspace, edit.base))
        if edit.text == edit.base.text and (edit.base.exists or edit.base.from_buffer):
            raise ToolError(f"{shown} already has exactly this content; nothing to change.")
        for file in draft.files:
            if file.base.path == edit.base.path and file.text != edit.base.text:
                raise ToolError(f"{shown} changed at the same moment. Read it and try again.")
        if edit.text is not None:
            edit.base.encode(edit.text)

    async def _propose(self, draft: Draft, edit: FileEdit, call_id: str) -> None:
        file = next((each for each in draft.files if each.base.path == edit.base.path), None)
        if file is None:
            file = DraftFile(edit.base, edit.base.text)
            draft.files.append(file)
        work = (edit.text, call_id, draft.ids, draft.proposal_id)
        if len(file.base.text) + len(edit.text or "") < _SMALL:
            file.propose(*work)
        else:
            await asyncio.to_thread(file.propose, *work)

    async def _apply(self, draft: Draft) -> Proposal:
        files = [file for file in draft.files if any(hunk.state == "accepted" for hunk in file.hunks)]
        if files:
            draft.tried |= {hunk.hunk_id for _, hunk in draft.hunks() if hunk.state == "accepted"}
            self._publish(draft)
            try:
                await self._reanchor_others(draft, files)
                await apply(self._workspace, files, self._save_preimage, draft.turn_id)
            except AmanuError as error:  # its pre-image could not be kept: the file is as it was
                for file in files:
                    settle(file, "conflicted", str(error))
                raise
            finally:
                for file in files:  # only when something failed that we do not know of
                    settle(file, "conflicted", "Applying it failed unexpectedly; check the file.")
                    file.applied_now()
                self._publish(draft)
            await self._reanchor_others(draft, files, by_person=False)
            return draft.wire()
        return self._publish(draft)

    # The file changes meanwhile ---------------------------------------------------------------------

    async def _reanchor(self, draft: Draft, files: Iterable[DraftFile], *, by_person: bool = True) -> None:
        """Move the hunks of those files to the text as it is now, and publish that. The lock is held."""
        moved = False
        for file in {id(file): file for file in files}.values():
            try:
                now = await self._workspace.look(file.base.path)
                if now is None:
                    continue
                if len(file.base.text) + len(now.text) < _SMALL:
                    found = reanchor(file, now, by_person=by_person)
                else:
                    found = await asyncio.to_thread(reanchor, file, now, by_person=by_person)
            except ToolError:  # what is there now is no text of ours; applying will say why
                continue
            if found is not None:
                found.put(file)
                draft.tried -= {hunk.hunk_id for hunk in file.hunks if hunk.state == "pending"}
                moved = True
        if moved:
            self._publish(draft)

    async def _reanchor_others(self, draft: Draft, files: Sequence[DraftFile], *, by_person: bool = True) -> None:
        """Other open proposals for these files: what this one does to them is not the person's doing."""
        paths = {file.base.path for file in files}
        for proposal_id, path in tuple(self._watched):
            if path in paths and proposal_id != draft.proposal_id:
                other = self._find(proposal_id)
                await self._reanchor(other, other.at(path), by_person=by_person)

    def _watch(self, proposal: Proposal) -> None:
        """Hear of changes of its files, as long as something of it is open there."""
        for file in proposal.files:
            key = (proposal.proposal_id, Path(file.path))
            is_open = any(hunk.state in (*UNDECIDED, "conflicted") for hunk in file.hunks)
            if is_open and file.change == "edit":
                if key not in self._watched:
                    self._watched[key] = self._workspace.overlay.watch(key[1], partial(self._heard, key))
                    buffer = self._workspace.overlay.buffer(key[1])
                    if buffer is not None and buffer.version != file.base_version:
                        self._heard(key)
            elif (stop := self._watched.pop(key, None)) is not None:
                stop()
                if (due := self._due.pop(key, None)) is not None:
                    due.cancel()

    def _heard(self, key: tuple[str, Path]) -> None:
        if (due := self._due.pop(key, None)) is not None:
            due.cancel()
        self._due[key] = asyncio.get_running_loop().call_later(QUIET, self._move, key)

    def _move(self, key: tuple[str, Path]) -> None:
        del self._due[key]
        task = asyncio.create_task(self._moved(key))
        self._moving.add(task)
        task.add_done_callback(self._moving.discard)

    async def _moved(self, key: tuple[str, Path]) -> None:
        try:
            async with self._lock:
                if key in self._watched:
                    draft = self._find(key[0])
                    await self._reanchor(draft, draft.at(key[1]))
        except Exception:
            log.exception("hunks could not be moved")

    # ------------------------------------------------------------------------------------------------

    def _publish(self, draft: Draft) -> Proposal:
        draft.version += 1
        proposal = draft.wire()
        self._watch(proposal)
        self._changed(proposal)
        return proposal

    def _find(self, proposal_id: str) -> Draft:
        draft = self._drafts.get(proposal_id)
        if draft is None and proposal_id in self._stored:
            draft = self._drafts[proposal_id] = Draft.load(self._stored.pop(proposal_id))
        if draft is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return draft

    def _of_call(self, call_id: str) -> Draft | None:
        for draft in reversed(self._drafts.values()):
            if call_id in draft.tool_call_ids:
                return draft
        return None


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end even when cancelled; then the cancellation goes on."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except Exception:
            break
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()


def _check_decision(known: dict[str, tuple[DraftFile, Hunk]], decision: HunkDecision) -> None:
    if decision.hunk_id not in known:
        raise AmanuError("proposalConflict", f"The proposal has no hunk {decision.hunk_id} any more. Look at it again.")
    state = known[decision.hunk_id][1].state
    accepts = decision.decision == "accept"
    settled = {"applied": "applied", "rejected": "rejected", "revertedByPerson": "taken back"}.get(state)
    if settled and accepts != (state == "applied"):
        raise AmanuError("proposalConflict", f"Hunk {decision.hunk_id} is already {settled}.")


def _accept(draft: Draft, file: DraftFile, hunk: Hunk, own: str | None) -> None:
    if hunk.hunk_id in file.touched:  # as what the person saw it is in conflict already, and stays so
        draft.tried.add(hunk.hunk_id)
        return
    if own is not None and "\r" not in own and line_end(file.base.text) == "\r\n":
        own = own.replace("\n", "\r\n")
    if own is None or own == hunk.new_text:
        file.put(hunk.hunk_id, state="accepted", reason=None)
    else:
        file.put(hunk.hunk_id, state="accepted", reason=None, new_text=own, edited_by_person=True)
