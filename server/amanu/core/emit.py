"""`Emit` is the only way out of the loop: clients and the journal learn what happens from nothing else."""

from typing import Protocol

from amanu.core.conversation import Entry
from amanu_protocol.events import Event


class Emit(Protocol):
    """Implemented by the session, which folds each event, writes it to the journal and sends it to the clients."""

    def __call__(self, event: Event, entry: Entry | None = None) -> None:
        """Emit an event. Synchronous, never fails, keeps the order. `entry` is the private part of its record: what it
        means for the conversation."""
        ...

    def delta(self, item_id: str, text: str) -> None:
        """Emit more text of an open item. Small pieces are combined into one `ItemDelta`."""
        ...

    def redact(self, text: str) -> str:
        """A tool's text with secrets hidden, fit for the model and the clients."""
        ...

    async def durable(self) -> None:
        """Wait until everything emitted is on disk. Raises `AmanuError` (storageError)."""
        ...
