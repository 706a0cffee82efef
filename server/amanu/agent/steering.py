"""Passes on to the model what the user says during a turn, and decisions they make late."""

from amanu.core.agent import Inbox
from amanu.core.conversation import User
from amanu.core.listeners import Continue, Notes, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted


class Steering(TurnListener):
    """Takes notes from the inbox after each step and when the model stops. Lives for one turn."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._generation = -1

    async def before_request(self, turn: TurnView, step: int) -> Notes | None:
        """Also takes what arrived while the conversation was compacted or a reminder was chosen. A paused reply is not
        interrupted: the model goes on with it first."""
        last = turn.conversation.last
        rewritten, self._generation = self._generation != turn.conversation.generation, turn.conversation.generation
        reminded = isinstance(last, User) and last.from_system
        return self._inbox.take_notes() if (rewritten and step > 1) or reminded else None

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes:
        return self._inbox.take_notes()

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | None:
        notes = self._inbox.take_notes()
        return Continue(notes) if notes else None


class LateSteering(TurnListener):
    """The last listener in the list: takes what the user said while those before it judged the reply, and closes the
    inbox if there is nothing. Lives for one turn."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | None:
        if notes := self._inbox.take_notes():
            return Continue(notes)
        self._inbox.close()
        return None
