"""HTTP clients for the ways to a model: connections kept open, no silence limit (`retry.py` has that), no
redirects (the key goes to the address it was given for), no proxy to ourselves."""

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 15.0
"""Seconds to wait for a connection."""

T = TypeVar("T")


def http_client(base_url: str, tls: ssl.SSLContext, **more: Any) -> "httpx2.AsyncClient":
    """A client for one service. `more` as `httpx2.AsyncClient` takes it."""
    import httpx2

    from amanu.models.pieces import in_pieces

    hooks: dict[str, list[Any]] = more.pop("event_hooks", {})
    hooks = {**hooks, "request": [*hooks.get("request", ()), in_pieces]}
    here = urlsplit(base_url).hostname in ("127.0.0.1", "::1", "localhost")
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    return httpx2.AsyncClient(verify=tls, timeout=timeout, trust_env=not here, event_hooks=hooks, **more)


def tls_for(base_url: str) -> ssl.SSLContext:
    """The system's trust, read once per call (45 ms); an empty one, never used, for plain `http:`."""
    import httpx2

    secure = urlsplit(base_url).scheme != "http"
    return httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Once(Generic[T]):
    """Something slow to make, made in a thread when first asked for. Who asks may be cancelled without loss."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._making: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """What `make` returned; raises what it raised, and tries anew the next time."""
        if self._making is None or (self._making.done() and self._making.exception() is not None):
            self._making = asyncio.create_task(asyncio.to_thread(self._make))
        return await asyncio.shield(self._making)

    @property
    def made(self) -> T | None:
        """What there is, without making it."""
        making = self._making
        return making.result() if making is not None and making.done() and not making.exception() else None
