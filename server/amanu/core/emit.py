"""The one way out of the loop: what happens is emitted, and nothing else is told to anybody."""

from typing import Protocol

from amanu.core.conversation import Entry
from amanu_protocol.events import Event


class Emit(Protocol):
    """Implemented by the session: fold + journal + fan-out to clients."""

    def __call__(self, event: Event, entry: Entry | None = None) -> None:
        """Something happened. Synchronous, never fails, keeps order. `entry` is the private part of the record:
        what it means for the conversation."""
        ...

    def delta(self, item_id: str, text: str) -> None:
        """Text of an open item. Coalesced before it becomes an `ItemDelta`."""
        ...

    def redact(self, text: str) -> str:
        """What a tool says, without secrets: so it may be told to the model and to clients."""
        ...

    async def durable(self) -> None:
        """Wait until everything emitted is on disk. Raises `AmanuError` (storageError)."""
        ...
