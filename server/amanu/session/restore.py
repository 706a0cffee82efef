"""Restores a session from its journal: the visible state and the conversation are two folds of the same records.

What a crash left open is closed here: the turn ends as interrupted, its running calls have an unknown effect, its
proposals are open again, and nothing is run twice.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from amanu.agent.window.window import COMPACTING
from amanu.core.conversation import (
    DID_NOT_RUN,
    ENTRY,
    INTERRUPTED,
    MAY_HAVE_RUN,
    NOT_RUN,
    AnyEntry,
    Assistant,
    Conversation,
    Entry,
    Note,
    PendingSteering,
    Result,
    Results,
    Rewound,
    Text,
    User,
)
from amanu.core.ending import DAEMON_STOPPED
from amanu.core.questions import outlives_its_call
from amanu.proposals.model import UNDECIDED
from amanu.session.history import ItemHistory
from amanu.session.late_decisions import LateDecisions
from amanu.session.notices import RUNNING
from amanu.session.record_format import read_event
from amanu.storage.journal import Record
from amanu.text.questions import STILL_OPEN, report, summary
from amanu.text.wording import summarize_agent, summarize_job
from amanu.tools.ask_user import AskUser
from amanu_protocol.events import (
    AgentChanged,
    Event,
    ItemCompleted,
    ItemStarted,
    ItemsWithdrawn,
    JobChanged,
    SessionRewound,
    TurnEnded,
)
from amanu_protocol.items import Answer, Job, Notice, Proposal, ProposedFile, Question, Thought, ToolCall, UserMessage
from amanu_protocol.state import SessionState, fold

OPEN_STATES = ("validating", "awaitingApproval", "scheduled", "executing")

_BASE_LOST = "the text it was made for can no longer be read"


@dataclass
class Restored:
    """A session as its journal has it, and the events that close what a crash left open."""

    state: SessionState
    conversation: Conversation = field(default_factory=Conversation)
    epoch: int = 0
    """The last epoch on record; the session goes on in the next one."""
    created_at: int | None = None
    """Milliseconds since the epoch; None when nothing is on record."""
    prompt_ids: set[str] = field(default_factory=set[str])
    closing_events: list[tuple[Event, Entry | None]] = field(default_factory=list[tuple[Event, Entry | None]])
    steering: dict[str, tuple[UserMessage, User]] = field(default_factory=dict[str, tuple[UserMessage, User]])
    """Steering that no request has carried yet: the user's message, and the model's form of it."""
    late_decisions: LateDecisions = field(default_factory=LateDecisions)
    history: ItemHistory = field(default_factory=ItemHistory)


REWINDS = '{"kind":"sessionRewound"'
"""How a rewind's event begins in its record."""
USAGE = '{"kind":"usageChanged"'
"""How the event of a record about usage begins: each takes the place of the one before, so only the last is read."""

Span = tuple[int, int]
"""Positions (first, end) of the records of a rewind: the model no longer has what they added."""


def rewound(rewinds: Iterable[Record]) -> list[Span]:
    """The spans of records that these rewinds took out of the conversation."""
    spans: list[Span] = []
    for record in rewinds:
        with contextlib.suppress(ValidationError):
            entry = ENTRY.validate_json(record.private or "null")
            if isinstance(entry, Rewound):
                spans.append((entry.position, record.position))
    return spans


def conversation(records: Iterable[Record], spans: Sequence[Span]) -> Conversation:
    """The conversation that these records add up to."""
    return Conversation.load(filter(None, (_entry(record, spans) for record in records)))


def restore(
    session_id: str,
    records: Iterable[Record],
    spans: Sequence[Span] = (),
    *,
    read_only: bool,
    blob_text: Callable[[str], str | None] = lambda blob_id: None,
) -> Restored:
    """Fold the records one by one: of a long session only what is needed is ever in memory. A record that cannot be
    read (from a newer version, say) is skipped. `blob_text` reads a blob; None when it cannot be read."""
    state = SessionState(
        session_id=session_id, title="", roots=[], mode="ask", model_id="", trusted=False, read_only=read_only
    )
    restored = Restored(state)
    restored.conversation = Conversation.load(_entries(restored, records, spans))
    restored.prompt_ids |= {prompt.prompt_id for prompt in state.queue}
    state.proposals = [_with_base_texts(proposal, blob_text) for proposal in state.proposals]
    return restored


def _with_base_texts(proposal: Proposal, blob_text: Callable[[str], str | None]) -> Proposal:
    return proposal.model_copy(update={"files": [_with_base_text(file, blob_text) for file in proposal.files]})


def _with_base_text(file: ProposedFile, blob_text: Callable[[str], str | None]) -> ProposedFile:
    """With the base text from its blob. If it cannot be read, undecided hunks become conflicts: they have no place."""
    if file.base_blob is None or file.base_text is not None:
        return file
    base_text = blob_text(file.base_blob)
    if base_text is not None:
        return file.model_copy(update={"base_text": base_text})
    lost = {"state": "conflicted", "reason": _BASE_LOST}
    hunks = [hunk.model_copy(update=lost) if hunk.state in UNDECIDED else hunk for hunk in file.hunks]
    return file.model_copy(update={"hunks": hunks})


def _entries(restored: Restored, records: Iterable[Record], spans: Sequence[Span]) -> Iterator[AnyEntry]:
    """The entries of the conversation; everything else has been folded when they are exhausted."""
    usage: Record | None = None
    for record in records:
        restored.epoch = max(restored.epoch, record.epoch)
        if restored.created_at is None:
            restored.created_at = record.timestamp
        if record.private is None and record.event.startswith(USAGE):
            usage = record
            continue
        entry = _entry(record, spans)
        if entry is not None:
            yield entry
        try:
            event = read_event(record, entry)
        except ValidationError:
            continue
        if isinstance(entry, Result):
            event = _sharing(event, entry)
        _fold(restored, event, entry, record.position)
    if usage is not None:
        with contextlib.suppress(ValidationError):
            fold(restored.state, read_event(usage))
    restored.closing_events = _close_what_is_open(restored.state)
    yield from (entry for _, entry in restored.closing_events if entry is not None)


def _entry(record: Record, spans: Sequence[Span]) -> AnyEntry | None:
    """What the record adds to the conversation; None for nothing, or when it was rewound."""
    if record.private is None or any(start <= record.position < end for start, end in spans):
        return None
    try:
        return ENTRY.validate_json(record.private)
    except ValidationError:
        return None


def _sharing(event: Event, result: Result) -> Event:
    """The event, sharing the output text with the conversation: there are many of these, and they are long."""
    match event:
        case ItemCompleted(item=ToolCall(output=output) as call) if output == result.text and output is not result.text:
            return ItemCompleted(item=call.model_copy(update={"output": result.text}))
        case _:
            return event


def _fold(restored: Restored, event: Event, entry: Entry | None, position: int) -> None:
    fold(restored.state, event)
    restored.late_decisions.on_event(restored.state, event)
    restored.history.on_event(restored.state, event, position)
    if isinstance(event, SessionRewound):
        restored.steering = {
            key: entry for key, entry in restored.steering.items() if entry[0].turn_id not in event.turn_ids
        }
    if isinstance(event, ItemsWithdrawn):
        for item_id in event.item_ids:
            restored.steering.pop(item_id, None)
    if isinstance(event, ItemStarted | ItemCompleted) and isinstance(event.item, UserMessage):
        item = event.item
        restored.prompt_ids.add(item.item_id)
        if isinstance(event, ItemCompleted):
            restored.steering.pop(item.item_id, None)
        elif item.steer:
            restored.steering[item.item_id] = (
                item,
                entry.message if isinstance(entry, PendingSteering) else User(text=item.text),
            )


def _close_what_is_open(state: SessionState) -> list[tuple[Event, Entry | None]]:
    """Events that end what a dead daemon left running, and their results."""
    closing = _close_reply(state)
    questions = {item.tool_call_id: item for item in state.items if isinstance(item, Question)}
    for item in state.items:
        if isinstance(item, ToolCall) and item.state in OPEN_STATES:
            question = questions.get(item.item_id)
            is_asking = item.tool == AskUser.name and item.agent_id is None
            if is_asking and question is not None and question.state != "cancelled":
                event, entry = _close_asking(item, question)
                closing.append((event, entry if item.agent_id is None else None))
                continue
            ran = item.state == "executing"
            text = INTERRUPTED if ran else NOT_RUN
            ended = item.model_copy(
                update={
                    "state": "failed" if ran else "cancelled",
                    "movable": False,
                    "error": MAY_HAVE_RUN if ran else DID_NOT_RUN,
                }
            )
            result = Result(call_id=item.item_id, tool=item.tool, text=text, is_error=True)
            # That of a sub-agent's call is part of another conversation.
            closing.append((ItemCompleted(item=ended), result if item.agent_id is None else None))
        elif isinstance(item, Question) and item.state == "open" and not outlives_its_call(item):
            cancelled = item.model_copy(update={"state": "cancelled"})
            closing.append((ItemCompleted(item=cancelled.model_copy(update={"summary": summary(cancelled)})), None))
        elif isinstance(item, Notice) and item.code in (COMPACTING, RUNNING):
            closing.append(
                (ItemsWithdrawn(item_ids=[item.item_id], reason="The daemon stopped in the meantime."), None)
            )
    closing += [(JobChanged(job=_ended_with_daemon(job)), None) for job in state.jobs if job.state == "running"]
    closing += [
        (AgentChanged(agent=summarize_agent(agent.model_copy(update={"state": "interrupted", "activity": ""}))), None)
        for agent in state.agents
        if agent.works
    ]
    if state.turn is not None:
        ended_turn = TurnEnded(
            turn_id=state.turn.turn_id, reason="interrupted", message=DAEMON_STOPPED, can_continue=True
        )
        closing.append((ended_turn, None))
    return closing


def _ended_with_daemon(job: Job) -> Job:
    """When it ended, and how, is not known."""
    return summarize_job(job.model_copy(update={"state": "ended"}), "Ended with the daemon")


def _close_asking(call: ToolCall, question: Question) -> tuple[Event, Entry | None]:
    """The end of a call that asked the user: with the answer if there was one, else the question stands."""
    is_open = question.state == "open"
    ended = (
        {"state": "cancelled", "error": "Interrupted; the question is still open."}
        if is_open
        else {"state": "succeeded", "output": question.summary}
    )
    text = STILL_OPEN if is_open else report(question)
    result = Result(call_id=call.item_id, tool=call.tool, text=text, is_error=is_open)
    return ItemCompleted(item=call.model_copy(update=ended)), result


def _close_reply(state: SessionState) -> list[tuple[Event, Entry | None]]:
    """Keep what was shown of an incomplete reply, and let the model know that it said so."""
    if state.turn is None:
        return []
    step = f"{state.turn.turn_id}.{state.turn.steps + 1}."
    streamed = [item for item in state.items if isinstance(item, Answer | Thought) and item.item_id.startswith(step)]
    text = "".join(item.text for item in streamed if isinstance(item, Answer))
    reply = Assistant(parts=(Text(text=text),), cut=True) if text.strip() else None
    return [(ItemCompleted(item=item), reply if item is streamed[-1] else None) for item in streamed]


def note(*notes: Note) -> Results:
    """A journal entry that adds a text, and pictures before it, after the last results or as a message of its own."""
    return Results(results=(), notes=notes)
