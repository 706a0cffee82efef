"""A JSON-RPC client over a child's pipes, as little of it as drives a subject without slowing it."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any, Literal

import orjson

Framing = Literal["lines", "headers"]
Notified = Callable[[str, Any], None]
Asked = Callable[[str, Any], Any]


class RpcError(Exception):
    """The subject answered with an error, or left."""


class Rpc:
    """`notified(method, params)` takes notifications; `asked(method, params)` answers requests, at once or by a
    future."""

    def __init__(self, process: asyncio.subprocess.Process, framing: Framing, notified: Notified, asked: Asked) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._out = process.stdin
        self._in = process.stdout
        self._framing = framing
        self._notified = notified
        self._asked = asked
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        self.received = 0
        """Bytes the subject has sent."""
        self._answering: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())

    def call(self, method: str, params: Any) -> "asyncio.Future[Any]":
        """Send a request; the future holds its result, or RpcError."""
        self._last += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = future
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return future

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self) -> None:
        self._reading.cancel()
        for answering in self._answering:
            answering.cancel()
        self._out.close()

    def _send(self, message: dict[str, Any]) -> None:
        body = orjson.dumps(message)
        if self._framing == "lines":
            self._out.write(body + b"\n")
        else:
            self._out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> None:
        data = bytearray()
        try:
            while more := await self._in.read(1 << 18):
                data += more
                self.received += len(more)
                used = self._lines(data) if self._framing == "lines" else self._frames(data)
                del data[:used]
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(RpcError("the subject ended its output"))

    def _lines(self, data: bytearray) -> int:
        used = data.rfind(b"\n") + 1
        for line in bytes(data[:used]).splitlines():
            if line.startswith(b"{"):  # some print a greeting
                self._take(line)
        return used

    def _frames(self, data: bytearray) -> int:
        used = 0
        while (end := data.find(b"\r\n\r\n", used)) >= 0:
            head = bytes(data[used:end]).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(data) < end + 4 + length:
                break
            used = end + 4 + length
            self._take(bytes(data[end + 4 : used]))
        return used

    def _take(self, body: bytes) -> None:
        message: dict[str, Any] = orjson.loads(body)
        method = message.get("method")
        if method is None:
            future = self._waiting.pop(message["id"], None)
            if future is None or future.done():
                return
            if "error" in message:
                future.set_exception(RpcError(json.dumps(message["error"])[:600]))
            else:
                future.set_result(message.get("result"))
        elif "id" in message:
            task = asyncio.ensure_future(self._answer(message["id"], method, message.get("params")))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            self._notified(method, message.get("params"))

    async def _answer(self, number: Any, method: str, params: Any) -> None:
        answer = self._asked(method, params)
        result: Any = await answer if inspect.isawaitable(answer) else answer
        self._send({"jsonrpc": "2.0", "id": number, "result": result})
