"""Changes that the model is to make again, as their lines are no longer what it wrote them for.

They are rejected, and the report of that has their texts (`proposals/report.py`): whatever carries decisions to the
model (the result of a call that waits for them, a note in the running turn or before the next prompt) asks for them
anew. So nothing is lost if no turn can start now: the next prompt brings it along.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from amanu.context.mentions import without_mentions
from amanu.proposals.proposals import Proposals
from amanu.proposals.report import RETRY
from amanu.session.core import SessionCore
from amanu.session.late_decisions import ENDED
from amanu.session.review import SessionEdits
from amanu.text.display import file_list
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, Proposal, Row, ToolCall
from amanu_protocol.requests import HunkDecision, PromptSendParams, ProposalRetryParams, RowDecision

_OPEN = ("pending", "conflicted")


class ChangeRetry:
    """The changes that one session's model is to make again."""

    def __init__(self, core: SessionCore, edits: SessionEdits) -> None:
        self._proposals: Proposals = core.proposals
        self._edits = edits
        self._approvals = core.approvals
        self._state = core.state
        self._emit = core.emit
        self._name = core.workspace.display_path

    def changes(self, params: ProposalRetryParams) -> Sequence[Hunk | Row] | None:
        """The changes to be made again; None if the user cannot have read them yet. Raises `AmanuError`
        (proposalConflict)."""
        proposal = self._edits.current_proposal(params.proposal_id, params.version)
        if self._edits.too_soon(proposal):
            return None
        if params.hunk_ids is None and params.row_ids is None:
            changes = [change for change in proposal.changes if change.state == "conflicted"]
            if not changes:
                raise AmanuError("proposalConflict", "Nothing of this proposal is in conflict any more.")
            return changes
        named = {*(params.hunk_ids or ()), *(params.row_ids or ())}
        changes = [change for change in proposal.changes if _change_id(change) in named and change.state in _OPEN]
        if len(changes) < len(named) or not named:
            raise AmanuError("proposalConflict", "That change is not open any more. Look at it again.")
        return changes

    async def reject(self, proposal_id: str, changes: Sequence[Hunk | Row]) -> str:
        """Reject these changes. Returns the sentence that asks for them anew, or "" if a call that goes on asks for
        them in its result."""
        proposal = self._proposals.get(proposal_id)
        call_ids = proposal.tool_call_ids
        hunks = [change for change in changes if isinstance(change, Hunk)]
        rows = [change for change in changes if isinstance(change, Row)]
        going_on = self._state.turn is not None and not all(map(self._has_ended, call_ids))
        with self._approvals.deciding():
            await self._proposals.resolve(
                proposal_id,
                [HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason=RETRY) for hunk in hunks],
                [RowDecision(row_id=row.row_id, decision="reject", reason=RETRY) for row in rows],
            )
        await self._emit.durable()
        return "" if going_on else self._sentence(proposal, {_change_id(change) for change in changes})

    def _has_ended(self, call_id: str) -> bool:
        call = self._state.item(call_id)
        return not isinstance(call, ToolCall) or call.state in ENDED

    def _sentence(self, proposal: Proposal, ids: Collection[str]) -> str:
        """The sentence for the user; the model gets it with the texts in front."""
        paths = [file.path for file in proposal.files if any(hunk.hunk_id in ids for hunk in file.hunks)]
        paths += [row.path for row in proposal.rows if row.row_id in ids]
        names = file_list([*dict.fromkeys(without_mentions(self._name(Path(path))) for path in paths)])
        return f"Redo the {'change' if len(ids) == 1 else 'changes'} to {names} on the present text."


def prompt(params: ProposalRetryParams, sentence: str) -> PromptSendParams:
    """The prompt that asks for the changes anew: one for each version of the proposal."""
    prompt_id = f"retry-{params.proposal_id}.{params.version}"
    return PromptSendParams(session_id=params.session_id, prompt_id=prompt_id, text=sentence)


def _change_id(change: Hunk | Row) -> str:
    return change.hunk_id if isinstance(change, Hunk) else change.row_id
