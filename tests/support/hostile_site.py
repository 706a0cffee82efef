"""A web of traps: a server on loopback that answers with bytes as a test writes them, a name server that gives other
answers the second time, and a transport that takes connections to public addresses to that server instead."""

import asyncio
import contextlib
import functools
import ssl
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from amanu.models.http import LazyValue
from amanu.web.fetch import FetchLimits, PageFetcher

PUBLIC = "93.184.216.34"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
MEGABYTE = b"a" * (1 << 20)


class HostileSite:
    """`answers`: path → what is sent for it. `names`: host → the addresses it has, one list for each look-up, the last
    for all that follow; a host that is not named has `PUBLIC`."""

    def __init__(self, answers: Mapping[str, Answer], names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = answers
        self._names = {host: list(lists) for host, lists in names.items()}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections: list[str] = []
        """The addresses that were connected to."""
        self.requests: list[str] = []
        """The heads of what was asked."""
        self.look_ups: list[str] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.look_ups.append(host)
        answers = self._names.get(host, [[PUBLIC]])
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        if addresses == ["hang"]:
            await asyncio.Event().wait()
        return addresses

    def transport(self, tls: ssl.SSLContext, proxy: str | None) -> httpx2.AsyncBaseTransport:
        return _Rerouted(self)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split(" ")[1].partition("?")[0]
            await self._answers[path](writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


class _Rerouted(httpx2.AsyncBaseTransport):
    def __init__(self, site: HostileSite) -> None:
        self._site = site
        self._inner = httpx2.AsyncHTTPTransport(verify=False)  # it speaks no TLS; certificates take long to load

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._site.connections.append(request.url.host)
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._site.port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def running_site(
    answers: Mapping[str, Answer],
    names: Mapping[str, Sequence[Sequence[str]]] | None = None,
    **limits: Any,
) -> AsyncGenerator[tuple[HostileSite, PageFetcher]]:
    """The site, and a fetcher for which it is the internet."""
    site = HostileSite(answers, names or {})
    await site.start()
    try:
        fetcher = PageFetcher(limits=FetchLimits(**limits), resolve=site.resolve, transport=site.transport)
        # The transport does without; to load all certificates takes longer than most tests.
        fetcher._tls = LazyValue(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # pyright: ignore[reportPrivateUsage]
        yield site, fetcher
    finally:
        await site.stop()


# Answers --------------------------------------------------------------------------------------------


def send(body: bytes | str = b"", media_type: str = "text/html", status: str = "200 OK", **headers: str) -> Answer:
    """A well-formed answer. Headers are written with `_` for `-`; `content_length` says another length."""
    data = body.encode() if isinstance(body, str) else body
    fields = {"content_type": media_type, "content_length": str(len(data)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value]
    return raw(f"HTTP/1.1 {status}\r\n".encode() + "\r\n".join([*lines, "", ""]).encode("latin-1") + data)


def redirect(location: str, status: str = "302 Found") -> Answer:
    return send(status=status, location=location)


def raw(data: bytes, *, then: bytes = b"", every: float = 0.0, hold: bool = False) -> Answer:
    """These bytes; `then`, again and again, each after so many seconds; `hold`: silence, with the connection open."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        while then:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(every)
        if hold:
            await asyncio.Event().wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    return answer


@functools.cache
def bomb(window: int) -> bytes:
    """A gigabyte, compressed (31: gzip, 15: deflate); only its checksum is missing."""
    packer = zlib.compressobj(wbits=window)
    first, again = (packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 1023


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for index, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {font} /Contents {5 + 2 * index} 0 R >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    out, offsets = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return out + f"{end}trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n".encode()
