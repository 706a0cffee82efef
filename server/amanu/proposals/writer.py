"""Writing what was decided into the files."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.apply import SavePreimage, apply, settle
from amanu.proposals.crash_recovery import interrupted_files
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import STATES_AFTER, LiveProposal
from amanu.proposals.tracking import FileTracking
from amanu.proposals.undo import UndoResult, mark_hunks
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal


class ProposalWriter:
    """What `save_preimage` saves is durable when it returns; `accept_change` is told each path that was changed, and
    does not raise. The caller holds the lock of the proposals."""

    def __init__(
        self,
        workspace: Workspace,
        live: LiveProposals,
        tracking: FileTracking,
        save_preimage: SavePreimage,
        accept_change: Callable[[Path], Awaitable[None]] | None,
    ) -> None:
        self._workspace = workspace
        self._live = live
        self._tracking = tracking
        self._save_preimage = save_preimage
        self._accept_change = accept_change

    async def mark_and_apply(
        self, live: LiveProposal, undo_ids: Collection[str] = (), redo_ids: Collection[str] = ()
    ) -> dict[str, str]:
        """Must not be cancelled in between: what is marked but not applied would be applied with the next decision."""
        reasons = await self.mark(live, undo_ids, redo_ids)
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
            reasons |= result.reasons
        return reasons

    async def apply(self, live: LiveProposal, texts: Mapping[Path, FileText] | None = None) -> Proposal:
        """`texts`: the texts of its files, if they were just read."""
        files = interrupted_files(live)
        if not files:
            return self._live.publish(live)
        live.attempted |= {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "accepted"}
        undoing = {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "undoing"}
        self._live.publish(live)
        try:
            before = await self._tracking.catch_up_others(live, files, texts or {})
            shown_files = self._live.shown_to(live)
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
            live.attempted -= {hunk.hunk_id for _, hunk in live.hunks() if hunk.state == "pending"}
            self._live.publish(live)
        await self._tracking.move_others(live, files, before)
        return live.wire()
