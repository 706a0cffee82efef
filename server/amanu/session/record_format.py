"""How an event and the conversation's part of it become the two texts of a record, and back.

The result of a call often says to the model what its item shows to the user. Then only the result holds the text, and
the event says so: these are the longest texts there are.
"""

import json
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from amanu.core.conversation import ENTRY, AnyEntry, Entry, Result
from amanu.storage.journal import Record
from amanu_protocol.events import Event, ItemCompleted
from amanu_protocol.items import ToolCall

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_IN_RESULT = ',"output":"inResult"}'
"""The end of an event whose call's output is its result's text."""
_SHORTEST = 100
"""Characters of an output from which it is left out."""

M = TypeVar("M", bound=BaseModel)

_last: tuple[BaseModel, str] | None = None
"""The value that was written last, and its JSON."""


def write(event: Event, entry: Entry | None) -> tuple[Event, str, str | None]:
    """The event as it can be sent, its text and the entry's. A half of a surrogate pair, which has no UTF-8 (prompts,
    file names and command output may hold one), becomes "?": an event must never fail to be sent."""
    if entry is None:
        return *serializable(event), None
    sound_entry, private = serializable(entry)
    match event, entry:
        case ItemCompleted(item=ToolCall(output=output) as call), Result(text=text) if (
            sound_entry is entry and output == text and len(output) >= _SHORTEST
        ):
            bare = ItemCompleted(item=call.model_copy(update={"output": ""}))
            sound, written = serializable(bare)
            if sound is bare:
                return event, written[:-1] + _IN_RESULT, private
        case _:
            pass
    return *serializable(event), private


def read_event(record: Record, entry: AnyEntry | None = None) -> Event:
    """The record's event. `entry`: what its private part says, if that is known already. Raises `ValidationError`."""
    event = _EVENT.validate_json(record.event)
    if record.event.endswith(_IN_RESULT) and isinstance(event, ItemCompleted) and isinstance(event.item, ToolCall):
        result = entry or ENTRY.validate_json(record.private or "null")
        if isinstance(result, Result):
            return ItemCompleted(item=event.item.model_copy(update={"output": result.text}))
    return event


def read_bare(text: str | bytes) -> Event:
    """The event of a record's text; the output is missing where only the result of the call has it. Raises
    `ValidationError`."""
    return _EVENT.validate_json(text)


def serializable(value: M) -> tuple[M, str]:
    """The value as it can be sent, and its JSON."""
    global _last
    try:
        text = value.model_dump_json()
        _last = value, text
        return value, text
    except ValueError:
        dumped = json.dumps(value.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))
        text = dumped.encode("utf-8", "replace").decode()
        return type(value).model_validate_json(text), text


def json_just_written(value: BaseModel) -> str | None:
    """The value's JSON, if it was the last to be written: an event goes into the journal and then to each client, and a
    proposal with hundreds of hunks takes milliseconds."""
    return _last[1] if _last is not None and _last[0] is value else None
