"""Decisions on proposals that no tool result told the model about, folded from a session's events, live and
restored."""

from amanu_protocol.events import Event, ItemCompleted, ProposalChanged, SessionRewound
from amanu_protocol.items import Hunk, Notice, Proposal, Row, ToolCall
from amanu_protocol.state import SessionState

LATE_DECISION = "lateDecision"
"""Code of the notice that says the model was told. Its id is `<proposal>.<version>.late`."""
_OPEN = ("pending", "conflicted")
ENDED = ("succeeded", "failed", "cancelled", "rejected")


class LateDecisions:
    """The proposals that the model must still be told about, oldest first."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}
        self._reported: dict[str, dict[str, object]] = {}
        """Proposal → turn → the outcome the model was told in it; the last one holds, and a rewind takes those of its
        turns away. A move to other lines does not count as a new outcome, nor do later changes of an applied text:
        nobody decided those, and `context/stale_files.py` reports them."""
        self._withdrawn: set[str] = set()
        """Proposals of turns that were taken out of the conversation."""

    def proposals(self) -> list[str]:
        return list(self._ids)

    def on_event(self, state: SessionState, event: Event) -> None:
        """An event was folded into `state`."""
        match event:
            case ProposalChanged(proposal=proposal) if proposal.proposal_id not in self._withdrawn:
                calls = [
                    item for call_id in proposal.tool_call_ids if isinstance(item := state.item(call_id), ToolCall)
                ]
                # While a call goes on, its result will tell. What no call proposed is the user's own doing.
                if calls and all(call.state in ENDED for call in calls):
                    self._reconsider(proposal)
            case ItemCompleted(item=ToolCall(proposal_id=str(proposal_id)) as call):
                proposal = _proposal(state, proposal_id)
                if proposal is not None and _leaves_unsaid(call, proposal):
                    self._ids[proposal_id] = None
                    self._reported.pop(proposal_id, None)
                elif proposal is not None:
                    self._report(state, proposal)
            case ItemCompleted(item=Notice(code="lateDecision", item_id=item_id)):
                proposal_id = item_id.rsplit(".", 2)[0]
                self._ids.pop(proposal_id, None)
                proposal = _proposal(state, proposal_id)
                if proposal is not None:
                    self._report(state, proposal)
            case SessionRewound(turn_ids=turn_ids):
                for proposal in state.proposals:
                    if proposal.turn_id in turn_ids:  # the model never heard of it
                        self._withdrawn.add(proposal.proposal_id)
                        self._ids.pop(proposal.proposal_id, None)
                        continue
                    reported = self._reported.get(proposal.proposal_id, {})
                    taken_back = reported.keys() & set(turn_ids)
                    for turn_id in taken_back:
                        del reported[turn_id]
                    if taken_back:
                        self._reconsider(proposal)
            case _:
                pass

    def _report(self, state: SessionState, proposal: Proposal) -> None:
        """The running turn tells how it stands."""
        reported = self._reported.setdefault(proposal.proposal_id, {})
        reported["" if state.turn is None else state.turn.turn_id] = _outcome(proposal)

    def _reconsider(self, proposal: Proposal) -> None:
        if self._is_news(proposal):
            self._ids[proposal.proposal_id] = None
        else:
            self._ids.pop(proposal.proposal_id, None)

    def _is_news(self, proposal: Proposal) -> bool:
        """Whether what the model was told no longer holds, or it was told nothing of a decision."""
        if reported := self._reported.get(proposal.proposal_id):
            return reported[next(reversed(reported))] != _outcome(proposal)
        return _decided(proposal)


def _leaves_unsaid(call: ToolCall, proposal: Proposal) -> bool:
    """Whether the call's result did not say what had been decided: the call was cancelled, it failed, or it was
    rejected after the user had accepted a part."""
    match call.state:
        case "cancelled":
            return _decided(proposal)
        case "failed":
            return call.error is not None and _decided(proposal)
        case "rejected":
            return any(each.state == "applied" for each in proposal.changes)
        case _:
            return False


def _outcome(proposal: Proposal) -> object:
    """What was decided, with the text that was applied. A hunk in conflict counts as open, and so does one that the
    user is rewriting."""
    return [_change_outcome(change) for change in proposal.changes]


def _change_outcome(change: Hunk | Row) -> object:
    if isinstance(change, Row):
        return change.row_id, "open" if change.state in _OPEN else change.state
    hunk = change
    if hunk.state in _OPEN:
        return hunk.hunk_id, "open"
    return hunk.hunk_id, hunk.state, hunk.new_text if hunk.applied_text is None else hunk.applied_text


def _proposal(state: SessionState, proposal_id: str) -> Proposal | None:
    return next((proposal for proposal in state.proposals if proposal.proposal_id == proposal_id), None)


def _decided(proposal: Proposal) -> bool:
    return any(change.state not in _OPEN for change in proposal.changes)
