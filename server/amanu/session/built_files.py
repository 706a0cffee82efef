"""Files that commands have built on a draft and that git ignores. They have no row; they come into the workspace once
all of the draft is accepted."""

import asyncio
from collections.abc import Collection, Sequence

from amanu.session.core import SessionCore
from amanu_protocol.items import Hunk, Proposal, Row

REWOUND = "The conversation was rewound to before this was proposed."
"""The reason of hunks and rows that a rewind rejects: nobody decided on them."""


class BuiltFiles:
    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._open_ids: set[str] = set()
        """The proposals that the draft has been in since it was last decided."""
        self._decided_ids: set[str] = set()
        """Hunks and rows decided with an earlier draft; later ones of the same turn join the same proposal."""
        self._ending: asyncio.Task[None] | None = None
        core.proposal_listeners.append(self._on_proposal)

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
        if any(change.state == "conflicted" for draft in decided for change in draft.changes):
            return
        self._open_ids.clear()
        if _is_accepted(decided, self._decided_ids):
            self._ending = asyncio.create_task(self._bring_built(self._ending))
        self._decided_ids |= {_id(change) for draft in decided for change in draft.changes}

    async def _bring_built(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await earlier
        notes = await self._core.layer.bring_built(self._core.approvals.guarded)
        if notes and not self._core.access.closed:
            self._core.notices.report_on_session("draftEnded", "info", "\n".join(notes))


def _id(change: Hunk | Row) -> str:
    return change.hunk_id if isinstance(change, Hunk) else change.row_id


def _is_accepted(drafts: Sequence[Proposal], decided_ids: Collection[str]) -> bool:
    """Whether something of these drafts was applied, and the user rejected or undid nothing. What is in `decided_ids`,
    or was rewound, does not count."""
    changes = [each for draft in drafts for each in draft.changes]
    changes = [each for each in changes if _id(each) not in decided_ids and each.reason != REWOUND]
    # What a rule denied was never the user's to accept.
    refused = any(each.state == "reverted" or (each.state == "rejected" and each.reviewed) for each in changes)
    return any(each.state == "applied" for each in changes) and not refused
