"""The end of a session's draft: what no proposal shows of it comes into the workspace once all of it was accepted, or
is forgotten."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from amanu.session.core import SessionCore
from amanu.text.display import one_line
from amanu.tools.shell.report import file_list
from amanu_protocol.items import Proposal

_NOT_TAKEN = ("conflicted", "reverted")


class SessionDraft:
    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._open_ids: set[str] = set()
        """The proposals that the draft has been in since it was last decided."""
        self._ending: asyncio.Task[None] | None = None
        core.proposal_listeners.append(self._on_proposal)

    async def open(self) -> None:
        """Say what a daemon that was stopped may not have brought into the workspace of an accepted draft."""
        ended = [draft for draft in self._core.state.proposals if draft.besides and draft.state == "settled"]
        if _is_accepted(ended):
            names = self._names([Path(path) for draft in ended for path in draft.besides])
            text = f"Amanu was stopped while applying the draft. Check these; they may not have been applied: {names}."
            self._core.notices.report_on_session("draftEnded", "warning", text)
        await self._core.proposals.drafts.forget_besides([draft.proposal_id for draft in ended])

    async def close(self) -> None:
        """Returns when nothing is being brought into the workspace."""
        if self._ending is not None:
            await self._ending

    def _on_proposal(self, proposal: Proposal) -> None:
        if not proposal.draft:
            return
        drafts = {other.proposal_id: other for other in self._core.state.proposals if other.draft}
        drafts[proposal.proposal_id] = proposal
        if proposal.state == "pending":
            self._open_ids.add(proposal.proposal_id)
        if not self._open_ids or any(draft.state == "pending" for draft in drafts.values()):
            return
        decided = [drafts[proposal_id] for proposal_id in self._open_ids if proposal_id in drafts]
        self._open_ids.clear()
        lost = self._core.layer.lost(path for draft in decided for path in draft.besides)
        self._ending = asyncio.create_task(self._end(self._ending, decided, lost))

    async def _end(
        self, earlier: "asyncio.Task[None] | None", decided: Sequence[Proposal], lost: Sequence[Path]
    ) -> None:
        accepted = _is_accepted(decided)
        if earlier is not None:
            await earlier
        notes = await self._core.layer.end_draft(self._core.approvals.denied, accepted=accepted)
        if lost and accepted:
            lead = "Not applied, because the session was closed or Amanu restarted and these were lost"
            notes.append(f"{lead}: {self._names(lost)}.")
        if notes and not self._core.access.closed:
            self._core.notices.report_on_session("draftEnded", "info", "\n".join(notes))
        await self._core.proposals.drafts.forget_besides([draft.proposal_id for draft in decided])

    def _names(self, paths: Sequence[Path]) -> str:
        return file_list([one_line(self._core.workspace.display_path(path)) for path in paths])


def _is_accepted(drafts: Sequence[Proposal]) -> bool:
    """Whether all of them was accepted, at least something."""
    hunks = [hunk for draft in drafts for file in draft.files for hunk in file.hunks]
    # What a rule denied was never the user's to accept.
    refused = any(hunk.state in _NOT_TAKEN or (hunk.state == "rejected" and hunk.reviewed) for hunk in hunks)
    return any(hunk.state == "applied" for hunk in hunks) and not refused
