"""Decisions, as they are marked, carried out and published."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import STATES_AFTER, LiveProposal
from amanu.proposals.rows import LiveRow, RowKey
from amanu.proposals.tracking import FileTracking
from amanu.proposals.transaction import Transactions
from amanu.proposals.undo import UndoResult, mark_hunks
from amanu.workspace.text_file import FileText
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal, RowVersion


class ProposalWriter:
    """`accept_change` is told each path that was changed, and does not raise. The caller holds the lock of the
    proposals."""

    def __init__(
        self,
        transactions: Transactions,
        live: LiveProposals,
        tracking: FileTracking,
        accept_change: Callable[[Path], Awaitable[None]] | None,
    ) -> None:
        self._transactions = transactions
        self._workspace = transactions.workspace
        self._rows = transactions.rows
        self._live = live
        self._tracking = tracking
        self._accept_change = accept_change

    def exclusive(self, rows: Sequence[LiveRow]) -> AbstractAsyncContextManager[None]:
        """See `RowPlanner`."""
        return nullcontext() if self._rows is None else self._rows.exclusive(rows)

    async def faults(self, live: LiveProposal, rows: Sequence[LiveRow]) -> Mapping[str, str]:
        """Row id → why it does not fit the workspace as it is now."""
        if not rows or self._rows is None:
            return {}
        gone = {file.base.path: file.new_path for file in live.files if file.delete or file.new_path is not None}
        return await self._rows.faults(rows, gone)

    async def undo_faults(self, lives: Sequence[LiveProposal], row_ids: Collection[str]) -> Mapping[str, str]:
        """Row id → why undo would leave the row as it is. `lives`: the proposals of these rows, newest first."""
        rows = [replace(row, state="undoing") for live in lives for row in live.rows if row.row_id in row_ids]
        if not rows or self._rows is None:
            return {}
        files = [file for live in lives for file in live.files]
        gone = {path: file.base.path if file.new_path else None for file in files if (path := file.made_path)}
        steps = [step for row in rows if row.change.key[0] == "path" for step in row.steps]
        gone |= {step.path: None for step in steps if step.new is None}
        faults: dict[str, str] = {}
        left: dict[RowKey, RowVersion | None] = {}
        for row in rows:
            if row.change.kind == "git" and row.change.key in left:
                continue  # it starts from what the newer row leaves
            found = await self._rows.assuming(left).faults([row], gone)
            faults |= found
            if not found:
                word = "path" if row.change.kind not in ("git", "mode") else row.change.kind
                left |= {(word, step.path): step.new for step in row.steps}
        return faults

    async def mark_and_apply(self, live: LiveProposal, undo_ids: Collection[str]) -> dict[str, str]:
        """Undo these hunks. Returns hunk id → why it cannot be undone. Must not be cancelled: hunks that are marked but
        not applied would be applied with the next decision."""
        reasons = await self.mark(live, undo_ids, ())
        await self.apply(live)
        return reasons

    async def mark(self, live: LiveProposal, undo_ids: Collection[str], redo_ids: Collection[str]) -> dict[str, str]:
        """Mark hunks to be undone or applied again where they are now. Returns why some cannot be, by hunk; none can if
        a file cannot be read."""
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
            removed_texts = self._live.removed_texts(live.files[index].base.path, hunk_ids)
            results[index] = await asyncio.to_thread(
                mark_hunks, live.files[index], texts[index], undo_ids, redo_ids, removed_texts
            )
        reasons: dict[str, str] = {}
        for index, result in results.items():
            live.files[index] = result.file
            if result.file.is_interrupted:  # it stands on the text as it is now
                result.file.deferred = None
            reasons |= result.reasons
        return reasons

    async def apply(self, live: LiveProposal, texts: Mapping[Path, FileText] | None = None) -> Proposal:
        """Carry out what is decided. `texts`: the texts of its files, if they were just read."""
        files = [file for file in live.files if file.is_interrupted]
        if not live.interrupted:
            return self._live.publish(live)
        accepted = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "accepted"}
        live.attempted |= accepted | {row.row_id for row in live.rows if row.state == "accepted"}
        undoing = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "undoing"}
        self._live.publish(live)
        before: Sequence[FileText] = ()
        try:
            before = await self._tracking.catch_up_others(live, files, texts or {})
            changed = await self._transactions.carry_out(live, self._live.shown_to(live))
            await self._note_changed(changed)
        except AmanuError as error:  # the decision could not be recorded: nothing was done
            for change in live.interrupted:
                change.leave_open(str(error))
            raise
        finally:
            for change in live.interrupted:  # only after a failure that nothing else has caught
                change.settle("This failed unexpectedly and may be half done. Check what is there now.")
            for file in files:
                undone = {hunk.hunk_id for hunk in file.hunks if hunk.state == "reverted"} & undoing
                if file.anchor is not None:
                    await asyncio.to_thread(file.update_anchor, undone)
                file.remember_applied()
            live.attempted -= {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "pending"}
            self._live.publish(live)
        await self._tracking.move_others(live, files, before)
        return live.wire()

    async def _note_changed(self, paths: Sequence[Path]) -> None:
        if self._accept_change is not None:
            for path in dict.fromkeys(paths):
                await self._accept_change(path)
