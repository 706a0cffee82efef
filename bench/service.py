"""One fast loopback service for every subject, in a process of its own: `python -m bench.service` prints its port.

Lax on purpose: it looks for the plan in a request (`plan.py`), counts the results of calls after it and sends a
reply made ahead. What it saw of each request is at `GET /bench/log` (and forgotten), in seconds of the monotonic
clock, which all processes of a machine share. `GET /bench/aside/2` makes it take two seconds for each later request
beside the conversation. `GET /bench/words/` and base64 of JSON, `{words: plan}`, has these words of the user's stand
for these plans from then on.
"""

import asyncio
import base64
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.plan import Plan, find
from bench.wires import END, WIRES, call_reply, chunk, pieces, said_reply, text_reply

PATHS = (
    ("/messages", "anthropic"),
    (":streamGenerateContent", "gemini"),
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
)
_JUDGED = {
    "reasoning": "none",
    "next_speaker": "user",
    "unproductive_state_analysis": "none",
    "unproductive_state_confidence": 0.0,
}
_SAID = {"role": "model", "parts": [{"text": json.dumps(_JUDGED)}]}
VERDICT = json.dumps({"candidates": [{"content": _SAID, "finishReason": "STOP"}]}).encode()
"""What Gemini CLI wants to hear when it asks on the side whether its agent loops or has done."""
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
SAVE = os.environ.get("BENCH_SAVE")
"""A folder to keep request bodies in, when working on a driver."""


@dataclass
class Seen:
    """One request: when it had arrived whole, when the first piece and the end of its reply were written, and when
    the client dropped it before that end."""

    wire: str
    size: int
    aside: bool
    """Carried no tools: a title, a check of the loop; not the conversation."""
    step: int
    arrived: float
    first: float | None = None
    ended: float | None = None
    dropped: float | None = None


class Service:
    def __init__(self) -> None:
        self.log: list[Seen] = []
        self.aside_seconds = 0.0
        """For the answer to a request beside the conversation: as long as a model takes."""
        self.words: dict[str, Plan] = {}

    def connection(self) -> asyncio.Protocol:
        return Connection(self)


class Connection(asyncio.Protocol):
    """Requests of one connection, one after the other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._data = bytearray()
        self._replying: asyncio.Task[None] | None = None
        self._seen: Seen | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=1 << 26)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._seen is not None and self._seen.ended is None:
            self._seen.dropped = time.monotonic()
        if self._replying is not None:
            self._replying.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        at = self._data.find(b"\r\n\r\n")
        if at < 0:
            return
        head = bytes(self._data[:at])
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        end = at + 4 + (int(length[1]) if length else 0)
        if b"chunked" in head.lower() and not length:
            if not self._data.endswith(END):
                return
            arrived = time.monotonic()
            body = _unchunked(bytes(self._data[at + 4 :]))
            end = len(self._data)
        else:
            if len(self._data) < end:
                return
            arrived = time.monotonic()
            body = bytes(self._data[at + 4 : end])
        del self._data[:end]
        self._answer(head, body, arrived)

    def _answer(self, head: bytes, body: bytes, arrived: float) -> None:
        path = head.split(b" ", 2)[1].decode()
        if path == "/bench/log":
            log, self._service.log = self._service.log, []
            return self._json(json.dumps([asdict(seen) for seen in log]).encode())
        if path.startswith("/bench/aside/"):
            self._service.aside_seconds = float(path.rpartition("/")[2])
            return self._json(b"{}")
        if path.startswith("/bench/words/"):
            told: dict[str, dict[str, Any]] = json.loads(base64.urlsafe_b64decode(path.rpartition("/")[2]))
            self._service.words = {words: Plan(**plan) for words, plan in told.items()}
            return self._json(b"{}")
        name = next((name for part, name in PATHS if part in path), None)
        found = find(body) or _worded(body, self._service.words)
        if SAVE:
            (Path(SAVE) / f"{time.monotonic_ns()}.txt").write_bytes(head + b"\n\n" + body)
        if ":generateContent" in path:
            return self._aside(self._json, VERDICT)
        if name is None or "count_tokens" in path:
            return self._json(b'{"totalTokens":10,"input_tokens":10,"data":[],"models":[],"object":"list"}')
        aside = b'"tools"' not in body or found is None
        plan, at = (Plan(), 0) if aside or found is None else found
        step = body.count(WIRES[name].result_mark, at)
        seen = Seen(name, len(body), aside, step, arrived)
        self._service.log.append(seen)
        self._seen = seen
        if step < plan.steps:
            reply = HEAD + call_reply(name, plan, step)
            seen.first = seen.ended = time.monotonic()
            self._transport.write(reply)
        elif plan.pace:
            self._replying = asyncio.ensure_future(self._paced(name, plan, seen))
        elif plan.said:
            seen.first = seen.ended = time.monotonic()
            self._transport.write(HEAD + said_reply(name, plan.said))
        elif aside and self._service.aside_seconds:
            self._aside(self._transport.write, HEAD + b"".join(text_reply(name, plan.chunks)))
        else:
            first, rest = text_reply(name, plan.chunks)
            seen.first = time.monotonic()
            self._transport.write(HEAD + first)
            seen.ended = time.monotonic()
            self._transport.write(rest)

    async def _paced(self, name: str, plan: Plan, seen: Seen) -> None:
        wire = WIRES[name]
        self._transport.write(HEAD + b"".join(map(chunk, wire.head())))
        started = time.monotonic()
        words: list[str] = []
        for n, word in enumerate(pieces(plan.chunks)):
            text = f"t{time.monotonic_ns()} " if plan.stamped else word
            if plan.paragraph and n % plan.paragraph == plan.paragraph - 1:
                text += "\n\n"
            words.append(text)
            seen.first = seen.first or time.monotonic()
            self._transport.write(chunk(wire.piece(text)))
            await asyncio.sleep(started + (n + 1) * plan.pace - time.monotonic())
        seen.ended = time.monotonic()
        self._transport.write(b"".join(map(chunk, wire.tail(words))) + END)

    def _aside(self, answer: Callable[[bytes], None], data: bytes) -> None:
        asyncio.get_running_loop().call_later(self._service.aside_seconds, answer, data)

    def _json(self, body: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )


def _worded(body: bytes, known: Mapping[str, Plan]) -> tuple[Plan, int] | None:
    """The plan of the last known words in a request, and where they end."""
    at, words = max(((body.rfind(each.encode()), each) for each in known), default=(-1, ""))
    return (known[words], at + len(words)) if at >= 0 else None


def _unchunked(data: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


async def serve() -> None:
    loop = asyncio.get_running_loop()
    service = Service()
    server = await loop.create_server(service.connection, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    await loop.connect_read_pipe(lambda: _UntilEnd(stop), sys.stdin)
    await stop.wait()


class _UntilEnd(asyncio.Protocol):
    """The service ends with whoever started it."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop.set()


if __name__ == "__main__":
    asyncio.run(serve())
