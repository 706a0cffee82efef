"""What a user decides about hunks, by code actions and lenses: each answer names what was seen."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.command_arguments import HunksArguments, TurnArguments
from amanu.frontends.lsp.plain.diagnostics import Diagnostics
from amanu.frontends.lsp.plain.editor import ERROR, PlainEditor
from amanu.frontends.lsp.plain.hunk_marks import seal
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.labels import IGNORED

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class Decisions:
    """By one client, whose user sees the hunks that `diagnostics` show."""

    def __init__(self, sessions: "Sessions", editor: PlainEditor, diagnostics: Diagnostics) -> None:
        self._sessions = sessions
        self._editor = editor
        self._diagnostics = diagnostics

    async def decide(self, arguments: HunksArguments, decision: str) -> None:
        arguments = self._or_all_shown(arguments, opened=decision != "keep")
        session = await self._sessions.get(arguments.session or "")
        proposals = {proposal_id: session.edits.proposal(proposal_id) for proposal_id in arguments.proposals}
        for proposal_id, seals in arguments.proposals.items():
            _check_seals(proposals[proposal_id], seals)
        for proposal_id, seals in arguments.proposals.items():
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
            self._editor.say(IGNORED["tooSoon"])
            return False
        accepted = {hunk.hunk_id for hunk in decided if hunk.decision == "accept"}
        for file in result.proposal.files:
            for hunk in file.hunks:
                if hunk.hunk_id in accepted and hunk.state == "conflicted":
                    self._editor.say(f"Amanu: {Path(file.path).name}: {hunk.reason or 'it does not fit'}", ERROR)
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

    async def undo(self, arguments: HunksArguments) -> None:
        arguments = self._or_all_shown(arguments, opened=False)
        session = await self._sessions.get(arguments.session or "")
        for proposal_id, seals in arguments.proposals.items():
            _check_seals(session.edits.proposal(proposal_id), seals)
        for proposal_id, seals in arguments.proposals.items():
            await self._take_back(session, r.EditScope(proposal_id=proposal_id, hunk_ids=list(seals)))

    async def undo_turn(self, arguments: TurnArguments) -> None:
        await self._take_back(await self._sessions.get(arguments.session), r.EditScope(turn_id=arguments.turn))

    async def _take_back(self, session: "Session", scope: r.EditScope) -> None:
        result = await session.edits.undo(r.ProposalUndoParams(session_id=session.state.session_id, scope=scope))
        for file in result.files:
            for hunk in file.skipped:
                self._editor.say(f"Amanu: {Path(file.path).name}: not undone: {hunk.reason}", ERROR)
        if result.note:
            self._editor.say(f"Amanu: {result.note}")

    def _or_all_shown(self, arguments: HunksArguments, *, opened: bool) -> HunksArguments:
        """Without arguments it is about all that our diagnostics show."""
        if arguments.proposals:
            return arguments
        marks = [mark for mark in self._diagnostics.shown if (mark.open if opened else mark.unreviewed)]
        if not marks:
            raise AmanuError("invalidParams", "There are no changes to decide on.")
        return HunksArguments.model_validate(review.hunk_arguments(marks))


def _check_seals(proposal: Proposal, seals: Mapping[str, str]) -> None:
    seals_now = {hunk.hunk_id: seal(file, hunk) for file in proposal.files for hunk in file.hunks}
    if any(seals_now.get(hunk_id) != seal_seen for hunk_id, seal_seen in seals.items()):
        raise AmanuError("proposalConflict", "That change was updated.", hint="Review it again.")
