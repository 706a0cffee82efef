"""emit = fold + journal + fan-out: order, coalescing, what is kept, who gets what after a gap."""

import asyncio
import json
from pathlib import Path

from amanu.core.conversation import User
from amanu.session.events import FLOOD, FULL_FRAME, EventStream
from amanu.storage.journal import Journal
from amanu_protocol.events import Event, ItemCompleted, ItemDelta, ItemStarted, ProposalChanged, TurnEnded, TurnStarted
from amanu_protocol.items import Answer
from amanu_protocol.state import SessionState, fold
from support.sample_events import hunk, proposed
from support.session_client import Client


def new_state() -> SessionState:
    return SessionState(
        session_id="s", title="", roots=["/w"], mode="ask", model_id="x:y", trusted=False, read_only=False
    )


def answer(text: str) -> Answer:
    return Answer(item_id="a", turn_id="t", text=text)


def some_turn(emit: EventStream) -> None:
    emit(TurnStarted(turn_id="t", prompt_id="p", model_id="x:y"))
    emit(ItemStarted(item=answer("")))
    for n in range(100):
        emit.delta("a", f"{n} ")
    emit(ItemCompleted(item=answer("whole")), entry=User(text="private"))
    emit(TurnEnded(turn_id="t", reason="completed", message="", can_continue=False))


async def test_deltas_become_few_events_in_order_and_are_not_journalled(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    emit = EventStream(new_state(), journal, epoch=1)
    watcher = Client({})
    assert emit.attach(watcher) == 1
    some_turn(emit)
    await emit.durable()
    kinds = [message.event.kind for message in watcher.messages]
    deltas = ["itemDelta"] * (FLOOD + 1)
    assert kinds == ["turnStarted", "itemStarted", *deltas, "itemCompleted", "turnEnded"]
    text = "".join(m.event.text for m in watcher.messages if isinstance(m.event, ItemDelta))
    assert text == "".join(f"{n} " for n in range(100))
    assert [message.seq for message in watcher.messages] == [*range(1, len(kinds) + 1)]
    records = await journal.records()
    assert [json.loads(record.event)["kind"] for record in records] == ["turnStarted", "itemCompleted", "turnEnded"]
    assert [record.private is not None for record in records] == [False, True, False]
    await journal.close()


async def test_only_a_flood_of_deltas_waits(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    emit = EventStream(new_state(), journal, epoch=1)
    watcher = Client({})
    emit.attach(watcher)

    def texts() -> list[str]:
        return [message.event.text for message in watcher.messages if isinstance(message.event, ItemDelta)]

    for n in range(FLOOD):
        emit.delta("a", "x")
        assert texts() == ["x"] * (n + 1)  # at the pace of a model each goes at once
    for _ in range(100):
        emit.delta("a", "y")
    assert len(texts()) == FLOOD
    async with asyncio.timeout(50):
        while len(texts()) == FLOOD:
            await asyncio.sleep(0.005)
    assert texts()[FLOOD:] == ["y" * 100]
    emit.delta("a", "z")  # it may go on
    emit.delta("a", "z" * FULL_FRAME)  # what fills a frame goes at once
    assert "".join(texts()[FLOOD + 1 :]) == "z" * (FULL_FRAME + 1)
    await journal.close()


async def test_a_client_that_attaches_at_any_point_ends_with_the_same_state(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    emit = EventStream(new_state(), journal, epoch=1)
    full = Client({})
    emit.attach(full)
    some_turn(emit)
    for known in range(len(full.messages) + 1):
        state = new_state()
        events: list[Event] = [message.event for message in full.messages[:known]]
        missed = emit.since(known)
        assert missed is not None
        for event in (*events, *(message.event for message in missed)):
            fold(state, event)
        assert state == emit.state
    assert emit.since(99) is None
    await journal.close()


async def test_events_too_old_are_not_pretended_to_be_there(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    emit = EventStream(new_state(), journal, epoch=1)
    for _ in range(30):
        emit(ItemCompleted(item=answer("y" * 1_000_000)))
    assert emit.since(0) is None
    assert emit.since(29) is not None
    await journal.close()


async def test_half_a_surrogate_pair_in_a_hunk_does_not_lose_a_base_text_in_a_blob(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    emit = EventStream(new_state(), journal, epoch=1)
    emit(ProposalChanged(proposal=proposed(hunk(new_text="\udc00\n"), base_text="one\ntwo\nthree\n", base_blob="b1")))
    file = emit.state.proposals[0].files[0]
    assert (file.base_text, file.hunks[0].new_text) == ("one\ntwo\nthree\n", "?\n")
    await journal.close()
