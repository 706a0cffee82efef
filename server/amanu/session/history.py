"""The earlier items of a session: only its journal holds them, and they are read when a client scrolls that far
back."""

from itertools import islice

from pydantic import ValidationError

from amanu.session.record_format import read_event
from amanu.storage.journal import Journal, Record
from amanu_protocol.events import Event, ItemChanged, ItemCompleted, ItemStarted, ItemsWithdrawn, SessionRewound
from amanu_protocol.items import Item, Question
from amanu_protocol.state import SessionState

HELD_ITEMS = 200
"""Items of a session that stay in memory: at least the last so many, at most twice as many."""
SHOWN_ITEMS = 200
"""Items that a client gets with the state."""


class ItemHistory:
    """Where the journal has each item, folded from a session's events, live and restored. Keeps `state` short."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        """Items in the state → position of the record with their current form."""
        self._open: set[str] = set()
        """Those of them that will still change."""
        self._earlier: dict[str, int] = {}
        """Items that left the state, in order → position of the record with their final form."""

    def on_event(self, state: SessionState, event: Event, position: int) -> None:
        """The event of that record was folded into `state`."""
        match event:
            case ItemStarted(item=item) | ItemChanged(item=item):
                self._put(item.item_id, position)
                if not isinstance(item, Question):  # it may wait for days, and the state tells the open ones anyway
                    self._open.add(item.item_id)
            case ItemCompleted(item=item):
                self._put(item.item_id, position)
                self._open.discard(item.item_id)
            case ItemsWithdrawn(item_ids=item_ids):
                for item_id in item_ids:
                    self._positions.pop(item_id, None)
                    self._earlier.pop(item_id, None)
                    self._open.discard(item_id)
            case SessionRewound(item_id=item_id):
                present = {item.item_id for item in state.items}
                ids = list(self._earlier)
                for hidden_id in ids[ids.index(item_id) :] if item_id in self._earlier else ():
                    del self._earlier[hidden_id]
                for returned_id in present & self._earlier.keys():  # they are in the state again
                    self._positions[returned_id] = self._earlier.pop(returned_id)
                self._positions = {key: position for key, position in self._positions.items() if key in present}
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
        hidden = list(self._earlier)
        ids = [*hidden, *(item.item_id for item in state.items)]
        if before_id not in ids:
            return None
        end = ids.index(before_id)
        first = max(0, end - limit)
        visible = state.items[max(0, first - len(hidden)) : max(0, end - len(hidden))]
        records = await journal.at([self._earlier[item_id] for item_id in hidden[first:end]])
        return [*filter(None, map(_item, records)), *visible], first > 0

    def _put(self, item_id: str, position: int) -> None:
        self._earlier.pop(item_id, None)  # it is in the state again, as its last
        self._positions[item_id] = position

    def _shorten(self, state: SessionState) -> None:
        leaving: dict[str, int] = {}
        for item in islice(state.items, len(state.items) - HELD_ITEMS):
            position = self._positions.get(item.item_id)
            if position is None or item.item_id in self._open:
                break  # what follows it stays too: clients page from the first item they have
            leaving[item.item_id] = position
        if leaving:
            self._earlier |= leaving
            for item_id in leaving:
                del self._positions[item_id]
            state.remove(set(leaving))
            state.has_earlier = True


def _item(record: Record) -> Item | None:
    try:
        event = read_event(record)
    except ValidationError:
        return None
    return event.item if isinstance(event, ItemStarted | ItemChanged | ItemCompleted) else None
