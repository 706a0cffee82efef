"""The end of a session's draft: what no proposal shows of it comes into the workspace once all of it was accepted, or
is forgotten."""

import asyncio

from amanu.session.core import SessionCore
from amanu_protocol.items import Proposal


class SessionDraft:
    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._accepted = False
        self._refused = False
        self._ending: asyncio.Task[None] | None = None
        core.proposal_listeners.append(self._on_proposal)

    async def close(self) -> None:
        """Returns when nothing is being brought into the workspace."""
        if self._ending is not None:
            await self._ending

    def _on_proposal(self, proposal: Proposal) -> None:
        if not proposal.draft:
            return
        states = {hunk.state for file in proposal.files for hunk in file.hunks}
        self._accepted = self._accepted or "applied" in states
        self._refused = self._refused or not states.isdisjoint(("rejected", "conflicted"))
        if any(other.draft and other.state == "pending" for other in self._core.state.proposals):
            return
        accepted = self._accepted and not self._refused
        self._accepted = self._refused = False
        self._ending = asyncio.create_task(self._end(self._ending, accepted=accepted))

    async def _end(self, earlier: "asyncio.Task[None] | None", *, accepted: bool) -> None:
        if earlier is not None:
            await earlier
        notes = await self._core.layer.end_draft(accepted=accepted)
        if notes and not self._core.access.closed:
            self._core.notices.report_on_session("draftEnded", "info", "\n".join(notes))
