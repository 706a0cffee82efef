"""The requests about one session's edits: decide, revise, undo, see what changed, go back."""

from collections.abc import Callable

from amanu.agent.approval import Approvals
from amanu.agent.emit import Emit
from amanu.stream import Client
from amanu.workspace.proposals import Proposals
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.state import SessionState


class Edits:
    """One method per request, raising `AmanuError`. `check` raises when nothing may be changed."""

    def __init__(
        self,
        proposals: Proposals,
        approvals: Approvals,
        state: SessionState,
        emit: Emit,
        check: Callable[[], None],
    ) -> None:
        self._proposals = proposals
        self._approvals = approvals
        self._state = state
        self._emit = emit
        self._check = check

    def proposal(self, proposal_id: str) -> Proposal:
        found = next((each for each in self._state.proposals if each.proposal_id == proposal_id), None)
        if found is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return found

    async def resolve(self, params: r.ProposalResolveParams) -> r.ProposalResolveResult:
        """Decide hunks; accepted ones are in their file when this returns, or conflicted."""
        self._check()
        proposal = self._current(params.proposal_id, params.version)
        if self._too_soon(proposal):
            return r.ProposalResolveResult(status="tooSoon", proposal=proposal)
        proposal = await self._proposals.resolve(params.proposal_id, params.hunks)
        await self._emit.durable()
        return r.ProposalResolveResult(status="resolved", proposal=proposal)

    async def decide(self, params: r.ProposalDecideParams) -> r.ProposalDecideResult:
        raise NotImplementedError

    async def revise(self, params: r.ProposalReviseParams) -> r.ProposalResult:
        raise NotImplementedError

    async def set_review(self, params: r.ProposalSetReviewParams) -> r.ProposalResult:
        raise NotImplementedError

    async def undo(self, params: r.ProposalUndoParams) -> r.ProposalUndoResult:
        raise NotImplementedError

    async def diff(self, params: r.ProposalDiffParams) -> r.ProposalDiffResult:
        raise NotImplementedError

    async def checkpoints(self) -> r.CheckpointListResult:
        raise NotImplementedError

    async def preview_restore(self, params: r.CheckpointPreviewParams) -> r.CheckpointPreviewResult:
        raise NotImplementedError

    async def restore(self, params: r.CheckpointRestoreParams, client: Client) -> r.CheckpointRestoreResult:
        raise NotImplementedError

    def _current(self, proposal_id: str, version: int) -> Proposal:
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
