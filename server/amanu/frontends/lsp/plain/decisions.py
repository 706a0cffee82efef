"""A user's decisions about changes, by code actions and lenses: each answer names what was seen."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.change_marks import is_open, seals
from amanu.frontends.lsp.plain.command_arguments import ChangesArguments, TurnArguments
from amanu.frontends.lsp.plain.diagnostics import Diagnostics
from amanu.frontends.lsp.plain.editor import ERROR, PlainEditor
from amanu.frontends.lsp.plain.patch_file import Decided
from amanu.frontends.row_text import row_name
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.labels import IGNORED

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class Decisions:
    """The decisions of one client, whose user was told about the changes in `diagnostics.shown`."""

    def __init__(self, sessions: "Sessions", editor: PlainEditor, diagnostics: Diagnostics) -> None:
        self._sessions = sessions
        self._editor = editor
        self._diagnostics = diagnostics

    async def decide(self, arguments: ChangesArguments, decision: str) -> None:
        arguments = self._or_all_shown(arguments, opened=decision != "keep")
        session = await self._sessions.get(arguments.session or "")
        proposals = {proposal_id: session.edits.proposal(proposal_id) for proposal_id in arguments.proposals}
        for proposal_id, seen in arguments.proposals.items():
            _check_seals(proposals[proposal_id], seen)
        for proposal_id, seen in arguments.proposals.items():
            proposal = session.edits.proposal(proposal_id)
            hunk_ids, row_ids = _split(proposal, seen)
            if decision == "keep":
                await self._keep(session, proposal, _scope(proposal, seen))
                continue
            decided = Decided(
                [r.HunkDecision(hunk_id=hunk_id, decision=decision) for hunk_id in hunk_ids],
                [r.RowDecision(row_id=row_id, decision=decision) for row_id in row_ids],
            )
            if not await self.resolve(session, proposal, decided):
                return

    async def resolve(self, session: "Session", proposal: Proposal, decided: Decided) -> bool:
        """Take decisions, and say what did not go. False when they came too soon."""
        result = await session.edits.resolve(
            r.ProposalResolveParams(
                session_id=session.state.session_id,
                proposal_id=proposal.proposal_id,
                version=proposal.version,
                hunks=decided.hunks,
                rows=decided.rows,
            )
        )
        if result.status == "tooSoon":
            self._editor.say(IGNORED["tooSoon"])
            return False
        accepted = {hunk.hunk_id for hunk in decided.hunks if hunk.decision == "accept"}
        accepted_rows = {row.row_id for row in decided.rows if row.decision == "accept"}
        for file in result.proposal.files:
            for hunk in file.hunks:
                if hunk.hunk_id in accepted and hunk.state == "conflicted":
                    self._editor.say(f"Amanu: {Path(file.path).name}: {hunk.reason or 'it does not fit'}", ERROR)
        for row in result.proposal.rows:
            if row.row_id in accepted_rows and is_open(row):
                name = row_name(row, session.state.roots)
                self._editor.say(f"Amanu: {name}: {row.reason or 'it does not fit'}", ERROR)
        return True

    async def _keep(self, session: "Session", proposal: Proposal, scope: r.EditScope) -> None:
        await session.edits.decide(
            r.ProposalDecideParams(
                session_id=session.state.session_id,
                scope=scope,
                decision="keep",
                seen=[r.SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version)],
            )
        )

    async def undo(self, arguments: ChangesArguments) -> None:
        arguments = self._or_all_shown(arguments, opened=False)
        session = await self._sessions.get(arguments.session or "")
        for proposal_id, seen in arguments.proposals.items():
            _check_seals(session.edits.proposal(proposal_id), seen)
        for proposal_id, seen in arguments.proposals.items():
            await self._take_back(session, _scope(session.edits.proposal(proposal_id), seen))

    async def undo_turn(self, arguments: TurnArguments) -> None:
        await self._take_back(await self._sessions.get(arguments.session), r.EditScope(turn_id=arguments.turn))

    async def _take_back(self, session: "Session", scope: r.EditScope) -> None:
        result = await session.edits.undo(r.ProposalUndoParams(session_id=session.state.session_id, scope=scope))
        for file in result.files:
            for hunk in file.skipped:
                self._editor.say(f"Amanu: {Path(file.path).name}: not undone: {hunk.reason}", ERROR)
        if result.note:
            self._editor.say(f"Amanu: {result.note}")

    def _or_all_shown(self, arguments: ChangesArguments, *, opened: bool) -> ChangesArguments:
        """The arguments; if they name nothing, all changes that the user was told about."""
        if arguments.proposals:
            return arguments
        marks = [mark for mark in self._diagnostics.shown if (mark.open if opened else mark.unreviewed)]
        if not marks:
            raise AmanuError("invalidParams", "There are no changes to decide on.")
        return ChangesArguments.model_validate(review.change_arguments(marks))


def _scope(proposal: Proposal, change_ids: Iterable[str]) -> r.EditScope:
    hunk_ids, row_ids = _split(proposal, change_ids)
    return r.EditScope(proposal_id=proposal.proposal_id, hunk_ids=hunk_ids, row_ids=row_ids)


def _split(proposal: Proposal, change_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """The ids of the hunks, and those of the rows."""
    rows = {row.row_id for row in proposal.rows}
    change_ids = list(change_ids)
    return [each for each in change_ids if each not in rows], [each for each in change_ids if each in rows]


def _check_seals(proposal: Proposal, seen: Mapping[str, str]) -> None:
    seals_now = seals(proposal)
    if any(seals_now.get(change_id) != seal_seen for change_id, seal_seen in seen.items()):
        raise AmanuError("proposalConflict", "That change was updated.", hint="Review it again.")
