"""HTTP clients for the ways to a model: connections kept open, no silence limit (`retry.py` has that), no
redirects (the key goes to the address it was given for), no proxy to ourselves. All they say and hear passes
`transport.py`."""

import asyncio
import ssl
import urllib.request
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

    from amanu.models.transport import Transport

    inner = httpx2.AsyncHTTPTransport(verify=tls, proxy=_proxy(base_url))
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    return httpx2.AsyncClient(transport=Transport(inner), timeout=timeout, trust_env=False, **more)


def tls_for(base_url: str) -> ssl.SSLContext:
    """The system's trust, read once per call (45 ms); an empty one, never used, for plain `http:`."""
    import httpx2

    secure = urlsplit(base_url).scheme != "http"
    return httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy(base_url: str) -> str | None:
    """The proxy the environment names for that address; httpx2 asks for it only where it makes the transport."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    if host in ("127.0.0.1", "::1", "localhost") or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


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
