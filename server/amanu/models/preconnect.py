# ruff: noqa: ASYNC109  (parameters are as httpcore2 names them)
"""A connection to a service, opened before there is anything to ask of it, so that the next prompt need not wait for
it. No request is sent; without such a connection, a request opens its own as usual."""

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore2
from httpcore2 import AsyncNetworkStream

AGAIN_SECONDS = 60.0
"""Services and the routers on the way close what is idle after a minute at the earliest."""
_BACKEND = "_network_backend"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Destination:
    """Where a service is."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    """None: plain HTTP."""
    timeout: float
    """Seconds to wait for a connection."""
    options: Sequence[tuple[int, int, int]]
    """The socket's."""


class PreconnectingNetwork(httpcore2.AsyncNetworkBackend):
    """Connects for a pool. The pool's next connection is the one that `open` opened."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, destination: Destination) -> None:
        """Replaces the network backend of the pool, for which httpcore2 has no public way."""
        self._pool = pool
        self._inner: httpcore2.AsyncNetworkBackend = getattr(pool, _BACKEND)
        setattr(pool, _BACKEND, self)
        self._to = destination
        self._opened: _Opened | None = None
        self._opened_at = -math.inf

    def open(self) -> None:
        """Begin to open a connection, unless there is one or one was opened within `AGAIN_SECONDS`. Nobody hears of a
        failure."""
        now = time.monotonic()
        is_waiting = self._opened is not None and not self._opened.gone
        if is_waiting or now - self._opened_at < AGAIN_SECONDS:
            return
        if all(connection.has_expired() for connection in self._pool.connections):
            self._opened_at = now
            self._opened = _Opened(self._connect)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        if (host, port) == (self._to.host, self._to.port) and self._opened is not None:
            opened, self._opened = self._opened, None
            if (stream := await opened.take()) is not None:
                return stream
        return await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _connect(self) -> AsyncNetworkStream:
        stream = await self._inner.connect_tcp(
            self._to.host, self._to.port, timeout=self._to.timeout, socket_options=self._to.options
        )
        if self._to.tls is None:
            return stream
        try:
            self._to.tls.set_alpn_protocols(["http/1.1"])  # as the pool does before each of its own
            return _Secured(await stream.start_tls(self._to.tls, self._to.host, self._to.timeout))
        except BaseException:
            await stream.aclose()
            raise


def is_known(pool: object) -> bool:
    """Whether the pool has the private attribute that `PreconnectingNetwork` replaces."""
    return isinstance(pool, httpcore2.AsyncConnectionPool) and hasattr(pool, _BACKEND)


class _Opened:
    """A connection on which nothing was asked yet."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncNetworkStream]]) -> None:
        self._stream: AsyncNetworkStream | None = None
        self._settled = asyncio.Event()
        """It is open, or will not be."""
        self._holding = asyncio.create_task(self._hold(connect))

    @property
    def gone(self) -> bool:
        """It could not be opened, or was closed again."""
        return self._settled.is_set() and self._stream is None

    async def take(self) -> AsyncNetworkStream | None:
        """The connection, which is the caller's from here on; None when it is gone."""
        try:
            await self._settled.wait()
            self._holding.cancel()
            await asyncio.wait([self._holding])
        except asyncio.CancelledError:
            await self.close()
            raise
        stream, self._stream = self._stream, None
        return stream

    async def close(self) -> None:
        self._holding.cancel()
        await asyncio.wait([self._holding])
        if self._stream is not None:
            await self._stream.aclose()

    async def _hold(self, connect: Callable[[], Awaitable[AsyncNetworkStream]]) -> None:
        """Until it is taken. A service that has something to say before it was asked is about to close it; what TLS
        itself has to say after its handshake is read here, too."""
        try:
            self._stream = await connect()
            self._settled.set()
            await self._stream.read(1)
        except Exception as error:  # the first request will meet it, and tell
            log.debug("No connection ahead of the first request: %r", error)
        self._settled.set()
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()


class _Secured(AsyncNetworkStream):
    """A connection whose TLS the pool finds begun."""

    def __init__(self, stream: AsyncNetworkStream) -> None:
        self._stream = stream

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        return self._stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()
