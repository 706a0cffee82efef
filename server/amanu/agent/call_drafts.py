"""Drafts of calls while the model is still writing them: the title as soon as it is known, then what the call will do
as far as it is written. Drafts are for display only: they are gone once the call is previewed, and never on record."""

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
class _OpenDraft:
    item: ToolCall
    preview: CallDraft
    pieces: list[str] = field(default_factory=list[str])
    """Text the draft has not been fed yet."""
    titled: bool = False
    """The clients have its title."""


class CallDrafts:
    """The drafts of one reply's calls. Updates are sent at most every `INTERVAL`."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, _OpenDraft] = {}
        self._last_update = -INTERVAL
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, item: ToolCall, draft: CallDraft | None) -> None:
        """The model begins to write a call, shown as `item`. Without a draft nothing of it is shown until it is
        whole."""
        if draft is not None:
            self._open[item.item_id] = _OpenDraft(item, draft)

    def write(self, call_id: str, text: str) -> None:
        """The model has written more of the call's arguments."""
        draft = self._open.get(call_id)
        if draft is None:
            return
        draft.pieces.append(text)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._last_update + INTERVAL, loop.time()), self._send_updates)

    def end(self) -> None:
        """The reply is complete: show what has not been shown yet, then drop the drafts."""
        if self._timer is not None:
            self._send_updates()
        self.drop()

    def drop(self) -> None:
        """Forget the drafts and what has not been shown of them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._open.clear()

    def _send_updates(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._last_update = asyncio.get_running_loop().time()
        for call_id, draft in self._open.items():
            if not draft.pieces:
                continue
            text = draft.preview.feed("".join(draft.pieces))
            draft.pieces.clear()
            if draft.preview.title is not None and not draft.titled:
                draft.titled = True
                title = one_line(draft.preview.title)
                self._emit(ItemChanged(item=draft.item.model_copy(update={"title": title})))
            if text:
                self._emit.delta(call_id, text)
