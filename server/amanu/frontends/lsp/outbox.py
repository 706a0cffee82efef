"""What goes out to one client: never blocks, never grows without bound, never drops what matters.

Messages go straight to the transport, which keeps what the client has not read. Text deltas may be held back:
when more than `HOLD` bytes of events are unacknowledged (for a client that acknowledges) or unsent, further
deltas of a session wait, and in their place one `itemsReplaced` tells the items as they are by then. It goes out
when the client has caught up, or just before the next event that is no delta, so that the order of events and
the chain of `seq` stay whole. A client that lets `CLOSE` bytes pile up is disconnected; it can attach again.

What one step of the event loop says leaves in one write, when that step is over: each write is a system call, wakes
the relay and the client, and lets other threads take the interpreter; a prompt has a dozen messages, half of them
before its request to the model is sent. A delta waits for nothing: somebody reads along.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from amanu.frontends.lsp.wire import to_json
from amanu.session.record_format import json_just_written
from amanu.system.frames import frame
from amanu_protocol.events import EventMessage, ItemChanged, ItemCompleted, ItemDelta, ItemsReplaced, ItemStarted
from amanu_protocol.items import Item

HOLD = 2 * 1024 * 1024
"""Bytes of events on their way to one client above which deltas are held."""
CLOSE = 64 * 1024 * 1024
"""Unsent bytes at which a client is given up."""

GATHERED = 64 * 1024
"""Bytes above which a write does not wait for the end of the step."""

log = logging.getLogger(__name__)


@dataclass
class _Stream:
    """The events of one session on their way to this client."""

    epoch: int
    acknowledges: bool = False
    waiting: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """(seq, bytes) sent and not acknowledged; kept only for a client that acknowledges."""
    delayed: dict[str, None] = field(default_factory=dict[str, None])
    """Items whose deltas were held back, in order."""
    held_from: int = 0
    last_held: EventMessage | None = None


class Outbox:
    """`item(session_id, item_id)` looks up an item's present state; None when it was withdrawn."""

    def __init__(self, writer: asyncio.StreamWriter, item: Callable[[str, str], Item | None]) -> None:
        self._writer = writer
        self._transport = writer.transport
        self._transport.set_write_buffer_limits(high=HOLD, low=HOLD // 2)
        self._item = item
        self._streams: dict[str, _Stream] = {}
        self._unacknowledged = 0
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._draining: asyncio.Task[None] | None = None

    @property
    def unsent(self) -> int:
        """Bytes the client has not taken yet."""
        return self._transport.get_write_buffer_size() + self._gathered_size

    def put(self, body: bytes) -> None:
        """Send a message body. On a closed connection nothing happens."""
        if self._transport.is_closing():
            return
        if self.unsent + len(body) > CLOSE:
            log.warning("client does not read: %d bytes unsent, disconnecting it", self.unsent)
            self._transport.abort()
            self._gathered, self._gathered_size = [], 0
            return
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self.flush)
        self._gathered.append(framed := frame(body))
        self._gathered_size += len(framed)
        if self._gathered_size > GATHERED:
            self.flush()

    def flush(self) -> None:
        """Write now what was put."""
        gathered, self._gathered, self._gathered_size = self._gathered, [], 0
        if gathered and not self._transport.is_closing():
            self._writer.write(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def event(self, message: EventMessage) -> None:
        """Send or hold an event."""
        stream = self._streams.get(message.session_id)
        if stream is None or stream.epoch != message.epoch:
            acknowledges = stream is not None and stream.acknowledges
            self.forget(message.session_id)
            stream = self._streams[message.session_id] = _Stream(message.epoch, acknowledges)
        if isinstance(message.event, ItemDelta):
            if stream.delayed or self._pressed():
                self._hold(stream, message, message.event.item_id)
                return
        elif stream.delayed:
            match message.event:
                case ItemStarted() | ItemChanged() | ItemCompleted():
                    # This event itself says how the item is now.
                    stream.delayed.pop(message.event.item.item_id, None)
                case _:
                    pass
            self._release(message.session_id, stream)
        self._send(stream, message)
        if isinstance(message.event, ItemDelta):
            self.flush()

    def acknowledge(self, session_id: str, seq: int) -> None:
        """The client has drawn everything of that session up to `seq`."""
        stream = self._streams.get(session_id)
        if stream is None:
            return
        stream.acknowledges = True
        while stream.waiting and stream.waiting[0][0] <= seq:
            self._unacknowledged -= stream.waiting.popleft()[1]
        self._caught_up()

    def forget(self, session_id: str) -> None:
        """The client has detached from the session, or its events begin anew."""
        stream = self._streams.pop(session_id, None)
        if stream is not None:
            self._unacknowledged -= sum(size for _, size in stream.waiting)

    def close(self) -> None:
        """Stop; what is unsent still goes out if the client takes it."""
        if self._draining is not None:
            self._draining.cancel()
        self._streams.clear()
        self.flush()
        self._writer.close()

    def _pressed(self, limit: int = HOLD) -> bool:
        return self._unacknowledged > limit or self.unsent > limit

    def _hold(self, stream: _Stream, message: EventMessage, item_id: str) -> None:
        if stream.last_held is None:
            stream.held_from = message.seq
        stream.last_held = message
        stream.delayed[item_id] = None
        if self._draining is None and self.unsent > HOLD:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        self.flush()  # else there is nothing to wait for
        try:
            await self._writer.drain()
        except ConnectionError:
            return
        finally:
            self._draining = None
        self._caught_up()

    def _caught_up(self) -> None:
        """Say what was held, once less than half the limit is on its way (so that it does not flap)."""
        for session_id, stream in self._streams.items():
            if stream.last_held is not None and not self._pressed(HOLD // 2):
                self._release(session_id, stream)

    def _release(self, session_id: str, stream: _Stream) -> None:
        last = stream.last_held
        assert last is not None
        items: list[Item] = []
        withdrawn: list[str] = []
        for item_id in stream.delayed:
            item = self._item(session_id, item_id)
            if item is None:
                withdrawn.append(item_id)
            else:
                items.append(item)
        event = ItemsReplaced(replaces_from=stream.held_from, items=items, withdrawn=withdrawn)
        stream.delayed.clear()
        stream.last_held = None
        self._send(stream, last.model_copy(update={"event": event}))

    def _send(self, stream: _Stream, message: EventMessage) -> None:
        body = b'{"jsonrpc":"2.0","method":"amanu/event","params":%b}' % message_json(message)
        if stream.acknowledges:
            stream.waiting.append((message.seq, len(body)))
            self._unacknowledged += len(body)
        self.put(body)


def message_json(message: EventMessage) -> bytes:
    """Its JSON, with the event as the journal has it, if it has just been written there."""
    event = json_just_written(message.event)
    if event is None:
        return to_json(message)
    return b'%b,"event":%b}' % (message.model_dump_json(exclude={"event"})[:-1].encode(), event.encode())
