"""Live calls: calls that the model is still writing. The title is shown as soon as it is known, then what the call will
do as far as it is written. This is for display only: gone once the call is previewed, and never on record."""

import asyncio
from dataclasses import dataclass, field

from amanu.core.emit import Emit
from amanu.core.tool import LiveCall
from amanu.text.display import one_line
from amanu_protocol.events import ItemChanged
from amanu_protocol.items import ToolCall

INTERVAL = 0.1
"""Seconds between two updates."""


@dataclass
class _OpenCall:
    item: ToolCall
    live: LiveCall
    pieces: list[str] = field(default_factory=list[str])
    """Text `live` has not been fed yet."""
    titled: bool = False
    """The clients have its title."""


class LiveCalls:
    """The live calls of one reply. Updates are sent at most every `INTERVAL`."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, _OpenCall] = {}
        self._last_update = -INTERVAL
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, item: ToolCall, live: LiveCall | None) -> None:
        """The model begins to write a call, shown as `item`. Without `live` nothing of it is shown until it is
        whole."""
        if live is not None:
            self._open[item.item_id] = _OpenCall(item, live)

    def write(self, call_id: str, text: str) -> None:
        """The model has written more of the call's arguments."""
        call = self._open.get(call_id)
        if call is None:
            return
        call.pieces.append(text)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._last_update + INTERVAL, loop.time()), self._send_updates)

    def end(self) -> None:
        """The reply is complete: show what has not been shown yet, then drop the live calls."""
        if self._timer is not None:
            self._send_updates()
        self.drop()

    def drop(self) -> None:
        """Forget the live calls and what has not been shown of them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._open.clear()

    def _send_updates(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._last_update = asyncio.get_running_loop().time()
        for call_id, call in self._open.items():
            if not call.pieces:
                continue
            text = call.live.feed("".join(call.pieces))
            call.pieces.clear()
            if call.live.title is not None and not call.titled:
                call.titled = True
                title = one_line(call.live.title)
                self._emit(ItemChanged(item=call.item.model_copy(update={"title": title})))
            if text:
                self._emit.delta(call_id, text)
