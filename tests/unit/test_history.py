"""The items a session does not hold any more: how many it holds, and that nothing is lost for who looks back."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from amanu.session.events import EventStream
from amanu.session.history import HELD_ITEMS, ItemHistory
from amanu.session.restore import Restored, restore
from amanu.storage import journal_sqlite as journal_file
from amanu.storage.journal import Journal
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemChanged, ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import Answer, Item, Notice
from amanu_protocol.state import SessionState

MANY = 5 * HELD_ITEMS + 50


def notice(n: int, text: str = "") -> Notice:
    return Notice(item_id=f"n{n}", level="info", code="test", text=text or f"text {n}")


class Told:
    """A session as far as it is told here."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.state = SessionState(
            session_id="s", title="", roots=["/w"], mode="ask", model_id="x:y", trusted=False, read_only=False
        )
        self.earlier = ItemHistory()
        self.emit = EventStream(self.state, journal, epoch=1)
        self.emit.listeners.append(lambda event, position: self.earlier.on_event(self.state, event, position))


async def back(state: SessionState, earlier: ItemHistory, journal: Journal, limit: int = 37) -> list[Item]:
    """All items, as a client gets them that pages back from what it was given."""
    items = list(state.last(HELD_ITEMS).items)
    more = True
    while more:
        page = await earlier.page(state, journal, items[0].item_id, limit)
        assert page is not None
        found, more = page
        assert found or not more
        items[:0] = found
    return items


async def restored(journal: Journal) -> Restored:
    return await journal.read_through(lambda records: restore("s", records, read_only=False))


async def test_few_items_are_held_and_all_can_be_had(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    told = Told(journal)
    expected = [notice(n) for n in range(MANY)]
    for item in expected:
        told.emit(ItemStarted(item=notice(0, "not yet").model_copy(update={"item_id": item.item_id})))
        told.emit(ItemCompleted(item=item))
        assert len(told.state.items) <= 2 * HELD_ITEMS
    assert told.state.has_earlier
    assert told.state.items[-HELD_ITEMS:] == expected[-HELD_ITEMS:]
    assert await back(told.state, told.earlier, journal) == expected
    again = await restored(journal)
    assert len(again.state.items) <= 2 * HELD_ITEMS
    assert (again.state.items, again.state.has_earlier) == (told.state.items, True)
    assert await back(again.state, again.history, journal) == expected
    await journal.close()


async def test_what_is_still_open_stays_and_what_follows_it(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    told = Told(journal)
    told.emit(ItemCompleted(item=notice(0)))
    told.emit(ItemStarted(item=notice(1)))
    for n in range(2, MANY):
        told.emit(ItemCompleted(item=notice(n)))
    assert [item.item_id for item in told.state.items[:2]] == ["n1", "n2"]
    told.emit(ItemChanged(item=notice(1, "further")))
    assert told.state.items[0] == notice(1, "further"), "in its place"
    told.emit(ItemCompleted(item=notice(1, "done")))
    assert len(told.state.items) <= 2 * HELD_ITEMS
    assert (await back(told.state, told.earlier, journal))[:3] == [notice(0), notice(1, "done"), notice(2)]
    await journal.close()


async def test_what_no_record_tells_yet_stays(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    told = Told(journal)
    told.emit(ItemStarted(item=Answer(item_id="a", turn_id="t", text="")))
    told.emit.delta("a", "half of it")
    for n in range(MANY):
        told.emit(ItemCompleted(item=notice(n)))
    assert told.state.items[0] == Answer(item_id="a", turn_id="t", text="half of it")
    await journal.close()


async def test_the_withdrawn_are_gone(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    told = Told(journal)
    for n in range(MANY):
        told.emit(ItemCompleted(item=notice(n)))
    told.emit(ItemsWithdrawn(item_ids=["n3", f"n{MANY - 1}"], reason="test"))
    expected = [notice(n) for n in range(MANY - 1) if n != 3]
    assert await back(told.state, told.earlier, journal) == expected
    again = await restored(journal)
    assert await back(again.state, again.history, journal) == expected
    assert await told.earlier.page(told.state, journal, "n3", 5) is None
    await journal.close()


async def test_looking_back_needs_no_disk_that_takes_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await Journal.open(tmp_path / "s")
    insert = journal_file.insert

    def full(db: sqlite3.Connection, batch: list[journal_file.Entry]) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    told = Told(journal)
    for n in range(MANY):
        if n == MANY // 2:
            await journal.durable()
            monkeypatch.setattr(journal_file, "insert", full)
        told.emit(ItemCompleted(item=notice(n)))
    assert await back(told.state, told.earlier, journal) == [notice(n) for n in range(MANY)]
    with contextlib.suppress(AmanuError):  # a commit that is under way
        await journal.durable()
    monkeypatch.setattr(journal_file, "insert", insert)
    await journal.close()


async def test_a_page_says_whether_there_are_more(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    told = Told(journal)
    for n in range(MANY):
        told.emit(ItemCompleted(item=notice(n)))
    assert await told.earlier.page(told.state, journal, "n5", 5) == ([notice(n) for n in range(5)], False)
    assert await told.earlier.page(told.state, journal, "n5", 4) == ([notice(n) for n in range(1, 5)], True)
    assert await told.earlier.page(told.state, journal, "n0", 4) == ([], False)
    first = told.state.items[0].item_id
    at = int(first[1:])
    across = await told.earlier.page(told.state, journal, f"n{at + 2}", 4)
    assert across == ([notice(n) for n in range(at - 2, at + 2)], True)
    await journal.close()
