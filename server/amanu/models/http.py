"""HTTP clients for the ways to a model: connections kept open, no silence limit (`retry.py` has that), no
redirects (the key goes to the address it was given for), no proxy to ourselves. All they say and hear passes
`transport.py`."""

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from amanu.models.limits import KEPT

if TYPE_CHECKING:
    from amanu.models.transport import HttpClient

CONNECT_TIMEOUT = 15.0
"""Seconds to wait for a connection."""

T = TypeVar("T")


def http_client(base_url: str, tls: ssl.SSLContext, **options: Any) -> "HttpClient":
    """A client for one service. `options` as `httpx2.AsyncClient` takes it."""
    import httpx2

    from amanu.models.preconnect import Destination, PreconnectingNetwork, is_known
    from amanu.models.transport import HttpClient, Transport

    proxy = proxy_for(base_url)
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT)
    inner = httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy, limits=limits, socket_options=_OPTIONS)
    ahead = None
    pool: Any = getattr(inner, "_pool", None)
    if proxy is None and is_known(pool):
        url = httpx2.URL(base_url)
        secure = url.scheme == "https"
        port = url.port or (443 if secure else 80)
        destination = Destination(url.raw_host.decode(), port, tls if secure else None, CONNECT_TIMEOUT, _OPTIONS)
        ahead = PreconnectingNetwork(pool, destination)
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT)
    return HttpClient(Transport(inner, ahead), timeout=timeout, trust_env=False, **options)


def tls_for(base_url: str) -> ssl.SSLContext:
    """The system's trust, read once per call (45 ms); an empty one, never used, for plain `http:`."""
    import httpx2

    secure = urlsplit(base_url).scheme != "http"
    return httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_for(base_url: str) -> str | None:
    """The proxy the environment names for that address; httpx2 asks for it only where it makes the transport."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    if host in ("127.0.0.1", "::1", "localhost") or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _options() -> tuple[tuple[int, int, int], ...]:
    """A kept connection is asked after each half minute, so that no router forgets it; and one that leads nowhere any
    more (the machine slept, the network is another) fails in half a minute, not when the idle watchdog ends it."""
    settings = {
        "TCP_KEEPIDLE": 30,
        "TCP_KEEPALIVE": 30,
        "TCP_KEEPINTVL": 10,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 30_000,
    }
    tcp = ((getattr(socket, name, None), value) for name, value in settings.items())  # macOS has another name for one
    return (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *((socket.IPPROTO_TCP, option, value) for option, value in tcp if option is not None),
    )


_OPTIONS = _options()


class LazyValue(Generic[T]):
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
