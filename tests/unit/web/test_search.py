"""Search services of the user's own choice, each as it documents its answers."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from amanu.config import WebSettings
from amanu.web.errors import WebError
from amanu.web.search import Engine, SearchService
from support.hostile_site import Answer, HostileSite, send

KEY = "tvly-0123456789abcdef"
PAGES = [{"title": "One", "url": "https://one.example/", "content": "It digs."}, {"url": "https://two.example/"}, {}, 7]
BRAVE = {"web": {"results": [{"title": "One", "url": "https://one.example/", "description": "It digs."}]}}


def answer(body: Any, status: str = "200 OK") -> Answer:
    return send(body if isinstance(body, str) else json.dumps(body), "application/json", status)


@asynccontextmanager
async def service(
    engine: Engine, answers: Answer, key: str | None = KEY
) -> AsyncGenerator[tuple[HostileSite, SearchService]]:
    site = HostileSite({"/search": answers, "/res/v1/web/search": answers}, {})
    await site.start()
    try:
        yield site, SearchService(engine, f"http://127.0.0.1:{site.port}/", lambda: key)
    finally:
        await site.stop()


@pytest.mark.parametrize(
    ("engine", "body", "found", "asked"),
    [
        ("searxng", {"results": PAGES}, 2, "GET /search?q=what+digs&format=json"),
        ("brave", BRAVE, 1, "GET /res/v1/web/search?q=what+digs&count=10"),
        ("tavily", {"results": PAGES}, 2, "POST /search"),
        ("searxng", {"results": []}, 0, ""),
        ("searxng", {"results": {"a": 1}}, 0, ""),
        ("searxng", [], 0, ""),
    ],
)
async def test_answers(engine: Engine, body: Any, found: int, asked: str) -> None:
    async with service(engine, answer(body)) as (site, search):
        sources = (await search.search("what digs")).sources
    assert len(sources) == found
    if sources:
        assert (sources[0].title, sources[0].url, sources[0].quote) == ("One", "https://one.example/", "It digs.")
    (head,) = site.requests
    assert head.startswith(asked)
    assert (KEY in head) == (engine != "searxng")


@pytest.mark.parametrize(
    ("engine", "answers", "key", "kind", "says"),
    [
        ("brave", answer({}), None, "denied", "amanu auth set brave"),
        ("tavily", answer({}, "401 Unauthorized"), KEY, "status", "TAVILY_API_KEY"),
        ("searxng", answer({}, "403 Forbidden"), None, "status", "json format"),
        ("searxng", answer("<html>"), None, "broken", "json format"),
        ("searxng", answer({}, "500 Oops"), None, "status", "500"),
        ("brave", answer({}, "429 Too Many Requests"), KEY, "status", "429"),
    ],
)
async def test_failures_say_what_to_do(engine: Engine, answers: Answer, key: str | None, kind: str, says: str) -> None:
    async with service(engine, answers, key) as (_, search):
        with pytest.raises(WebError, match=says) as caught:
            await search.search("what digs")
    assert caught.value.kind == kind
    assert KEY not in f"{caught.value}{search!r}"


@pytest.mark.parametrize(
    ("engine", "url", "kind"),
    [
        ("searxng", "http://127.0.0.1:1", "unreachable"),
        ("searxng", "ftp://x", "badUrl"),
        ("brave", "http://example.com", "denied"),
    ],
)
async def test_addresses(engine: Engine, url: str, kind: str) -> None:
    with pytest.raises(WebError) as caught:
        await SearchService(engine, url, lambda: KEY).search("what digs")
    assert caught.value.kind == kind


def test_a_searxng_needs_its_address() -> None:
    with pytest.raises(ValueError, match="search_url"):
        WebSettings(search="searxng")
