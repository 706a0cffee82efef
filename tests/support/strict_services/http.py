"""The base of the strict services: a small HTTP/1.1 loopback server whose replies and faults are scripted.

    service = Anthropic([Say(text="Hello."), Fault("status", status=429)])
    url = await service.start()
    ...
    await service.stop()
    assert not service.refused and not service.lint

A vendor subclasses `Service` and gives `check` (what the vendor would refuse) and `events` (a reply as
server-sent events). As a process: `python -m support.strict_services.anthropic --port 0 --script FILE` prints the port;
FILE is a JSON list of replies (see `load_script`).
"""

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.strict_services.script import (
    Cite,
    Fault,
    Raw,
    Received,
    Refusal,
    Say,
    Script,
    Step,
    ToolUse,
    in_order,
    load_script,
)

__all__ = ["Cite", "Fault", "Raw", "Received", "Refusal", "Say", "Script", "Service", "Step", "ToolUse", "main"]


class _Reader(asyncio.StreamReader):
    """Tells when the other side is gone, without reading."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 26)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: BaseException) -> None:
        super().set_exception(exc)  # type: ignore[arg-type]
        self.gone.set()


class Service(ABC):
    """A scripted service on 127.0.0.1. `requests` is the log; a test ends with `refused` and `lint` empty,
    unless it is about them."""

    vendor: str

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.lint: list[str] = []
        """Accepted by the vendor, still a fault of ours."""
        self.open_streams = 0
        self.connections = 0
        self.on_request: Callable[[Received], None] = lambda request: None
        """Called when a request was checked."""
        self.script(script)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    def script(self, script: Script) -> None:
        """Replace what comes next: replies in order, or a function of the request."""
        self._next: Callable[[Received], Step] = script if callable(script) else in_order(iter(script))

    @abstractmethod
    def check(self, request: Received) -> Refusal | None:
        """What the vendor says to a request it refuses; append to `lint` what is merely wrong."""

    @abstractmethod
    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        """The reply as framed server-sent events; the last one is the finish marker."""

    @abstractmethod
    def error_body(self, status: int, message: str, code: str) -> bytes:
        """The JSON body of an error status."""

    @abstractmethod
    def error_event(self, fault: Fault) -> bytes:
        """The framed event that reports an error after a 200."""

    def issue(self, body: bytes, request: Received) -> None:  # noqa: B027  (who signs nothing, issues nothing)
        """As if it had answered that request with this stream, or a part of it: the signatures in it are its own."""

    def headers_of(self, say: Say, request: Received) -> dict[str, str]:
        """Headers of the reply, of the vendor's own."""
        return {}

    def finish_markers(self) -> int:
        """How many events at the end make up the finish marker: left out by `unfinished`."""
        return 1

    def other(self, request: Received) -> tuple[int, bytes] | tuple[int, bytes, dict[str, str]] | None:
        """Answer to a path that is no generation (`GET /v1/models`): status, body and maybe headers; None if it is
        one."""
        return None

    async def start(self, port: int = 0) -> str:
        """Listen; returns the base URL."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        """Close all connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # connections -----------------------------------------------------------------------------------

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = _Reader()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return asyncio.StreamReaderProtocol(reader, connected)

    async def _serve(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                self.open_streams += 1
                try:
                    await self._while_there(reader, request, self._reply(request, writer))
                finally:
                    self.open_streams -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _while_there(self, reader: _Reader, request: Received, reply: Any) -> None:
        """Run the reply until it is done or the client has gone."""
        replying = asyncio.ensure_future(reply)
        leaving = asyncio.ensure_future(reader.gone.wait())
        try:
            await asyncio.wait({replying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if replying.done():
                await replying
                return
            request.dropped_at = time.monotonic()
            request.dropped.set()
            raise ConnectionResetError
        finally:
            replying.cancel()
            leaving.cancel()
            await asyncio.gather(replying, leaving, return_exceptions=True)

    async def _reply(self, request: Received, writer: asyncio.StreamWriter) -> None:
        other = self.other(request)
        if other is not None:
            return await _send_json(writer, other[0], other[1], other[2] if len(other) == 3 else None)
        refusal = self.check(request)
        if refusal is not None:
            request.refused = refusal.message
            self.refused.append(refusal.message)
        self.on_request(request)
        if refusal is not None:
            body = self.error_body(refusal.status, refusal.message, refusal.code)
            return await _send_json(writer, refusal.status, body)
        step = self._next(request)
        match step:
            case Fault():
                await self._stream(writer, Say(text=["Half ", "of ", "a ", "reply."], fault=step), request)
            case Raw():
                await _send_head(writer, 200)
                for event in step.events:
                    await _send_chunk(writer, event)
                    await asyncio.sleep(step.delay)
                await _send_chunk(writer, b"")
            case Say():
                await self._stream(writer, step, request)

    async def _stream(self, writer: asyncio.StreamWriter, say: Say, request: Received) -> None:
        if say.wait:
            await asyncio.sleep(say.wait)
        fault = say.fault
        if fault is not None and fault.kind == "status":
            body = self.error_body(fault.status, fault.message, fault.code)
            return await _send_json(writer, fault.status, body, fault.headers)
        if fault is not None and fault.kind == "reset" and not fault.headers_first:
            return _reset(writer)
        await _send_head(writer, 200, {**self.headers_of(say, request), **(fault.headers if fault else {})})
        if fault is None:
            events = list(self.events(say, request))
            for sent, event in enumerate(events):
                if say.until is not None and sent == len(events) - 1:
                    await say.until.wait()
                await _send_chunk(writer, event, drain=sent % 64 == 0)
                if say.delay:
                    await asyncio.sleep(say.delay)
            return await _send_chunk(writer, b"")
        await self._fail(writer, fault, list(self.events(say, request)), say.delay)

    async def _fail(self, writer: asyncio.StreamWriter, fault: Fault, events: list[bytes], delay: float) -> None:
        if fault.kind == "empty":
            return await _send_chunk(writer, b"")
        if fault.kind == "unfinished":
            events = events[: len(events) - self.finish_markers()]
        else:
            events = events[: fault.after] if fault.kind != "cut" else events[: fault.after + 1]
        if fault.kind == "cut":
            events[-1] = _inside_string(events[-1])
        for event in events:
            await _send_chunk(writer, event)
            if delay:
                await asyncio.sleep(delay)
        match fault.kind:
            case "silence":
                await asyncio.Event().wait()
            case "cut":
                writer.close()
            case "reset":
                _reset(writer)
            case "errorEvent":
                await _send_chunk(writer, self.error_event(fault))
                await _send_chunk(writer, b"")
            case "malformed":
                await _send_chunk(writer, self.malformed_event())
                await _send_chunk(writer, b"")
            case _:
                await _send_chunk(writer, b"")

    def malformed_event(self) -> bytes:
        return b'data: {"this is not": JSON}\n\n'


def data_of(body: bytes) -> Iterator[Any]:
    """The JSON of a stream's events, as far as it is JSON."""
    for line in body.replace(b"\r", b"\n").split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(line.removeprefix(b"data:"))


# HTTP ----------------------------------------------------------------------------------------------


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    """The next request of the connection, or None when it ended in order."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    path, _, query = target.partition("?")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
    }
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, query, headers, body, time.monotonic())


async def _send_head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str] | None = None) -> None:
    own = {
        "content-type": "text/event-stream; charset=utf-8",
        "transfer-encoding": "chunked",
        **(headers or {}),
    }
    writer.write(_head(status, own))
    await writer.drain()


async def _send_chunk(writer: asyncio.StreamWriter, data: bytes, *, drain: bool = True) -> None:
    """One chunk of the body; an empty one ends it."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    if drain:
        await writer.drain()


async def _send_json(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    own = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    writer.write(_head(status, own) + body)
    await writer.drain()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset instead of an orderly end."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _inside_string(event: bytes) -> bytes:
    """The event up to the middle of its last JSON string."""
    end = event.rindex(b'"')
    return event[: max(end - 2, 1)]


# the process -------------------------------------------------------------------------------------


def main(make: Callable[[Script], Service]) -> None:
    """`python -m support.strict_services.<vendor>`: serve until terminated. The port is the first line of stdout."""
    arguments = argparse.ArgumentParser(description="A strict, scripted loopback model service.")
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--script", type=Path, required=True)
    arguments.add_argument(
        "--log", type=Path, help="gets a JSON line per request: path, body, refused, all lint so far"
    )
    chosen = arguments.parse_args()
    service = make(load_script(chosen.script.read_text("utf-8")))

    def note(request: Received) -> None:
        body = request.body.decode("utf-8", "replace")
        line = {"path": request.path, "body": body, "refused": request.refused, "lint": service.lint}
        with chosen.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    if chosen.log is not None:
        service.on_request = note

    async def serve() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await service.start(chosen.port)
        sys.stdout.write(f"{service.port}\n")
        sys.stdout.flush()
        await ended.wait()
        await service.stop()

    asyncio.run(serve())
