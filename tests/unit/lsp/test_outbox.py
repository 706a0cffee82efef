"""Backpressure: what a slow client gets instead of the deltas it missed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from amanu.frontends.lsp import outbox as module
from amanu.frontends.lsp.outbox import Outbox, message_json
from amanu.frontends.lsp.wire import to_json
from amanu.session.record_format import write
from amanu_protocol.events import (
    Event,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ItemsWithdrawn,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Answer, Notice
from amanu_protocol.state import SessionState, fold
from support.raw_client import RawClient

KB = 1024


class Wire:
    """A session on one side, a client on the other that reads when told to."""

    def __init__(self, client: RawClient, box: Outbox) -> None:
        self.client = client
        self.box = box
        self.state = empty()
        self.theirs = empty()
        self.seq = 0
        self.expected = 1
        self.replaced = 0

    def emit(self, event: Event) -> None:
        fold(self.state, event)
        self.seq += 1
        self.box.event(EventMessage(session_id="s", epoch=1, seq=self.seq, at=0, event=event))

    async def read(self) -> str:
        """Take one event, fold it as a client does, and check that nothing is missing before it."""
        message = await self.client.read()
        assert message is not None
        event = EventMessage.model_validate(message["params"])
        first = event.seq
        if event.event.kind == "itemsReplaced":
            first = event.event.replaces_from
            self.replaced += 1
        assert first == self.expected, "a gap in seq"
        self.expected = event.seq + 1
        fold(self.theirs, event.event)
        return event.event.kind

    async def read_all(self, acknowledge: bool = False) -> None:
        while self.expected <= self.seq:
            await self.read()
            if acknowledge:
                self.box.acknowledge("s", self.expected - 1)


def empty() -> SessionState:
    return SessionState(session_id="s", title="", roots=[], mode="ask", model_id="m", trusted=False, read_only=False)


def answer(item_id: str, text: str = "") -> Answer:
    return Answer(item_id=item_id, turn_id="t", text=text)


@pytest.fixture
async def wire(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Wire]:
    path = str(tmp_path_factory.mktemp("s") / "s")
    accepted: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
    server = await asyncio.start_unix_server(lambda *pair: accepted.set_result(pair), path)
    reader, writer = await asyncio.open_unix_connection(path, limit=2**30)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    _, out = await accepted
    client = RawClient(reader, writer)
    holder: list[Wire] = []
    box = Outbox(out, lambda _, item_id: holder[0].state.item(item_id))
    holder.append(Wire(client, box))
    yield holder[0]
    box.close()
    out.transport.abort()
    writer.transport.abort()
    server.close()
    await server.wait_closed()


def resume(wire: Wire) -> None:
    wire.client.reader._transport.resume_reading()  # type: ignore[attr-defined]


def stop(wire: Wire) -> None:
    wire.client.reader._transport.pause_reading()  # type: ignore[attr-defined]


async def test_a_client_that_does_not_read_gets_the_present_state(wire: Wire) -> None:
    wire.emit(TurnStarted(turn_id="t", prompt_id="p", model_id="m"))
    wire.emit(ItemStarted(item=answer("a")))
    for _ in range(125):
        wire.emit(ItemDelta(item_id="a", text="x" * 64 * KB))
    assert wire.box.unsent < module.HOLD + 100 * KB, "8 MB of deltas, and no more than the limit is kept"
    resume(wire)
    await wire.read_all()
    assert wire.theirs == wire.state
    assert wire.replaced == 1


async def test_events_that_are_no_deltas_come_in_order(wire: Wire) -> None:
    wire.emit(ItemStarted(item=answer("a")))
    wire.emit(ItemStarted(item=answer("b")))
    wire.emit(ItemStarted(item=answer("c")))
    for _ in range(40):
        for item_id in "abc":
            wire.emit(ItemDelta(item_id=item_id, text="x" * 64 * KB))
    wire.emit(ItemsWithdrawn(item_ids=["b"], reason="retry"))
    wire.emit(ItemCompleted(item=answer("a", "done")))
    for _ in range(10):
        wire.emit(ItemDelta(item_id="c", text="y" * KB))
    wire.emit(ItemChanged(item=answer("c", "changed")))
    for number in range(50):
        notice = Notice(item_id=f"n{number}", level="info", code="x", text="said")
        wire.emit(ItemCompleted(item=notice))
    wire.emit(TurnEnded(turn_id="t", reason="completed", message="", can_continue=False))
    resume(wire)
    await wire.read_all()
    assert wire.theirs == wire.state
    assert wire.replaced == 2
    assert len(wire.theirs.items) == 52


async def test_a_client_that_acknowledges_is_counted_by_what_it_has_drawn(wire: Wire) -> None:
    resume(wire)
    wire.emit(ItemStarted(item=answer("a")))
    await wire.read()
    wire.box.acknowledge("s", 1)
    for _ in range(400):
        wire.emit(ItemDelta(item_id="a", text="x" * 10 * KB))
        await asyncio.sleep(0)
    while wire.box.unsent:
        await asyncio.sleep(0.01)
    sent = 0
    with pytest.raises(TimeoutError):
        while True:
            message = await wire.client.read(0.3)
            assert message is not None
            fold(wire.theirs, EventMessage.model_validate(message["params"]).event)
            sent = message["params"]["seq"]
    assert 150 < sent < 250, "everything was read, yet what is not drawn is held at 2 MB"
    wire.expected = sent + 1
    wire.box.acknowledge("s", sent)
    await wire.read_all(acknowledge=True)
    assert wire.theirs == wire.state
    assert wire.replaced == 1


async def test_a_client_that_never_acknowledges_is_counted_by_what_is_unsent(wire: Wire) -> None:
    resume(wire)
    wire.emit(ItemStarted(item=answer("a")))
    for _ in range(20):
        for _ in range(10):
            wire.emit(ItemDelta(item_id="a", text="x" * 16 * KB))
        while wire.expected <= wire.seq:
            await wire.read()
    assert wire.replaced == 0
    assert wire.theirs == wire.state


async def test_detach_and_new_epochs_forget(wire: Wire) -> None:
    wire.emit(ItemStarted(item=answer("a")))
    for _ in range(500):
        wire.emit(ItemDelta(item_id="a", text="x" * 16 * KB))
    wire.box.forget("s")
    resume(wire)
    seqs: list[int] = []
    with pytest.raises(TimeoutError):
        while True:
            message = await wire.client.read(0.3)
            assert message is not None
            seqs.append(message["params"]["seq"])
    assert seqs == list(range(1, len(seqs) + 1)) and len(seqs) < 500
    message = EventMessage(session_id="s", epoch=2, seq=1, at=0, event=ItemDelta(item_id="a", text="new"))
    wire.box.event(message)
    got = await wire.client.read()
    assert got is not None and got["params"]["epoch"] == 2


async def test_one_step_is_one_write_and_a_delta_waits_for_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = wire.box._writer.write  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(
        wire.box._writer,  # pyright: ignore[reportPrivateUsage]
        "write",
        lambda data: (written.append(data.count(b"Content-Length")), write(data)),  # pyright: ignore
    )
    wire.emit(TurnStarted(turn_id="t", prompt_id="p", model_id="m"))
    wire.emit(ItemStarted(item=answer("a")))
    assert written == [] and wire.box.unsent > 0
    wire.emit(ItemDelta(item_id="a", text="first"))
    assert written == [3]
    wire.emit(ItemCompleted(item=answer("a", "first")))
    wire.emit(TurnEnded(turn_id="t", reason="completed", message="", can_continue=False))
    await asyncio.sleep(0)
    assert written == [3, 2]
    wire.box.put(b"1" * (module.GATHERED + 1))
    assert written == [3, 2, 1], "so much is not kept twice"
    resume(wire)
    await wire.read_all()
    assert wire.theirs == wire.state


async def test_a_client_that_lets_64_mb_pile_up_is_disconnected(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE", 4 * 1024 * KB)
    body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": "y" * 100 * KB}).encode()
    for _ in range(100):
        wire.box.put(body)
    assert wire.box.unsent == 0
    resume(wire)
    async with asyncio.timeout(50):
        while await read_or_end(wire.client) is not None:
            pass
    wire.box.put(body)  # on a closed connection nothing happens


@pytest.mark.parametrize("text", ["said", 'é "\\ \n', "half a pair \ud800"])
@pytest.mark.parametrize("others", [0, 1])
def test_an_event_is_sent_as_the_journal_has_it(text: str, others: int) -> None:
    event, written, _ = write(ItemCompleted(item=answer("a", text)), None)
    for _ in range(others):
        write(ItemCompleted(item=answer("b")), None)
    message = EventMessage(session_id="s", epoch=1, seq=2, at=3, event=event)
    assert message_json(message) == to_json(message)
    assert json.loads(message_json(message))["event"] == json.loads(written)


async def read_or_end(client: RawClient) -> Any:
    try:
        return await client.read()
    except asyncio.IncompleteReadError:
        return None
