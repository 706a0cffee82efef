"""The wire form of a conversation's messages, each made once.

A step sends everything that went before it again. Making the wire form anew each time costs in proportion to
the history on each step; kept, it costs one look per message.
"""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from amanu.conversation import Conversation, Message

W = TypeVar("W")


class WireMessages(Generic[W]):
    """Keeps what `convert(conversation, at, model_id)` made of each message, per conversation and model.

    `convert` may look at messages before `at`, never at later ones: a message is made anew only when it or one
    before it was replaced.
    """

    def __init__(self, convert: Callable[[Conversation, int, str], W]) -> None:
        self._convert = convert
        self._kept: WeakKeyDictionary[Conversation, tuple[str, list[tuple[Message, W]]]] = WeakKeyDictionary()

    def of(self, conversation: Conversation, model_id: str) -> list[W]:
        """The wire form of all messages, in order. Not to be changed by the caller."""
        kept_for, kept = self._kept.get(conversation, (model_id, []))
        if kept_for != model_id:
            kept = []
        for at, (message, _) in enumerate(kept):
            # By identity: `Results` grow by replacement, rewriting (masking, compaction) replaces too.
            if at >= len(conversation) or conversation[at] is not message:
                del kept[at:]
                break
        for at in range(len(kept), len(conversation)):
            kept.append((conversation[at], self._convert(conversation, at, model_id)))
        self._kept[conversation] = (model_id, kept)
        return [wire for _, wire in kept]
