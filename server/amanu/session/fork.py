"""A fork's records: the conversation of a session up to the end of a turn.

What could be decided, stopped or undone in two places stays with the old session: changes, approvals, questions,
commands and sub-agents. So do its costs.
"""

import re
import time
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from amanu.core.conversation import SystemText
from amanu.session.record_format import read_event, serializable
from amanu.session.restore import Span, note
from amanu.storage.journal import Record
from amanu.text.questions import summary
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemChanged, ItemCompleted, ItemStarted, SessionChanged
from amanu_protocol.items import Notice, Question
from amanu_protocol.state import SessionState

FORKED = "forked"
"""The notice's code."""
_TOLD = (
    "The user forked this conversation: it goes on here as a session of its own. Changes, commands and sub-agents of "
    "the session it comes from stay there: a change that waited for the user's decision may not be in the files, and "
    "files may have changed since. Look at them again before you rely on them."
)
_KEPT = re.compile(r'\{"kind":"(turnStarted|turnEnded|stepEnded|itemStarted|itemCompleted|itemsWithdrawn)"')
_TURN = re.compile(r'"turnId":"([^"]*)"')
_PROPOSAL = re.compile(r'"proposalId":"[^"]*"')
"""The id as a field: in a text its quotes would be escaped."""
_ITEM = re.compile(r'"itemId":"([^"]*)"')
_STARTED = '{"kind":"itemStarted"'
_CALL = '"item":{"kind":"toolCall"'
_QUESTION = '"item":{"kind":"question"'
_PENDING = '{"role":"pendingSteering"'
_BLOB = re.compile(r"(?<![0-9a-f])[0-9a-f]{16,64}(?![0-9a-f])")


def forked(records: Iterable[Record], spans: Sequence[Span], turn_id: str | None) -> list[Record]:
    """What a fork takes of these records, in order; those with a position as they are. `turn_id` is the last turn, None
    the last that has ended. `spans` were rewound. Raises `AmanuError` (itemNotFound, turnInProgress)."""
    kept: list[Record] = []
    end, begun, last_item = 0, False, 0
    for record in records:
        kind = _KEPT.match(record.event)
        if kind is None or _is_gone(record, spans):
            continue
        if kind[1] == "itemCompleted" and end <= last_item < len(kept) and _only_begins(kept[last_item], record):
            del kept[last_item]
        if kind[1].startswith("item"):
            last_item = len(kept)
        kept.append(_bare(record))
        if kind[1] in ("turnStarted", "turnEnded"):
            is_meant = turn_id is None or turn_id == _turn(record)
            begun |= is_meant
            if is_meant and kind[1] == "turnEnded":
                end = len(kept)
                if turn_id is not None:
                    break
    if not end:
        raise _no_end(turn_id, begun)
    return [*kept[:end], *_closed_questions(kept[:end])]


def beginning(state: SessionState, *, trusted: bool, trust_changed: bool) -> Record:
    """The first record of a fork of the session with that state."""
    first = SessionChanged(
        roots=state.roots,
        title=f"Fork of {state.title}"[:200] if state.title else "",
        mode=state.mode,
        model_id=state.model_id,
        effort=state.effort,
        service_tier=state.service_tier,
        trusted=trusted,
        trust_changed=trust_changed,
        sandbox=state.sandbox,
    )
    return _record(first)


def ending(state: SessionState) -> Record:
    """The last record: what user and model are told."""
    text = f"Forked from “{state.title or 'Untitled'}”. What that session has changed or left open is decided there."
    item = Notice(item_id=f"fork-{state.session_id}", level="info", code=FORKED, text=text)
    return _record(ItemCompleted(item=item), note(SystemText(text=_TOLD)).model_dump_json())


def named_blobs(records: Iterable[Record], blob_ids: Iterable[str]) -> set[str]:
    """The blobs that these records name, by their whole ids or, as the model does, by the first 16 digits."""
    by_name = {blob_id[:16]: blob_id for blob_id in blob_ids}
    if not by_name:
        return set()
    names = {
        name[:16] for record in records for text in (record.event, record.private or "") for name in _BLOB.findall(text)
    }
    return {by_name[name] for name in names & by_name.keys()}


def _turn(record: Record) -> str | None:
    found = _TURN.search(record.event)
    return None if found is None else found[1]


def _is_gone(record: Record, spans: Sequence[Span]) -> bool:
    """It was rewound, or is steering that no request carried yet."""
    if record.private is not None and record.private.startswith(_PENDING):
        return True
    return any(start <= record.position < end for start, end in spans)


def _bare(record: Record) -> Record:
    """The item without the proposal that a call made."""
    if _CALL not in record.event[:64] or (event := _PROPOSAL.sub('"proposalId":null', record.event)) == record.event:
        return record
    return Record(record.epoch, record.seq, record.timestamp, event, record.private)


def _only_begins(before: Record, record: Record) -> bool:
    """The last record of an item before this one is of the same, and says nothing that this one does not."""
    if before.private is not None or not before.event.startswith(_STARTED):
        return False
    ids = [_ITEM.search(each.event) for each in (before, record)]
    return all(ids) and len({found[1] for found in ids if found}) == 1


def _closed_questions(records: Iterable[Record]) -> list[Record]:
    """Ends for the questions that are still open."""
    questions: dict[str, Question] = {}
    for record in records:
        if _QUESTION in record.event[:64]:
            try:
                event = read_event(record)
            except ValidationError:
                continue
            if isinstance(event, ItemStarted | ItemChanged | ItemCompleted) and isinstance(event.item, Question):
                questions[event.item.item_id] = event.item
    cancelled = [each.model_copy(update={"state": "cancelled"}) for each in questions.values() if each.state == "open"]
    return [_record(ItemCompleted(item=each.model_copy(update={"summary": summary(each)}))) for each in cancelled]


def _record(event: SessionChanged | ItemCompleted, private: str | None = None) -> Record:
    return Record(0, 0, int(time.time() * 1000), serializable(event)[1], private)


def _no_end(turn_id: str | None, begun: bool) -> AmanuError:
    if begun:
        return AmanuError("turnInProgress", "That turn has not ended yet.", hint="Stop it, or fork an earlier one.")
    if turn_id is None:
        return AmanuError("itemNotFound", "Nothing was said in this session yet.")
    return AmanuError("itemNotFound", "This session has no such turn.")
