"""Which of the questions that wait is put to the user, and what was typed at those that were left for another."""

from amanu.cli.ui.dialog import Place
from amanu.client.session_view import SessionView
from amanu_protocol.items import Approval, Question


class WaitingQuestions:
    """The approvals of one session (one of each proposal: the answer is about all of it), then its questions."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._chosen = ""
        self._typed: dict[str, str] = {}

    @property
    def current(self) -> Approval | Question | None:
        """The one that was gone to, while it waits; else the oldest."""
        waiting = self._waiting()
        return waiting.get(self._chosen, next(iter(waiting.values()), None))

    def place(self) -> Place:
        waiting = [*self._waiting()]
        return Place(waiting.index(self._chosen) + 1 if self._chosen in waiting else 1, max(1, len(waiting)))

    def move(self, by: int, typed: str) -> None:
        """Go to the next one or the one before, round and round."""
        waiting = [*self._waiting()]
        if waiting:
            at = self.place().number - 1
            self._typed[waiting[at]] = typed
            self._chosen = waiting[(at + by) % len(waiting)]

    def typed(self) -> str:
        """The words that stand at the current one, which are put there once."""
        waiting = [*self._waiting()]
        return self._typed.pop(waiting[self.place().number - 1], "") if waiting else ""

    def _waiting(self) -> dict[str, Approval | Question]:
        state = self._view.state
        found: dict[str, Approval | Question] = {}
        proposals: set[str] = set()
        for approval in state.approvals:
            if approval.proposal_id not in proposals:
                found[approval.tool_call_id] = approval
            if approval.proposal_id is not None:
                proposals.add(approval.proposal_id)
        return found | {question.item_id: question for question in state.questions}
