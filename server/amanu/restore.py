"""A session from its journal: the visible state and the conversation are two folds of the same records.

What a crash left open is closed here: the turn has ended as interrupted, its running calls have an unknown effect,
its proposals are open again, and nothing is run twice.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from amanu.conversation import ENTRY, INTERRUPTED, NOT_RUN, Conversation, Entry, Note, Result, Results, User, Waiting
from amanu.journal import Record
from amanu.unheard import Unheard
from amanu_protocol.events import Event, ItemCompleted, ItemStarted, ItemsWithdrawn, TurnEnded
from amanu_protocol.items import Notice, ToolCall, UserMessage
from amanu_protocol.state import SessionState, fold

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)

COMPACTING = "compacting"
"""Code of the notice that stands while a summary is made; it becomes another one, or is withdrawn."""
OPEN_STATES = ("validating", "awaitingApproval", "scheduled", "executing")


@dataclass
class Restored:
    """What the journal tells, and what must be emitted to close what a crash left open."""

    state: SessionState
    conversation: Conversation
    epoch: int
    """The last epoch on record; the session goes on in the next one."""
    prompt_ids: set[str]
    closing: list[tuple[Event, Entry | None]] = field(default_factory=list[tuple[Event, Entry | None]])
    undelivered: list[tuple[UserMessage, User]] = field(default_factory=list[tuple[UserMessage, User]])
    """Steering the person sent that no request carried yet, and how the model is to hear it."""
    unheard: Unheard = field(default_factory=Unheard)


def restore(session_id: str, records: Sequence[Record], *, read_only: bool) -> Restored:
    """Fold records. One that cannot be read (from a newer version, say) is passed over, never fatal."""
    state = SessionState(
        session_id=session_id, title="", roots=[], mode="ask", model_id="", trusted=False, read_only=read_only
    )
    entries: list[Entry] = []
    prompt_ids: set[str] = set()
    steering: dict[str, tuple[UserMessage, User]] = {}
    unheard = Unheard()
    epoch = 0
    for record in records:
        epoch = max(epoch, record.epoch)
        entry: Entry | None = None
        if record.private is not None:
            with contextlib.suppress(ValidationError):
                entry = ENTRY.validate_json(record.private)
                entries.append(entry)
        try:
            event = _EVENT.validate_json(record.event)
        except ValidationError:
            continue
        fold(state, event)
        unheard.see(state, event)
        if isinstance(event, ItemStarted | ItemCompleted) and isinstance(event.item, UserMessage):
            prompt_ids.add(event.item.item_id)
            if event.item.steer:
                if isinstance(event, ItemStarted):
                    heard = entry.said if isinstance(entry, Waiting) else User(text=event.item.text)
                    steering[event.item.item_id] = (event.item, heard)
                else:
                    steering.pop(event.item.item_id, None)
    prompt_ids |= {prompt.prompt_id for prompt in state.queue}
    closing = _close_what_is_open(state, entries)
    conversation = Conversation.load(entries)
    return Restored(state, conversation, epoch, prompt_ids, closing, list(steering.values()), unheard)


def _close_what_is_open(state: SessionState, entries: list[Entry]) -> list[tuple[Event, Entry | None]]:
    """Events that end what a dead daemon left running; their results join `entries`."""
    closing: list[tuple[Event, Entry | None]] = []
    for item in state.items:
        if isinstance(item, ToolCall) and item.state in OPEN_STATES:
            ran = item.state == "executing"
            text = INTERRUPTED if ran else NOT_RUN
            ended = item.model_copy(
                update={
                    "state": "failed" if ran else "cancelled",
                    "error": "Interrupted: effect unknown." if ran else "Interrupted before it ran.",
                }
            )
            result = Result(call_id=item.item_id, tool=item.tool, text=text, is_error=True)
            closing.append((ItemCompleted(item=ended), result))
            entries.append(result)
        elif isinstance(item, Notice) and item.code == COMPACTING:
            closing.append((ItemsWithdrawn(item_ids=[item.item_id], reason="The daemon stopped meanwhile."), None))
    if state.turn is not None:
        message = "The daemon stopped in the middle of this turn."
        ended_turn = TurnEnded(turn_id=state.turn.turn_id, reason="interrupted", message=message, can_continue=True)
        closing.append((ended_turn, None))
    return closing


def note(*said: Note) -> Results:
    """A journal entry that adds a text, and pictures before it, after the last results or as a message of its own."""
    return Results(results=(), notes=said)
