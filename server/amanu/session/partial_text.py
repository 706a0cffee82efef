"""Records the text of a reply while it is being written, within a second: a daemon that is killed loses no more than
that.

The whole text is recorded when the reply is complete (`ItemCompleted`), and replaces the parts.
"""

import asyncio
from collections.abc import Callable

from amanu_protocol.events import Event, ItemCompleted, ItemDelta, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import Answer, Thought

SECONDS = 0.7
"""Seconds between two records. The journal takes a moment more to write them."""


class PartialText:
    """The open reply of one session. `record` puts an event into the journal without sending it to clients."""

    def __init__(self, record: Callable[[Event], None]) -> None:
        self._record = record
        self._item: Thought | Answer | None = None
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._recorded = False

    def on_event(self, event: Event) -> None:
        """An event was folded and sent."""
        match event:
            case ItemStarted(item=Thought() | Answer() as item):
                self._end()
                self._item = item
            case ItemDelta(item_id=item_id, text=text) if self._item is not None and item_id == self._item.item_id:
                self._text.append(text)
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(SECONDS, self._record_text)
            case ItemCompleted(item=Thought() | Answer()) | ItemsWithdrawn():
                self._end()
            case _:
                pass

    def _record_text(self) -> None:
        self._timer = None
        if self._item is None:
            return
        text = "".join(self._text)
        self._text = []
        if self._recorded:
            self._record(ItemDelta(item_id=self._item.item_id, text=text))
        else:
            self._recorded = True
            self._record(ItemStarted(item=self._item.model_copy(update={"text": text})))

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._item = None
        self._text = []
        self._recorded = False
