"""What the user says into the running turn, and decides late, reaches the model."""

from amanu.core.agent import Inbox
from amanu.core.conversation import User
from amanu.core.listeners import Continue, Notes, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted


class Steering(TurnListener):
    """Of one turn."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._generation = -1

    async def before_request(self, turn: TurnView, step: int) -> Notes | None:
        """What came while the daemon made room or thought about a reminder. A reply that paused is not broken into: it
        goes on with what it was about."""
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
    """Stands last: what the user said while the listeners before it thought about a reply's end. Of one turn."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | None:
        notes = self._inbox.take_notes()
        return Continue(notes) if notes else None
