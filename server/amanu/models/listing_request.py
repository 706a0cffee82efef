"""Requests a vendor's list of models: one GET that takes ten seconds at most."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from amanu.core.model import ModelNotFound, ReplyTooLong, RequestRefused, Unreachable
from amanu.models.errors import mask, status_error, transport_error
from amanu.models.http import http_client, tls_for

if TYPE_CHECKING:
    from amanu.models.openai_endpoint import TokenSource
    from amanu.models.transport import HttpClient

TIMEOUT = 10.0
"""Seconds for the whole answer."""
MAX_ANSWER = 16 << 20
"""Bytes of an answer; OpenRouter's, the longest, is about one megabyte."""
_MAX_ERROR = 64 << 10


@dataclass(frozen=True)
class ListingAddress:
    """The address and the key with which a vendor is asked for its models."""

    vendor: str
    base_url: str
    key: "str | TokenSource" = field(repr=False)
    """"" for a list that is public."""

    @property
    def title(self) -> str:
        """The vendor's name for the user."""
        return _TITLES.get(self.vendor, self.vendor)

    @property
    def of_plan(self) -> bool:
        """Whether the vendor is asked what a ChatGPT plan includes."""
        return not isinstance(self.key, str)


_TITLES = {
    "anthropic": "Anthropic",
    "gemini": "Google Gemini",
    "google-openai": "Google (OpenAI-compatible)",
    "openai": "OpenAI",
    "openrouter": "OpenRouter",
}


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


def _anthropic(key: str) -> Mapping[str, str]:
    return dict((("x-api-key", key), ("anthropic-version", "2023-06-01")))


def _google(key: str) -> Mapping[str, str]:
    return dict((("x-goog-api-key", key),))


_PATHS: Mapping[str, tuple[str, Callable[[str], Mapping[str, str]]]] = {
    "anthropic": ("/v1/models?limit=1000", _anthropic),
    "gemini": ("/v1beta/models?pageSize=1000", _google),
    "openai": ("/models", _bearer),
    "openrouter": ("/models", _bearer),
}
"""Vendor → the path after its base URL, and the function that puts the key into headers."""
LISTING_VENDORS = tuple(_PATHS)
"""The vendors that can be asked."""


_KEY_PATHS = {"openrouter": "/key"}
"""Vendor → the path that only who has a key may see, where the list is public."""
CHECKED_VENDORS = (*LISTING_VENDORS, "google-openai")
"""The built-in vendors that can be asked about a key. One of the user's own endpoints is asked like OpenAI."""


async def request_listing(address: ListingAddress, *, checking: bool = False) -> bytes:
    """The body of the answer. `checking` asks for what needs the key. Raises `ModelError`, whose message never contains
    the key."""
    http = await asyncio.to_thread(_client, address)
    import httpx2

    key = address.key if isinstance(address.key, str) else await address.key.current()
    path, headers_for = _PATHS.get(address.vendor, _PATHS["openai"])
    if checking:
        path = _KEY_PATHS.get(address.vendor, path)
    url, headers = f"{address.base_url}{path}", dict(headers_for(key)) if key else {}
    started = False
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            http,
            http.stream("GET", url, headers=headers) as answer,
        ):
            started = True
            is_good = answer.status_code == 200
            body = await _read(answer, MAX_ANSWER if is_good else _MAX_ERROR, is_good)
            if is_good:
                return body
            error = status_error(address.title, answer.status_code, mask(_error_message(body), key))
            if isinstance(error, ModelNotFound):  # none was asked for
                said = f"{address.title} lists no models at {address.base_url} (HTTP {answer.status_code})."
                error = RequestRefused(said, address.title, answer.status_code)
            raise error
    except TimeoutError:
        raise Unreachable(
            f"{address.title} at {address.base_url} did not answer within {TIMEOUT:g} seconds.", address.title
        ) from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise transport_error(address.title, error, address.base_url, started=started) from None


async def _read(response: Any, most: int, is_good: bool) -> bytes:
    """The body; only the beginning of a long error. Raises `ReplyTooLong` if a good answer is too long."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most:
            if is_good:
                raise ReplyTooLong(f"The answer is larger than {most >> 20} MB.")
            break
    return bytes(body[:most])


def _error_message(body: bytes) -> str:
    """The vendor's message from the body of an error."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body[:300].decode("utf-8", "replace")
    error: Any = cast("dict[str, Any]", answer).get("error", answer) if isinstance(answer, dict) else answer
    message: Any = cast("dict[str, Any]", error).get("message", error) if isinstance(error, dict) else error
    return str(message)[:2_000]


def _client(address: ListingAddress) -> "HttpClient":
    """Call it in a thread: it imports modules and reads the system's certificates."""
    return http_client(address.base_url, tls_for(address.base_url))
