"""Fetching: what is asked, what is followed, what is kept."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from amanu.system.pdf_text import PdfText
from amanu.web import fetch
from amanu.web.errors import WebError
from amanu.web.fetch import MAX_PAGES, FetchLimits, Page, PageFetcher, Redirected
from amanu.web.page_text import plain
from support.hostile_site import PUBLIC, HostileSite, redirect, running_site, send

PLACE = "https://site.example"


async def test_what_is_asked_says_who_asks_and_nothing_else() -> None:
    async with running_site({"/a": send("<title>T</title><p>hello")}) as (site, fetcher):
        page = await fetcher.fetch(fetcher.parse(f"{PLACE}/a?b=c#d"))
    (head,) = site.requests
    first, *fields = head.lower().strip().split("\r\n")
    assert first == "get /a?b=c http/1.1"
    names = sorted(field.partition(":")[0] for field in fields)
    assert names == ["accept", "accept-encoding", "connection", "host", "user-agent"]
    assert "amanu" in head.lower()
    assert isinstance(page, Page)
    assert (page.title, page.text, page.status, page.media_type) == ("T", "hello", 200, "text/html")


@pytest.mark.parametrize(
    ("answers", "may_follow", "expected"),
    [
        ({"/": redirect("/b"), "/b": send("<p>b")}, False, "b"),
        ({"/": redirect("http://site.example/b"), "/b": send("<p>b")}, False, "b"),
        ({"/": redirect("https://other.example/b"), "/b": send("<p>b")}, True, "b"),
        ({"/": redirect("https://other.example/b"), "/b": send("<p>b")}, False, "https://other.example/b"),
    ],
)
async def test_redirects(answers: dict[str, object], may_follow: bool, expected: str) -> None:
    async with running_site(answers) as (_, fetcher):  # pyright: ignore[reportArgumentType]
        got = await fetcher.fetch(fetcher.parse(PLACE), lambda url: may_follow)
    assert (str(got.to) if isinstance(got, Redirected) else got.text) == expected


async def test_a_page_is_kept_for_a_while() -> None:
    async with running_site({"/": send("<p>hello"), "/b": send("b" * 50)}, cached_characters=40) as (site, fetcher):
        for url in (PLACE, PLACE, f"{PLACE}/b", PLACE):  # the second page takes all the room there is
            await fetcher.fetch(fetcher.parse(url))
    assert [head.split()[1] for head in site.requests] == ["/", "/b", "/"]


async def test_only_so_many_pages_are_fetched_at_once() -> None:
    open_requests, most = 0, 0

    async def slow(writer: asyncio.StreamWriter) -> None:
        nonlocal open_requests, most
        open_requests += 1
        most = max(most, open_requests)
        await asyncio.sleep(0.02)
        open_requests -= 1
        await send("hello", "text/plain")(writer)

    async with running_site({"/": slow}) as (site, fetcher):
        await asyncio.gather(*(fetcher.fetch(fetcher.parse(f"{PLACE}/?{number}")) for number in range(20)))
    assert len(site.requests) == 20
    assert most <= 6


@pytest.mark.parametrize(
    ("location", "again", "asked"),
    [
        ("/b", PLACE, ["/", "/b"]),
        ("https://other.example/b", PLACE, ["/", "/b", "/"]),
        ("https://other.example/b", "https://other.example/b", ["/", "/b"]),
    ],
)
async def test_a_page_of_another_host_is_kept_as_that_hosts(location: str, again: str, asked: list[str]) -> None:
    """Whoever asks for the first URL again is asked again whether to follow."""
    async with running_site({"/": redirect(location), "/b": send("<p>b")}) as (site, fetcher):
        await fetcher.fetch(fetcher.parse(PLACE), lambda url: True)
        got = await fetcher.fetch(fetcher.parse(again), lambda url: False)
    assert [head.split()[1] for head in site.requests] == asked
    assert isinstance(got, Redirected) == (asked[2:] == ["/"])


async def test_a_page_is_not_kept_for_long() -> None:
    async with running_site({"/": send("<p>hello")}, cached_seconds=0.0) as (site, fetcher):
        for _ in range(2):
            await fetcher.fetch(fetcher.parse(PLACE))
    assert len(site.requests) == 2


async def test_an_address_that_does_not_answer_is_followed_by_the_next() -> None:
    class OneIsDown(httpx2.AsyncBaseTransport):
        def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
            self.inner = inner

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.host == "8.8.8.8":
                raise httpx2.ConnectError("refused")
            return await self.inner.handle_async_request(request)

        async def aclose(self) -> None:
            await self.inner.aclose()

    async with running_site({"/": send("<p>hello")}, {"site.example": [["8.8.8.8", PUBLIC]]}) as (site, _):
        fetcher = PageFetcher(resolve=site.resolve, transport=lambda tls, proxy: OneIsDown(site.transport(tls, proxy)))
        page = await fetcher.fetch(fetcher.parse(PLACE))
    assert isinstance(page, Page)
    assert site.connections == [PUBLIC]


@asynccontextmanager
async def dev_server() -> AsyncGenerator[HostileSite]:
    site = HostileSite({"/": send("<p>mine"), "/away": redirect("https://site.example/")}, {})
    await site.start()
    try:
        yield site
    finally:
        await site.stop()


async def test_a_server_of_the_users_own_is_asked_each_time() -> None:
    """With the real transport and names: nothing is played."""
    async with dev_server() as site:
        fetcher = PageFetcher()
        for host in ("127.0.0.1", "localhost"):
            page = await fetcher.fetch(fetcher.parse(f"http://{host}:{site.port}/"))
            assert isinstance(page, Page) and page.text == "mine"
        await fetcher.fetch(fetcher.parse(f"http://127.0.0.1:{site.port}/"))
        away = await fetcher.fetch(fetcher.parse(f"http://localhost:{site.port}/away"))
    assert isinstance(away, Redirected)
    assert len(site.requests) == 4


async def test_the_name_is_what_tls_asks_for() -> None:
    """The connection goes to an address, the certificate is checked for the name."""
    hello: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    place = f"wiki.example:{server.sockets[0].getsockname()[1]}"

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    fetcher = PageFetcher([place], resolve=resolve, limits=FetchLimits(seconds=10))
    with pytest.raises(WebError) as caught:
        await fetcher.fetch(fetcher.parse(f"https://{place}/"))
    server.close()
    assert caught.value.kind == "unreachable"
    assert b"wiki.example" in hello[0]


@pytest.mark.parametrize(("url", "kind"), [("https://site.example/", None), ("http://10.0.0.1/", "denied")])
async def test_through_a_proxy_the_proxy_resolves(url: str, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    async with running_site({"/": send("<p>hello")}, {"site.example": [["127.0.0.1"]]}) as (site, fetcher):
        try:
            page = await fetcher.fetch(fetcher.parse(url))
        except WebError as error:
            assert error.kind == kind
            return
    assert kind is None
    assert isinstance(page, Page) and "proxy" in page.note
    assert (site.look_ups, site.connections) == ([], ["site.example"])


async def test_the_text_of_a_pdf_is_limited_and_made_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def watched(text: str) -> str:
        threads.append(threading.current_thread())
        return plain(text)

    async def many(*arguments: object, seconds: float) -> PdfText:
        return PdfText(("a" * 40_000,) * MAX_PAGES, MAX_PAGES)

    monkeypatch.setattr(fetch, "plain", watched)
    monkeypatch.setattr(fetch, "pdf_text", many)
    async with running_site({"/": send("%PDF-1.4", "application/pdf")}) as (_, fetcher):
        page = await fetcher.fetch(fetcher.parse(PLACE))
    assert isinstance(page, Page)
    assert (len(page.text), page.cut) == (2_000_000, True)
    assert threading.main_thread() not in threads
