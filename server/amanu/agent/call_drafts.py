"""Calls while the model still writes them: their title as soon as it is known, and what they will do as far as it is
written. A look and nothing else: it is gone when the call is previewed, and never on record."""

import asyncio
from dataclasses import dataclass, field

from amanu.core.emit import Emit
from amanu.core.tool import CallDraft
from amanu.text.display import one_line
from amanu_protocol.events import ItemChanged
from amanu_protocol.items import ToolCall

INTERVAL = 0.1
"""Seconds between two updates."""


@dataclass
class _Open:
    item: ToolCall
    draft: CallDraft
    pieces: list[str] = field(default_factory=list[str])
    """What was not fed to it yet."""
    titled: bool = False
    """Its title was told."""


class CallDrafts:
    """The drafts of one reply, by call."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, _Open] = {}
        self._shown = -INTERVAL
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, item: ToolCall, draft: CallDraft | None) -> None:
        """The model begins to write that call."""
        if draft is not None:
            self._open[item.item_id] = _Open(item, draft)

    def write(self, call_id: str, text: str) -> None:
        """More of its arguments."""
        written = self._open.get(call_id)
        if written is None:
            return
        written.pieces.append(text)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._shown + INTERVAL, loop.time()), self._show)

    def end(self) -> None:
        """The reply is whole: show what is there."""
        if self._timer is not None:
            self._show()
        self.drop()

    def drop(self) -> None:
        """The reply is gone; so are its drafts."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._open.clear()

    def _show(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._shown = asyncio.get_running_loop().time()
        for call_id, written in self._open.items():
            if not written.pieces:
                continue
            text = written.draft.feed("".join(written.pieces))
            written.pieces.clear()
            if written.draft.title is not None and not written.titled:
                written.titled = True
                title = one_line(written.draft.title)
                self._emit(ItemChanged(item=written.item.model_copy(update={"title": title})))
            if text:
                self._emit.delta(call_id, text)
