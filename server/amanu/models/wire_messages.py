"""The wire form of a conversation's messages, each made once.

A step sends everything that went before it again. Making the wire form anew each time costs in proportion to
the history on each step; kept, it costs one look per message.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson

from amanu.core.conversation import Assistant, Conversation, Message, Note, Results, SystemText, User
from amanu.core.model_families import family
from amanu_protocol.items import ModelInfo

W = TypeVar("W")


class WireMessages(Generic[W]):
    """Keeps what `convert(conversation, at, model)` made of each message, per conversation and model.

    `convert` may look at messages before `at`, never at later ones: a message is made anew only when it or one
    before it was replaced.
    """

    def __init__(self, convert: Callable[[Conversation, int, ModelInfo], W]) -> None:
        self._convert = convert
        self._kept: WeakKeyDictionary[Conversation, tuple[tuple[str, bool], list[tuple[Message, W]]]] = (
            WeakKeyDictionary()
        )

    def of(self, conversation: Conversation, model: ModelInfo) -> list[W]:
        """The wire form of all messages, in order. Not to be changed by the caller."""
        made_for = (model.model_id, model.images)
        kept_for, converted = self._kept.get(conversation, (made_for, []))
        if kept_for != made_for:
            converted = []
        same = 0
        for message, (converted_message, _) in zip(conversation, converted, strict=False):
            # By identity: `Results` grow by replacement, rewriting (masking, compaction) replaces too.
            if message is not converted_message:
                break
            same += 1
        del converted[same:]
        for index in range(len(converted), len(conversation)):
            converted.append((conversation[index], self._convert(conversation, index, model)))
        self._kept[conversation] = (made_for, converted)
        return [wire for _, wire in converted]


def is_taken(conversation: Conversation, wire_id: str) -> bool:
    """An earlier reply has a call under that id of its vendor. Servers that number their calls anew in each reply
    exist; services that refuse an id they have seen do too."""
    return any(
        isinstance(message, Assistant) and message.native is not None and wire_id in message.native.call_ids
        for message in conversation
    )


def loop_start(sent: Sequence[Message], *, notes_apart: bool = True) -> int:
    """Where in what is sent the present tool loop begins: at what the user said last. Notes after results do not
    begin a new one; without `notes_apart` nothing said right after results does, for wires where one cannot be told
    from the other."""
    for index in range(len(sent) - 1, 0, -1):
        first = index - 1
        while not notes_apart and first > 0 and isinstance(sent[first], User):
            first -= 1
        if isinstance(sent[index], User) and (notes_apart or not isinstance(sent[first], Results)):
            return index
    return 0


def dumps(value: Any) -> bytes:
    """JSON. Half a surrogate pair (from undecodable tool output) becomes "?", integers may be of any size."""
    try:
        return tight(orjson.dumps(value))
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def tight(data: bytes) -> bytes:
    """The same bytes in as much memory as they need. What orjson returns keeps the room it had reserved, eight times
    the text: too much for what stays as long as its conversation."""
    return bytes(memoryview(data))


def loads(text: bytes | str) -> Any:
    """JSON to values; `ValueError` if it is none. Half a surrogate pair, which models do write, becomes "?"."""
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return orjson.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def split_status(message: User | Results, model: ModelInfo) -> tuple[Sequence[Note], str]:
    """The message's notes, and the session status that goes in a message of its own; "" for models that take it from
    the user only, for whom it stays among the notes (`ModelFamily.status_role`)."""
    if isinstance(message, User):
        notes, status = message.parts, message.status
        other_notes: Sequence[Note] = message.model_copy(update={"status": ""}).parts
    else:
        notes = message.notes
        status_notes = [note for note in notes if isinstance(note, SystemText) and note.status]
        status = "\n\n".join(note.text for note in status_notes)
        other_notes = [note for note in notes if note not in status_notes]
    return (notes, "") if family(model.model_id).status_role == "user" else (other_notes, status)
