"""What a person decides about hunks, by code actions and lenses: each answer names what was seen."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain import commands as orders
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.editor import ERROR, Face
from amanu.frontends.lsp.plain.hunk_marks import Mark, seal
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.labels import IGNORED

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


Resolve = Callable[["Session", Proposal, list[r.HunkDecision]], Awaitable[bool]]


class Decisions:
    """`seen` are the hunks that the published diagnostics show."""

    def __init__(self, sessions: "Sessions", face: Face, visible_marks: Callable[[], Sequence[Mark]]) -> None:
        self._sessions = sessions
        self._face = face
        self._seen = visible_marks

    async def decide(self, order: orders.Hunks, decision: str) -> None:
        order = self._or_seen(order, opened=decision != "keep")
        session = await self._sessions.get(order.session or "")
        proposals = {proposal_id: session.edits.proposal(proposal_id) for proposal_id in order.proposals}
        for proposal_id, seals in order.proposals.items():
            _check_seals(proposals[proposal_id], seals)
        for proposal_id, seals in order.proposals.items():
            if decision == "keep":
                await self._keep(session, session.edits.proposal(proposal_id), seals)
            else:
                decided = [r.HunkDecision(hunk_id=hunk_id, decision=decision) for hunk_id in seals]
                if not await self.resolve(session, session.edits.proposal(proposal_id), decided):
                    return

    async def resolve(self, session: "Session", proposal: Proposal, decided: list[r.HunkDecision]) -> bool:
        """Take decisions, and say what did not go. False when they came too soon."""
        result = await session.edits.resolve(
            r.ProposalResolveParams(
                session_id=session.state.session_id,
                proposal_id=proposal.proposal_id,
                version=proposal.version,
                hunks=decided,
            )
        )
        if result.status == "tooSoon":
            self._face.say(IGNORED["tooSoon"])
            return False
        accepted = {hunk.hunk_id for hunk in decided if hunk.decision == "accept"}
        for file in result.proposal.files:
            for hunk in file.hunks:
                if hunk.hunk_id in accepted and hunk.state == "conflicted":
                    self._face.say(f"Amanu: {Path(file.path).name}: {hunk.reason or 'it does not fit'}", ERROR)
        return True

    async def _keep(self, session: "Session", proposal: Proposal, seals: Mapping[str, str]) -> None:
        await session.edits.decide(
            r.ProposalDecideParams(
                session_id=session.state.session_id,
                scope=r.EditScope(proposal_id=proposal.proposal_id, hunk_ids=list(seals)),
                decision="keep",
                seen=[r.SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version)],
            )
        )

    async def undo(self, order: orders.Hunks) -> None:
        order = self._or_seen(order, opened=False)
        session = await self._sessions.get(order.session or "")
        for proposal_id, seals in order.proposals.items():
            _check_seals(session.edits.proposal(proposal_id), seals)
        for proposal_id, seals in order.proposals.items():
            await self._take_back(session, r.EditScope(proposal_id=proposal_id, hunk_ids=list(seals)))

    async def undo_turn(self, order: orders.Turn) -> None:
        await self._take_back(await self._sessions.get(order.session), r.EditScope(turn_id=order.turn))

    async def _take_back(self, session: "Session", scope: r.EditScope) -> None:
        result = await session.edits.undo(r.ProposalUndoParams(session_id=session.state.session_id, scope=scope))
        for file in result.files:
            for hunk in file.skipped:
                self._face.say(f"Amanu: {Path(file.path).name}: not undone: {hunk.reason}", ERROR)

    def _or_seen(self, order: orders.Hunks, *, opened: bool) -> orders.Hunks:
        """Without arguments it is about all that our diagnostics show."""
        if order.proposals:
            return order
        marks = [mark for mark in self._seen() if (mark.open if opened else mark.unreviewed)]
        if not marks:
            raise AmanuError("invalidParams", "There is nothing to decide.")
        return orders.Hunks.model_validate(review.arguments(marks))


def _check_seals(proposal: Proposal, seals: Mapping[str, str]) -> None:
    seals_now = {hunk.hunk_id: seal(file, hunk) for file in proposal.files for hunk in file.hunks}
    if any(seals_now.get(hunk_id) != seal_seen for hunk_id, seal_seen in seals.items()):
        raise AmanuError("proposalConflict", "That change was updated.", hint="Review it again.")
