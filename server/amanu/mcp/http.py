"""Messages to and from a server elsewhere: the SDK's streamable HTTP, over a network that reaches nothing else.

A server can name further addresses (its metadata, its authorization server). They may be on the public internet only,
unless the server itself is on this machine or in the user's own network: else it could make us ask a router, or the
service that gives a cloud machine its credentials.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError

from amanu import __version__
from amanu.mcp.link import Link, Streams
from amanu.mcp.repair import Traffic
from amanu.mcp.server_log import ServerLog
from amanu.mcp.streams import IncomingStream, Stream
from amanu.models.http import proxy_for, tls_for
from amanu.web.addresses import is_public

CONNECT_SECONDS = 30.0
MAX_EVENT = 16 << 20
"""Bytes of an answer in an event stream."""


@asynccontextmanager
async def http_streams(
    address: str, headers: Mapping[str, str], auth: httpx2.Auth, log: ServerLog, link: Link
) -> AsyncGenerator[Streams]:
    """Exchange messages with the server at that address."""
    log.forget_tail()
    async with (
        httpx2.AsyncClient(**await client_options(address, headers, auth)) as client,
        streamable_http_client(address, http_client=client, max_sse_event_size=MAX_EVENT) as (read, write),
    ):
        traffic = Traffic(lambda line: log.write(f"amanu: {line}\n"))
        yield _Incoming(read, traffic, link), _Outgoing(write, traffic)


async def client_options(address: str, headers: Mapping[str, str], auth: httpx2.Auth) -> dict[str, Any]:
    """Options of the HTTP client for that server."""
    return {
        "transport": await asyncio.to_thread(GuardedTransport, address),
        "headers": {"user-agent": f"Amanu/{__version__}", **headers},
        "auth": auth,
        "timeout": httpx2.Timeout(CONNECT_SECONDS, read=None),  # each call has a deadline of its own
    }


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Reaches the host of one address, and public ones by https; see above. Blocking to make: it reads certificates."""

    def __init__(self, address: str) -> None:
        own = httpx2.URL(address)
        self._own = origin(own)
        self._tls = tls_for("https:")
        self._inner = httpx2.AsyncHTTPTransport(verify=self._tls, proxy=proxy_for(address))
        self._others: dict[str, httpx2.AsyncHTTPTransport] = {}
        self._is_local: bool | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if origin(request.url) == self._own:
            return await self._inner.handle_async_request(request)
        if await self._own_is_local():
            return await self._other("").handle_async_request(request)
        host = request.url.host
        if request.url.scheme != "https":
            raise httpx2.ConnectError(f"{host} is not contacted, because its address does not begin with https.")
        if proxy := proxy_for(str(request.url)):
            return await self._other(proxy).handle_async_request(request)
        addresses = await _resolve(host, request.url.port or 443)
        if not addresses or not all(map(is_public, addresses)):
            raise httpx2.ConnectError(f"{host} is not contacted: it is not on the public internet, but the server is.")
        # To the address that was checked: another look-up could give another one.
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=addresses[0]),
            headers=request.headers,  # with the host's name
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._other("").handle_async_request(pinned)

    async def aclose(self) -> None:
        for transport in (self._inner, *self._others.values()):
            await transport.aclose()

    async def _own_is_local(self) -> bool:
        if self._is_local is None:
            _, host, port = self._own
            self._is_local = not all(map(is_public, await _resolve(host, port or 443)))
        return self._is_local

    def _other(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        if proxy not in self._others:
            # Nothing is kept open: two hosts can have one address, and each must show its own certificate.
            limits = httpx2.Limits(max_keepalive_connections=0)
            self._others[proxy] = httpx2.AsyncHTTPTransport(verify=self._tls, proxy=proxy or None, limits=limits)
        return self._others[proxy]


class _Wrapped(Stream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _Outgoing(_Wrapped):
    def __init__(self, inner: Any, traffic: Traffic) -> None:
        super().__init__(inner)
        self._traffic = traffic

    async def send(self, item: SessionMessage, /) -> None:
        self._traffic.outgoing(item.message)
        await self._inner.send(item)


class _Incoming(_Wrapped, IncomingStream):
    def __init__(self, inner: Any, traffic: Traffic, link: Link) -> None:
        super().__init__(inner)
        self._traffic = traffic
        self._link = link

    async def receive(self) -> SessionMessage | Exception:
        try:
            return self._repaired(await self._inner.receive())
        except anyio.EndOfStream:
            self._link.end("It closed the connection.")
            raise

    def _repaired(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage):
            self._traffic.repair(item.message)
            message = item.message
            if isinstance(message, JSONRPCError) and message.error.message == "Session terminated":
                # As the SDK puts it when the server was started anew: only a new connection helps.
                self._link.end("It does not know this connection any more.")
        return item


def origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _resolve(host: str, port: int) -> list[str]:
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(address[4][0]) for address in addresses))
