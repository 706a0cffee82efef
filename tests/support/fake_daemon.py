"""The other end of a client's connection, played by a test: it says what the test says."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any, cast

from amanu.client.daemon_client import DaemonClient, read_frame
from amanu_protocol.events import Event, EventMessage
from amanu_protocol.requests import SessionResult
from amanu_protocol.state import SessionState

Answer = Callable[[dict[str, Any]], Any]

SESSION = "s1"


def state(**changes: Any) -> SessionState:
    plain: dict[str, Any] = {
        "session_id": SESSION,
        "title": "",
        "roots": ["/w"],
        "mode": "ask",
        "model_id": "scripted:x",
        "trusted": True,
        "read_only": False,
    }
    return SessionState(**{**plain, **changes})


class FakeDaemon:
    """Answers by `answers[method](params)`; an exception of type Refusal becomes an error reply."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.replies: list[dict[str, Any]] = []
        self.seq = 0
        self.answers: dict[str, Answer] = {
            "initialize": lambda _: {
                "capabilities": {"experimental": {"amanu": {"protocol": 4, "version": "0.1.0", "methods": []}}}
            },
            "shutdown": lambda _: None,
            "amanu/session/create": lambda _: SessionResult(state=state(), epoch=1, from_seq=1).model_dump(),
        }
        self._serving = asyncio.create_task(self._serve())

    def event(self, event: Event, *, at: int = 0, epoch: int = 1, seq: int | None = None) -> None:
        self.seq = self.seq + 1 if seq is None else seq
        message = EventMessage(session_id=SESSION, epoch=epoch, seq=self.seq, at=at, event=event)
        self.send({"method": "amanu/event", "params": message.model_dump(mode="json")})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)

    def said(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.received if name == method]

    async def _serve(self) -> None:
        while (message := await read_frame(self._reader)) is not None:
            if "method" not in message:
                self.replies.append(message)
                continue
            params = cast("dict[str, Any]", message.get("params") or {})
            self.received.append((message["method"], params))
            if "id" not in message:
                continue
            try:
                result = self.answers[message["method"]](params)
                self.send({"id": message["id"], "result": result})
            except Refusal as refusal:
                self.send({"id": message["id"], "error": refusal.error})


class Refusal(Exception):
    def __init__(self, kind: str, message: str, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.error = {"code": -32803, "message": message, "data": {"kind": kind, "hint": hint, "path": path}}


async def connected() -> tuple[DaemonClient, FakeDaemon]:
    ours, theirs = socket.socketpair()
    daemon = FakeDaemon(*await asyncio.open_connection(sock=theirs))
    client = DaemonClient(*await asyncio.open_connection(sock=ours))
    await client.initialize()
    return client, daemon
