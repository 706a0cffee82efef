"""`emit`: each event of a session is folded, journalled and sent to its clients, in this order, once."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from amanu.context.editor import EditorContext
from amanu.core.conversation import Entry
from amanu.session.partial_text import PartialText
from amanu.session.record_format import serializable, write
from amanu.storage.journal import Journal, Record
from amanu_protocol.events import (
    Event,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    JobProgress,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    TurnEnded,
    TurnRouted,
)
from amanu_protocol.items import Answer, Notice, Retry, Thought, ToolCall
from amanu_protocol.state import SessionState, fold

FRAME = 0.030
"""Seconds over which deltas are collected into one event in a flood: 34 events a second."""
FLOOD = 7
"""Deltas within a frame from which the next ones are a flood. Slower ones (most models: 50 to 200 a second) each go at
once: the user reads along."""
FULL_FRAME = 16 * 1024
"""Characters after which a delta is not held back any longer."""
KEPT_EVENTS = 5000
"""Events kept for clients that attach with `sinceSeq`; older ones get the whole state."""
KEPT_CHARACTERS = 8_000_000


class Client(Protocol):
    """One connection through a frontend."""

    @property
    def name(self) -> str:
        """clientInfo.name, e.g. "Visual Studio Code"; "" if unknown."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the client, not of the daemon."""
        ...

    @property
    def trusted_roots(self) -> Collection[str] | None:
        """Absolute paths the client declared trusted; None when it takes no part in trust."""
        ...

    @property
    def ripgrep(self) -> str | None:
        """Path of the ripgrep that the editor ships, if any."""
        ...

    @property
    def context(self) -> EditorContext | None:
        """What the user sees in the editor; None when the client does not say."""
        ...

    def send(self, message: EventMessage) -> None:
        """Pass an event on. Never blocks, never raises."""
        ...

    def mcp_changed(self) -> None:
        """Something about MCP servers changed. Must not block or raise."""
        ...

    def list_changed(self, session_id: str) -> None:
        """The list of sessions changed. Never blocks, never raises."""
        ...


EventListener = Callable[[Event, int], None]
"""Takes an event and its position in the journal. Must not raise."""


class EventStream:
    """The events of one session. Implements `core.emit.Emit`."""

    def __init__(
        self,
        state: SessionState,
        journal: Journal,
        epoch: int,
        plain: Callable[[str], str] = str,
        audited: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`plain` hides secrets; `audited` waits until the audit log has what it needs of these events."""
        self.state = state
        self.epoch = epoch
        self.seq = 0
        self._journal = journal
        self._mask = plain
        self._audited = audited
        self._clients: list[Client] = []
        self._recent: deque[tuple[EventMessage, int]] = deque()
        self._recent_size = 0
        self._item = ""
        self._text: list[str] = []
        self._size = 0
        self._frame_started = 0.0
        self._frame_deltas = 0
        self._flooded = False
        """Whether the frame before this one was a flood."""
        self._timer: asyncio.TimerHandle | None = None
        self._partial = PartialText(self._record_only)
        self.listeners: list[EventListener] = []
        """Called in this order with every recorded event, after it has been folded."""

    def __call__(self, event: Event, entry: Entry | None = None) -> None:
        self._flush()
        self._publish(self._without_secrets(event), entry)

    def delta(self, item_id: str, text: str) -> None:
        if item_id != self._item:
            self._flush()
            self._item = item_id
        self._text.append(text)
        self._size += len(text)
        now = asyncio.get_running_loop().time()
        if now >= self._frame_started + FRAME:
            self._flooded = now < self._frame_started + 2 * FRAME and self._frame_deltas > FLOOD
            self._frame_started, self._frame_deltas = now, 0
        self._frame_deltas += 1
        if self._size >= FULL_FRAME or not (self._flooded or self._frame_deltas > FLOOD):
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._frame_started + FRAME, self._flush)

    def redact(self, text: str) -> str:
        return self._mask(text)

    async def durable(self) -> None:
        if self._audited is None:
            await self._journal.durable()
        else:
            await asyncio.gather(self._journal.durable(), self._audited())

    async def save(self, event: Event) -> None:
        """Save an event that no client may see before it is on disk, with all events before it. It is emitted
        afterwards, so its record comes twice, which changes nothing. Raises `AmanuError` (storageError)."""
        self._flush()
        self._record_only(self._without_secrets(event))
        await self.durable()

    def attach(self, client: Client) -> int:
        """Send the client all further events. Returns the `seq` of the next one."""
        self._flush()
        if client not in self._clients:
            self._clients.append(client)
        return self.seq + 1

    def detach(self, client: Client) -> None:
        if client in self._clients:
            self._clients.remove(client)

    def hand_over(self, stream: "EventStream") -> None:
        """Send all clients the further events of that stream of the same session. It has another epoch, so its first
        event makes them attach again."""
        for client in self._clients:
            stream.attach(client)
        self._clients.clear()

    @property
    def attached(self) -> bool:
        return bool(self._clients)

    def is_attached(self, client: Client) -> bool:
        return client in self._clients

    def since(self, seq: int) -> list[EventMessage] | None:
        """The events after `seq`, or None when some of them are no longer in memory."""
        if seq > self.seq or (seq < self.seq and (not self._recent or self._recent[0][0].seq > seq + 1)):
            return None
        return [message for message, _ in self._recent if message.seq > seq]

    def _publish(self, event: Event, entry: Entry | None) -> None:
        timestamp = int(time.time() * 1000)
        is_kept = entry is not None or _is_kept(event)
        text, private, base_texts = "", None, _base_texts(event)
        if is_kept:
            event, text, private = write(event, entry)
            event = _with_base_texts(event, base_texts)
        self.seq += 1
        message = EventMessage(
            session_id=self.state.session_id, epoch=self.epoch, seq=self.seq, at=timestamp, event=event
        )
        fold(self.state, event)
        if is_kept:
            position = self._journal.append(Record(self.epoch, self.seq, timestamp, text, private), base_texts)
            for listener in self.listeners:
                listener(event, position)
        self._partial.on_event(event)
        self._remember(message)
        for client in list(self._clients):
            client.send(message)

    def _record_only(self, event: Event) -> None:
        record = Record(self.epoch, self.seq, int(time.time() * 1000), serializable(event)[1], None)
        self._journal.append(record, _base_texts(event))

    def _without_secrets(self, event: Event) -> Event:
        """The event without secrets: messages about failures quote services, which quote what they were sent."""
        match event:
            case ItemCompleted(item=Notice(text=text, detail=detail) as item):
                plain = {"text": self._mask(text), "detail": self._mask(detail)}
                return ItemCompleted(item=item.model_copy(update=plain))
            case ItemsWithdrawn(reason=reason) | TurnRouted(reason=reason):
                return event.model_copy(update={"reason": self._mask(reason)})
            case TurnEnded(message=message):
                return event.model_copy(update={"message": self._mask(message)})
            case RetryChanged(retry=Retry(reason=reason) as retry):
                return RetryChanged(retry=retry.model_copy(update={"reason": self._mask(reason)}))
            case _:
                return event

    def _remember(self, message: EventMessage) -> None:
        size = _size_of(message.event)
        self._recent.append((message, size))
        self._recent_size += size
        while len(self._recent) > KEPT_EVENTS or (self._recent_size > KEPT_CHARACTERS and len(self._recent) > 1):
            self._recent_size -= self._recent.popleft()[1]

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._text:
            return
        text = "".join(self._text).encode("utf-8", "replace").decode()  # as `_sound` would make it
        delta = ItemDelta(item_id=self._item, text=text)
        self._text = []
        self._size = 0
        self._publish(delta, None)


def _base_texts(event: Event) -> dict[str, str]:
    """The texts that are no part of the event's JSON but in blobs, by blob."""
    files = event.proposal.files if isinstance(event, ProposalChanged) else []
    return {file.base_blob: file.base_text for file in files if file.base_blob and file.base_text is not None}


def _with_base_texts(event: Event, texts: Mapping[str, str]) -> Event:
    """The event with the texts that its JSON lacks, where it was read back from that."""
    if not texts or not isinstance(event, ProposalChanged) or _base_texts(event).keys() == texts.keys():
        return event
    files = [
        file.model_copy(update={"base_text": texts.get(file.base_blob or "", file.base_text)})
        for file in event.proposal.files
    ]
    return ProposalChanged(proposal=event.proposal.model_copy(update={"files": files}))


def _is_kept(event: Event) -> bool:
    """Whether the event is recorded. Deltas are part of the open item (`partial_text.py` records them), and so is a
    call that is still being written; a retry's countdown and a job's last line mean nothing later, and `closed` is only
    for attached clients."""
    match event:
        case ItemDelta() | RetryChanged() | ItemsReplaced() | JobProgress():
            return False
        case ItemChanged(item=ToolCall(state="validating")):
            return False
        case ItemStarted(item=Thought() | Answer()) | SessionChanged(closed=bool()):
            return False
        case _:
            return True


def _size_of(event: Event) -> int:
    match event:
        case ItemDelta(text=text):
            return 100 + len(text)
        case ItemStarted(item=item) | ItemChanged(item=item) | ItemCompleted(item=item):
            return 500 + len(getattr(item, "text", "")) + len(getattr(item, "output", ""))
        case _:
            return 2000
