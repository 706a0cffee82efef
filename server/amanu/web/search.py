"""Search services that the user can name where a model's own service has no search: SearXNG, Brave, Tavily."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from amanu.core.tool import SearchAnswer
from amanu.models.http import http_client, tls_for
from amanu.web.errors import WebError
from amanu_protocol.items import Source

Engine = Literal["searxng", "brave", "tavily"]
SEARCH_KEYS: Mapping[str, str] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
"""Services that need a key → the environment variable that may hold it."""

_ADDRESSES = {"brave": "https://api.search.brave.com", "tavily": "https://api.tavily.com"}
_SECONDS = 20.0
_MAX_RESULTS = 10
_MAX_QUOTE = 500
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class SearchService:
    """One of the services. `key` is asked for at each search."""

    def __init__(self, engine: Engine, url: str | None, key: Callable[[], str | None]) -> None:
        self._engine: Engine = engine
        self._base_url = (url or _ADDRESSES.get(engine, "")).rstrip("/")
        self._key = key

    def __repr__(self) -> str:
        return f"SearchService({self._engine!r}, {self._base_url!r})"

    async def search(self, query: str) -> SearchAnswer:
        """The pages it finds. Raises `WebError`, which never holds the key."""
        import httpx2

        key = self._key()
        self._check(key)
        method, path, options = self._request(query, key or "")
        try:
            async with http_client(self._base_url, tls_for(self._base_url), follow_redirects=False) as client:
                response = await client.request(
                    method, f"{self._base_url}{path}", timeout=httpx2.Timeout(_SECONDS), **options
                )
            status, answer = response.status_code, response.json() if response.status_code == 200 else None
        except httpx2.TimeoutException:
            raise WebError("timeout", f"{self._engine} did not answer within {_SECONDS:g} seconds.") from None
        except httpx2.HTTPError as error:
            raise WebError("unreachable", f"{self._engine} cannot be reached: {type(error).__name__}.") from None
        except ValueError:
            raise WebError(
                "broken", f"{self._engine} sent no JSON. A SearXNG must have the json format enabled."
            ) from None
        if status in (401, 403):
            raise WebError("status", f"{self._engine} refused the request (status {status}). {self._hint()}")
        if status != 200:
            raise WebError("status", f"{self._engine} answered with status {status}. Try again later.")
        return SearchAnswer("", list(_sources(answer))[:_MAX_RESULTS])

    def _check(self, key: str | None) -> None:
        address = urlsplit(self._base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise WebError(
                "badUrl", f"[web] search_url in the user's config.toml must be an http(s) URL for {self._engine}."
            )
        if self._engine in SEARCH_KEYS and not key:
            raise WebError("denied", f"There is no key for {self._engine}. {self._hint()}")
        if key and address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise WebError(
                "denied", f"The key of {self._engine} is never sent unencrypted: search_url must be https://…."
            )

    def _hint(self) -> str:
        if self._engine == "searxng":
            return "The user must enable the json format in its settings.yml."
        return f"The user can set {SEARCH_KEYS[self._engine]}, or run: amanu auth set {self._engine}"

    def _request(self, query: str, key: str) -> tuple[str, str, dict[str, Any]]:
        match self._engine:
            case "searxng":
                return "GET", "/search", {"params": {"q": query, "format": "json"}}
            case "brave":
                headers = {"x-subscription-token": key, "accept": "application/json"}
                return "GET", "/res/v1/web/search", {"params": {"q": query, "count": _MAX_RESULTS}, "headers": headers}
            case "tavily":
                body = {"query": query, "max_results": _MAX_RESULTS}
                return "POST", "/search", {"json": body, "headers": {"authorization": f"Bearer {key}"}}


def _sources(answer: Any) -> "Sequence[Source]":
    """The pages of an answer: Brave's are under `web`; what is not as documented is skipped."""
    outer = _object(answer)
    results = _object(outer.get("web")).get("results") or outer.get("results")
    pages = map(_object, cast("list[Any]", results) if isinstance(results, list) else [])
    return [
        Source(
            title=str(page.get("title") or page["url"])[:300],
            url=page["url"],
            quote=str(page.get("content") or page.get("description") or "")[:_MAX_QUOTE],
        )
        for page in pages
        if isinstance(page.get("url"), str)
    ]


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
