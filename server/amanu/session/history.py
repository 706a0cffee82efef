"""The earlier items of a session: held by its journal alone, and fetched when somebody looks that far back."""

from itertools import islice

from pydantic import TypeAdapter, ValidationError

from amanu.storage.journal import Journal, Record
from amanu_protocol.events import Event, ItemChanged, ItemCompleted, ItemStarted, ItemsWithdrawn, SessionRewound
from amanu_protocol.items import Item
from amanu_protocol.state import SessionState

HELD_ITEMS = 200
"""The last items of a session stay in memory, up to twice as many; those before them leave it."""
SHOWN_ITEMS = 200
"""Of them, those a client gets with the state."""

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads the event of a record."""


class ItemHistory:
    """A fold of a session's records, live and restored. Keeps `state` short: what it folds is told here first."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        """Items in the state → the record of their present form."""
        self._open: set[str] = set()
        """Of these, what will still change."""
        self._gone: dict[str, int] = {}
        """Items that left the state, in order → the record of their final form."""

    def on_event(self, state: SessionState, event: Event, position: int) -> None:
        """The event of that record was folded into `state`."""
        match event:
            case ItemStarted(item=item) | ItemChanged(item=item):
                self._put(item.item_id, position)
                self._open.add(item.item_id)
            case ItemCompleted(item=item):
                self._put(item.item_id, position)
                self._open.discard(item.item_id)
            case ItemsWithdrawn(item_ids=item_ids):
                for item_id in item_ids:
                    self._at.pop(item_id, None)
                    self._gone.pop(item_id, None)
                    self._open.discard(item_id)
            case SessionRewound(item_id=item_id):
                present = {item.item_id for item in state.items}
                ids = list(self._gone)
                for hidden_id in ids[ids.index(item_id) :] if item_id in self._gone else ():
                    del self._gone[hidden_id]
                for returned_id in present & self._gone.keys():  # they are in the state again
                    self._at[returned_id] = self._gone.pop(returned_id)
                self._at = {key: position for key, position in self._at.items() if key in present}
                self._open &= present
            case _:
                pass
        if len(state.items) > 2 * HELD_ITEMS:
            self._shorten(state)

    async def page(
        self, state: SessionState, journal: Journal, before_id: str, limit: int
    ) -> tuple[list[Item], bool] | None:
        """The last `limit` items before that one, and whether there are others before them; None if there is no such
        item. Raises `AmanuError` `storageError`."""
        hidden = list(self._gone)
        ids = [*hidden, *(item.item_id for item in state.items)]
        if before_id not in ids:
            return None
        end = ids.index(before_id)
        first = max(0, end - limit)
        visible = state.items[max(0, first - len(hidden)) : max(0, end - len(hidden))]
        records = await journal.at([self._gone[item_id] for item_id in hidden[first:end]])
        return [*filter(None, map(_item, records)), *visible], first > 0

    def _put(self, item_id: str, position: int) -> None:
        self._gone.pop(item_id, None)  # it is in the state again, as its last
        self._at[item_id] = position

    def _shorten(self, state: SessionState) -> None:
        leaving: dict[str, int] = {}
        for item in islice(state.items, len(state.items) - HELD_ITEMS):
            position = self._at.get(item.item_id)
            if position is None or item.item_id in self._open:
                break  # what follows it stays too: clients page from the first item they have
            leaving[item.item_id] = position
        if leaving:
            self._gone |= leaving
            for item_id in leaving:
                del self._at[item_id]
            state.remove(set(leaving))
            state.has_earlier = True


def _item(record: Record) -> Item | None:
    try:
        event = EVENT.validate_json(record.event)
    except ValidationError:
        return None
    return event.item if isinstance(event, ItemStarted | ItemChanged | ItemCompleted) else None
