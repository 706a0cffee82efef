"""The wire form of a conversation's messages, each made once.

A step sends everything before it again. Converting the whole history on each step would cost in proportion to its
length; with the earlier wire forms kept, only new messages are converted.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson

from amanu.core.conversation import Conversation, Message, Note, Results, SystemText, User
from amanu.core.model_families import family
from amanu_protocol.items import ModelInfo

W = TypeVar("W")


Place = Callable[[Sequence[W], int, int], tuple[bytes, bytes]]
"""(wires, index, variant) → what separates that message from those before it, and the message: bytes of a request."""


@dataclass(slots=True)
class _Kept(Generic[W]):
    made_for: tuple[str, bool]
    messages: list[Message] = field(default_factory=list[Message])
    wires: list[W] = field(default_factory=list[W])
    rewrites: int = 0
    """The conversation's `rewrites` when its messages were last converted."""
    pieces: list[bytes] = field(default_factory=list[bytes])
    """Two of each of the first messages (`Place`)."""
    variant: int = 0
    """The value given when `pieces` were made."""
    last_said: int = 0
    """Index of the last message of the user; 0 where there is none."""


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
        return list(self._follow(conversation, model).wires)

    def pieces(
        self, conversation: Conversation, model: ModelInfo, place: Place[W], variant: int | None = 0
    ) -> Sequence[bytes]:
        """All messages as pieces to be joined. Each is placed once per variant, in a way that may depend only on
        those before it and on the variant. `variant` None: the index of the user's last message, where
        the present tool loop begins."""
        kept = self._follow(conversation, model)
        wanted = kept.last_said if variant is None else variant
        if kept.variant != wanted:
            kept.pieces.clear()
            kept.variant = wanted
        for index in range(len(kept.pieces) // 2, len(kept.wires)):
            kept.pieces += place(kept.wires, index, wanted)
        return kept.pieces

    def _follow(self, conversation: Conversation, model: ModelInfo) -> _Kept[W]:
        """The kept form of the conversation, with what is new and without what was replaced."""
        made_for = (model.model_id, model.images)
        kept = self._kept.get(conversation)
        if kept is None or kept.made_for != made_for:
            kept = self._kept[conversation] = _Kept(made_for)
        same = conversation.unchanged(kept.messages, kept.rewrites)
        del kept.messages[same:], kept.wires[same:], kept.pieces[2 * same :]
        kept.rewrites = conversation.rewrites
        if kept.last_said >= same:
            kept.last_said = next((at for at in range(same - 1, 0, -1) if isinstance(conversation[at], User)), 0)
        for index in range(same, len(conversation)):
            kept.wires.append(self._convert(conversation, index, model))
            kept.messages.append(conversation[index])
            if isinstance(conversation[index], User):
                kept.last_said = index
        return kept


def loop_start(sent: Sequence[Message]) -> int:
    """The index in what is sent at which the present tool loop begins: that of what the user said last. Words right
    after results do not count, for wires where they cannot be told from notes on them."""
    for index in range(len(sent) - 1, 0, -1):
        first = index - 1
        while first > 0 and isinstance(sent[first], User):
            first -= 1
        if isinstance(sent[index], User) and not isinstance(sent[first], Results):
            return index
    return 0


def listed(wires: Sequence[W], index: int, data: Callable[[W], bytes]) -> tuple[bytes, bytes]:
    """The place of a message in a list with commas; nothing of it if its data is empty."""
    here = data(wires[index])
    return (b"," if here and any(map(data, islice(wires, index))) else b""), here


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
