"""The wire form of a conversation's messages, each made once.

A step sends everything before it again. Converting the whole history on each step would cost in proportion to its
length; with the earlier wire forms kept, only new messages are converted.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson

from amanu.core.conversation import Conversation, Message, Note, Results, SystemText, User
from amanu.core.model_families import family
from amanu_protocol.items import ModelInfo

W = TypeVar("W")


@dataclass(slots=True)
class _Kept(Generic[W]):
    made_for: tuple[str, bool]
    messages: list[Message] = field(default_factory=list[Message])
    wires: list[W] = field(default_factory=list[W])
    rewrites: int = 0
    """The conversation's `rewrites` when its messages were last converted."""


class WireMessages(Generic[W]):
    """Keeps what `convert(conversation, at, model)` made of each message, per conversation and model.

    `convert` may look at messages before `at`, never at later ones: a message is made anew only when it or one
    before it was replaced.
    """

    def __init__(self, convert: Callable[[Conversation, int, ModelInfo], W]) -> None:
        self._convert = convert
        self._kept: WeakKeyDictionary[Conversation, _Kept[W]] = WeakKeyDictionary()

    def of(self, conversation: Conversation, model: ModelInfo) -> list[W]:
        """The wire form of all messages, in order."""
        made_for = (model.model_id, model.images)
        kept = self._kept.get(conversation)
        if kept is None or kept.made_for != made_for:
            kept = self._kept[conversation] = _Kept(made_for)
        same = conversation.unchanged(kept.messages, kept.rewrites)
        del kept.messages[same:], kept.wires[same:]
        kept.rewrites = conversation.rewrites
        for index in range(same, len(conversation)):
            kept.wires.append(self._convert(conversation, index, model))
            kept.messages.append(conversation[index])
        return list(kept.wires)


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
