"""Lines in, lines out: framing, order, cancellation, and what is no message."""

import asyncio
import json
from typing import Any

import pytest

from amanu.frontends.acp import peer as rpc
from amanu.frontends.acp.peer import ClientDisconnected, Peer, RpcError


class Wire:
    """A peer whose lines are kept."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.calls: list[Any] = []
        self.release = asyncio.Event()
        self.peer = Peer(lambda line: self.sent.append(json.loads(line)), {"echo": self.echo, "wait": self.wait})

    async def echo(self, params: Any) -> Any:
        self.calls.append(params)
        if params == "bad":
            raise RpcError(-32602, "bad", {"path": "x"})
        return {"said": params}

    async def wait(self, params: Any) -> Any:
        await self.release.wait()
        return {}

    def feed(self, *messages: Any) -> None:
        for message in messages:
            self.peer.feed(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (b'{"id":1,"method":"echo","params":"a"}\n', [(1, {"said": "a"})]),
        (b'\r\n\n{"id":"x","method":"echo","params":"a"}\r\n', [("x", {"said": "a"})]),
        (b'{"id":1,"method":"echo","params":"bad"}\n', [(1, -32602)]),
        (b'{"id":1,"method":"nothing"}\n', [(1, -32601)]),
        (b'{"method":"nothing"}\n{"method":"_x/y","params":{}}\n', []),
        (b"no json\n", [(None, -32700)]),
        (b"[]\n3\n", [(None, -32600), (None, -32600)]),
        (b'{"id":[],"method":"echo"}\n', [(None, -32600)]),
        (b'{"id":77,"result":{}}\n{"id":null,"error":{}}\n', []),
        (b'{"id":1,"method":"wait"}\n{"id":1,"method":"echo"}\n', [(None, -32600)]),
        (b"[" * 100_000 + b"\n", [(None, -32700)]),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_lines(data: bytes, sent: list[Any]) -> None:
    wire = Wire()
    for position in range(0, len(data), 5):
        wire.peer.feed(data[position : position + 5])
    await settle()
    got = [(each["id"], each["error"]["code"] if "error" in each else each["result"]) for each in wire.sent]
    assert got == sent
    await wire.peer.close()


async def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_LINE", 100)
    wire = Wire()
    for _ in range(50):
        wire.peer.feed(b"x" * 50)
    wire.peer.feed(b'\n{"id":1,"method":"echo","params":1}\n')
    await settle()
    assert [each.get("error", each.get("result")) for each in wire.sent] == [
        {"code": -32600, "message": "A message has more than 100 bytes."},
        {"said": 1},
    ]


async def test_requests_begin_in_their_order() -> None:
    wire = Wire()
    wire.feed(*({"id": number, "method": "echo", "params": number} for number in range(20)))
    await settle()
    assert wire.calls == list(range(20))


async def test_a_cancelled_request_is_answered_with_its_error() -> None:
    wire = Wire()
    wire.feed({"id": 5, "method": "wait"})
    await settle()
    wire.feed({"method": "$/cancel_request", "params": {"requestId": 5}})
    await settle()
    assert [(each["id"], each["error"]["code"]) for each in wire.sent] == [(5, -32800)]


async def test_our_requests_are_answered_refused_withdrawn_or_lost() -> None:
    wire = Wire()
    asked = [asyncio.create_task(wire.peer.request("ask", {})) for _ in range(4)]
    await settle()
    wire.feed({"id": 1, "result": "yes"}, {"id": 2, "error": {"code": -1, "message": "no"}})
    asked[2].cancel()
    await settle()
    assert asked[0].result() == "yes"
    assert str(asked[1].exception()) == "no"
    assert wire.sent[-1] == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}}
    await wire.peer.close()
    await settle()
    assert isinstance(asked[3].exception(), ClientDisconnected)
    with pytest.raises(ClientDisconnected):
        await wire.peer.request("ask", {})
