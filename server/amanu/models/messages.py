"""The wire form of a conversation's messages, each made once.

A step sends everything that went before it again. Making the wire form anew each time costs in proportion to
the history on each step; kept, it costs one look per message.
"""

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import orjson

from amanu.conversation import Conversation, Message
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
        kept_for, kept = self._kept.get(conversation, (made_for, []))
        if kept_for != made_for:
            kept = []
        for at, (message, _) in enumerate(kept):
            # By identity: `Results` grow by replacement, rewriting (masking, compaction) replaces too.
            if at >= len(conversation) or conversation[at] is not message:
                del kept[at:]
                break
        for at in range(len(kept), len(conversation)):
            kept.append((conversation[at], self._convert(conversation, at, model)))
        self._kept[conversation] = (made_for, kept)
        return [wire for _, wire in kept]


def dumps(value: Any) -> bytes:
    """JSON. Half a surrogate pair (from undecodable tool output) becomes "?", integers may be of any size."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def loads(text: bytes | str) -> Any:
    """JSON to values; `ValueError` if it is none. Half a surrogate pair, which models do write, becomes "?"."""
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return orjson.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None
