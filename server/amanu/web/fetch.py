"""Fetches web pages, such that no page, name or redirect leads anywhere that was not allowed.

A name is resolved once for each request; every address it has must be public, and the connection goes to one of those
very addresses. A redirect is a new URL, with all the checks of one; it is followed only within its host, or where the
caller says so.
"""

import asyncio
import codecs
import contextlib
import json
import logging
import os
import re
import socket
import ssl
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from amanu import __version__
from amanu.models.http import LazyValue, proxy_for
from amanu.system.pdf_text import PdfError, PdfText, pdf_text
from amanu.system.tasks import kill, start_process
from amanu.web.addresses import is_public
from amanu.web.body import read_body
from amanu.web.errors import WebError
from amanu.web.page_text import MAX_CHARACTERS, PageText, decode, plain
from amanu.web.urls import WebUrl, parse_url

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host. Raises `OSError`."""

_REDIRECTS = (301, 302, 303, 307, 308)
_ERROR_BODY = 64 << 10
_ERROR_CHARACTERS = 300
_AT_ONCE = 6
"""Pages fetched at the same time: a reply may ask for many, and each takes a process and megabytes of memory."""
_MAX_ADDRESSES = 3
"""Addresses tried of a host that has several."""
_READ_AS_IS = re.compile(
    r"text/[\w.+-]+|application/"
    r"(?:(?:[\w.+-]+\+)?(?:json|xml|yaml)|x-yaml|toml|javascript|ecmascript|x-ndjson|x-sh|sql|graphql)",
    re.ASCII,
)
"""Names only: the type is shown outside of what frames the page's own words."""
_TYPE_CHARACTERS = 100
_HTML = ("text/html", "application/xhtml+xml")
_UNSAID = ("", "application/octet-stream")
"""Types that say nothing."""
_HTML_START = re.compile(rb"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)


MAX_PAGES = 200
"""Of a PDF document."""


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may take."""

    connect: float = 10.0
    seconds: float = 30.0
    """In all, redirects included."""
    reading: float = 25.0
    """Seconds to make text of the page."""
    size: int = 10 << 20
    """Bytes after decompression. Longer text is cut off; a longer PDF is refused."""
    redirects: int = 5
    cached_seconds: float = 900.0
    cached_characters: int = 20_000_000
    """Of all pages that are kept."""


@dataclass(frozen=True)
class Page:
    """A page as text."""

    url: str
    """Where it was in the end."""
    status: int
    media_type: str
    size: int
    """Bytes."""
    title: str
    text: str
    cut: bool = False
    """The page is longer than what was read of it."""
    fetched_at: float = 0.0
    """Monotonic."""
    note: str = ""
    """How it was reached, if that is worth saying."""


@dataclass(frozen=True)
class Redirected:
    """The page is on another host."""

    url: str
    to: WebUrl


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """As the system resolves it."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in addresses))


def _transport(tls: ssl.SSLContext, proxy: str | None) -> "httpx2.AsyncBaseTransport":
    import httpx2

    return httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy)


class PageFetcher:
    """Fetches pages and keeps the latest. One serves all sessions of a process."""

    def __init__(
        self,
        allow_hosts: Collection[str] = (),
        *,
        limits: FetchLimits | None = None,
        resolve: Resolve = resolve_host,
        transport: "Callable[[ssl.SSLContext, str | None], httpx2.AsyncBaseTransport]" = _transport,
    ) -> None:
        """`allow_hosts`: as `parse_url` takes them. `transport`: makes what connects, from TLS trust and a proxy."""
        self._allow_hosts = frozenset(host.lower() for host in allow_hosts)
        self._limits = limits or FetchLimits()
        self._resolve = resolve
        self._transport = transport
        self._tls = LazyValue(_trust)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._pages: OrderedDict[str, Page] = OrderedDict()

    def parse(self, text: str) -> WebUrl:
        """The URL of a text. Raises `WebError` (badUrl, denied)."""
        return parse_url(text, self._allow_hosts)

    async def fetch(self, url: WebUrl, may_follow: Callable[[WebUrl], bool] = lambda url: False) -> Page | Redirected:
        """The page at the URL, from the last minutes if it was fetched then. `may_follow` says whether a redirect may
        lead to that URL of another host. Raises `WebError`."""
        if (cached_page := self._cached_page(str(url))) is not None:
            return cached_page
        async with self._at_once:
            try:
                async with asyncio.timeout(self._limits.seconds):
                    answer = await self._follow(url, may_follow)
            except TimeoutError:
                message = f"{url.authority} did not send the page within {self._limits.seconds:g} seconds."
                raise WebError("timeout", message) from None
            if isinstance(answer, Redirected):
                return answer
            page = await self._read(answer)
        if not _same_host(answer.url, url):  # who asks for the first URL again may not be allowed to follow
            url = answer.url
        if not url.local:  # what is being built changes all the time
            self._keep(str(url), page)
        return page

    async def _follow(self, url: WebUrl, may_follow: Callable[[WebUrl], bool]) -> "_Answer | Redirected":
        for _ in range(self._limits.redirects + 1):
            answer = await self._get(url)
            if answer.location is None:
                return answer
            target = self._redirect(url, answer.location)
            if not _same_host(target, url) and not may_follow(target):
                return Redirected(str(url), target)
            url = target
        raise WebError("redirects", f"{url.authority} redirects more than {self._limits.redirects} times.")

    def _redirect(self, url: WebUrl, location: str) -> WebUrl:
        """Where a redirect leads. Raises `WebError` (badUrl, denied)."""
        try:
            target = self.parse(urljoin(str(url), location))
        except ValueError:
            raise WebError("badUrl", f"{url.authority} redirects to something that is not a URL.") from None
        except WebError as error:
            raise WebError(error.kind, f"{url.authority} redirects to another place: {error}") from None
        if target.local and not url.local:
            raise WebError(
                "denied",
                f"{url.authority} redirects to {target.authority}, which is on the user's own network. A public "
                "page may not redirect there.",
            )
        return target

    async def _get(self, url: WebUrl) -> "_Answer":
        """One request. Raises `WebError`."""
        import httpx2

        tls = await self._tls.get()
        proxy = None if url.local else proxy_for(str(url))
        addresses = [url.host] if proxy is not None else await self._addresses(url)
        failure: Exception | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                async with httpx2.AsyncClient(
                    transport=self._transport(tls, proxy),
                    timeout=httpx2.Timeout(None, connect=self._limits.connect),
                    follow_redirects=False,
                    trust_env=False,
                ) as client:
                    answer = await self._ask(client, url, address)
                    return (
                        replace(answer, note="fetched through the proxy, which resolved the name") if proxy else answer
                    )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, httpx2.CookieConflict) as error:
                log.info("fetching from %s failed: %r", url.authority, error)
                raise WebError("broken", f"{url.authority} broke off its response: {_cause(error)}.") from None
        message = f"Could not connect to {url.authority}: {_cause(failure)}."
        raise WebError("unreachable", message)

    async def _addresses(self, url: WebUrl) -> Sequence[str]:
        """The addresses of the host, all of them checked. Raises `WebError` (unreachable, denied)."""
        addresses: Sequence[str] = ()
        with contextlib.suppress(OSError, UnicodeError):
            addresses = await self._resolve(url.host, url.port)
        if not addresses:
            raise WebError("unreachable", f"There is no host named {url.host}.")
        if not url.local and not all(map(is_public, addresses)):
            raise WebError("denied", f"{url.host} is not fetched: its name resolves to a private address.")
        return addresses

    async def _ask(self, client: "httpx2.AsyncClient", url: WebUrl, address: str) -> "_Answer":
        shown = f"[{address}]" if ":" in address else address
        headers = {
            "host": url.authority,
            "user-agent": f"Amanu/{__version__} (AI pair programmer, at its user's request)",
            "accept": "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, application/pdf;q=0.7, "
            "*/*;q=0.1",
            "accept-encoding": "gzip, deflate",
        }
        async with client.stream(
            "GET",
            f"{url.scheme}://{shown}:{url.port}{url.target}",
            headers=headers,
            extensions={"sni_hostname": url.host},
        ) as response:
            location = response.headers.get("location")
            if response.status_code in _REDIRECTS and location is not None:
                return _Answer(url, response.status_code, "", "", b"", location=location)
            media_type, charset = _content_type(response.headers.get("content-type", ""))
            is_error = response.status_code >= 400
            limit = _ERROR_BODY if is_error else self._limits.size
            declared = response.headers.get("content-length", "")
            if not is_error and not _may_be_text(media_type):
                raise _no_text(url, media_type, declared)
            if media_type == "application/pdf" and declared.isdecimal() and int(declared[:20]) > limit:
                raise _too_big(url, limit)
            data, cut = await read_body(response.aiter_raw(), response.headers.get("content-encoding", ""), limit)
            return _Answer(url, response.status_code, media_type, charset, data, cut)

    async def _read(self, answer: "_Answer") -> Page:
        """The page as text. Raises `WebError` for an error status, and for what is no text."""
        url, data = answer.url, answer.data
        media_type = _sniffed(data) if answer.media_type in _UNSAID else answer.media_type
        if answer.status >= 400:
            error_text = await self._error_text(answer, media_type)
            raise WebError("status", f"{url.authority} answered with status {answer.status}.{error_text}")
        if media_type == "application/pdf":
            if answer.cut:
                raise _too_big(url, self._limits.size)
            read = await self._read_pdf(answer)
        elif media_type in _HTML:
            read = await self._read_apart(answer)
        elif _READ_AS_IS.fullmatch(media_type) and not _is_binary(data, answer.charset):
            read = await asyncio.to_thread(_as_is, data, answer.charset)
        else:
            raise _no_text(url, media_type, str(len(data)))
        return Page(
            str(url),
            answer.status,
            media_type,
            len(data),
            read.title,
            read.text,
            answer.cut or read.cut,
            time.monotonic(),
            answer.note,
        )

    async def _error_text(self, answer: "_Answer", media_type: str) -> str:
        """The beginning of what comes with an error status."""
        try:
            if media_type in _HTML:
                text = (await self._read_apart(answer)).text
            elif _READ_AS_IS.fullmatch(media_type):
                text = _as_is(answer.data, answer.charset).text
            else:
                return ""
        except WebError:
            return ""
        text = " ".join(text.split())
        return f" It says: {text[:_ERROR_CHARACTERS]!r}" if text else ""

    async def _read_pdf(self, answer: "_Answer") -> PageText:
        """The text of a PDF document. Raises `WebError`."""
        try:
            read = await pdf_text(answer.data, 1, MAX_PAGES, seconds=self._limits.reading)
        except PdfError as error:
            raise WebError("broken", f"The page from {answer.url.authority} cannot be read: {error}") from None
        return await asyncio.to_thread(_pdf, read)

    async def _read_apart(self, answer: "_Answer") -> PageText:
        """Have the page read by a process of its own. Raises `WebError`."""
        about = {"charset": answer.charset, "url": str(answer.url)}
        process = await start_process(
            kill,
            *(sys.executable, "-P", "-m", "amanu.web.page_text"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._limits.reading):
                output, _ = await process.communicate(json.dumps(about).encode() + b"\n" + answer.data)
            result: dict[str, Any] = json.loads(output)
        except (TimeoutError, ValueError):
            message = f"The page from {answer.url.authority} took too much time or memory to read."
            raise WebError("broken", message) from None
        finally:
            if process.returncode is None:
                await kill(process)
        if "error" in result:
            raise WebError("broken", f"The page from {answer.url.authority} cannot be read: {result['error']}")
        return PageText(result["title"], result["text"], result["cut"])

    def _cached_page(self, url: str) -> Page | None:
        page = self._pages.get(url)
        if page is None or time.monotonic() - page.fetched_at > self._limits.cached_seconds:
            self._pages.pop(url, None)
            return None
        self._pages.move_to_end(url)
        return page

    def _keep(self, url: str, page: Page) -> None:
        self._pages[url] = page
        while sum(len(cached_page.text) for cached_page in self._pages.values()) > self._limits.cached_characters:
            self._pages.popitem(last=False)


@dataclass(frozen=True)
class _Answer:
    """What a server sent."""

    url: WebUrl
    status: int
    media_type: str
    charset: str
    data: bytes
    cut: bool = False
    location: str | None = None
    """Where it redirects to."""
    note: str = ""


def _same_host(one: WebUrl, other: WebUrl) -> bool:
    return (one.host, one.port) == (other.host, other.port)


def _trust() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def _as_is(data: bytes, charset: str) -> PageText:
    return PageText("", plain(decode(data, charset, is_html=False)))


def _pdf(read: PdfText) -> PageText:
    if not any(read.pages):
        return PageText("", "(The PDF document has no text; it may be scanned.)")
    pages = [f"[page {number} of {read.page_count}]\n{text}" for number, text in enumerate(read.pages, 1)]
    text = "\n\n".join(pages)
    cut = len(read.pages) < read.page_count or len(text) > MAX_CHARACTERS
    return PageText("", plain(text[:MAX_CHARACTERS]), cut)


def _content_type(header: str) -> tuple[str, str]:
    """(Media type in lower case, charset); "" for what is not said."""
    media_type, _, parameters = header[:500].partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return media_type.strip().lower()[:_TYPE_CHARACTERS], charset[1] if charset else ""


def _may_be_text(media_type: str) -> bool:
    readable = media_type in ("application/pdf", *_UNSAID, *_HTML)
    return readable or _READ_AS_IS.fullmatch(media_type) is not None


def _sniffed(data: bytes) -> str:
    """The type of what came without one."""
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    start = data[:1024].lstrip()
    while start.startswith(b"<!--"):
        start = start[4:].partition(b"-->")[2].lstrip()
    return "text/html" if _HTML_START.match(start) else "text/plain"


def _is_binary(data: bytes, charset: str) -> bool:
    wide = charset.lower().startswith("utf-16") or data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return not wide and b"\0" in data[:1024]


def _no_text(url: WebUrl, media_type: str, size: str) -> WebError:
    about = f"{media_type[:60] or 'binary data'}, {size[:20]} bytes" if size else media_type[:60]
    return WebError("type", f"{url.authority} sent nothing that can be read as text ({about}).")


def _too_big(url: WebUrl, limit: int) -> WebError:
    return WebError("tooBig", f"The PDF from {url.authority} is bigger than {limit >> 20} MB.")


def _cause(error: Exception | None) -> str:
    return (str(error) or type(error).__name__)[:200]
