"""Gemini, through google-genai: connections, headers, events, errors. The SDK's own retries, timeouts and function
calling are off, and so is its continuation of long replies, which would send bodies of its own making. Request bodies
pass it as bytes, put in place just before they are sent: it would validate and convert the whole history on each
request (4 → 94 ms a step over 200 steps). Replies do not pass it: it makes the request and judges the status, and the
events are read here (it would take 0.2 ms for each).

What a message looks like on the wire is in `gemini_contents.py`, what a reply is made of in `gemini_reply.py`.
"""

import asyncio
import json
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from amanu.core.model import Delta, ModelError, Request, StreamBroken
from amanu.core.model_families import family
from amanu.models.errors import mask, quota_exhausted, retry_after, status_error, transport_error
from amanu.models.gemini_contents import content, place
from amanu.models.gemini_reply import GeminiReply
from amanu.models.http import CONNECT_TIMEOUT, LazyValue, http_client, tls_for
from amanu.models.quotas import google_daily, google_wait
from amanu.models.request_fields import extended
from amanu.models.sse import SseParser
from amanu.models.wire_messages import WireMessages, dumps, loads

if TYPE_CHECKING:
    import httpx2
    from google import genai
    from google.genai.types import HttpOptions

    from amanu.models.transport import HttpClient

BASE_URL = "https://generativelanguage.googleapis.com"

VENDOR = "Gemini"

_BUILT_ON_FIRST_USE = ("GenerateContentConfig", "_GenerateContentParameters", "Part", "UserContent")
"""Types of the SDK that a request passes. Built beforehand, the first prompt waits 20 ms less."""

_TIER = "x-gemini-service-tier"
"""The header that names the tier at which the request was served (ai.google.dev, "Priority inference")."""

_OFF = {"automatic_function_calling": {"disable": True}, "automatic_continuation": False}


@dataclass
class _Exchange:
    """What the SDK does not let through: the body as we want it sent, and the response, whose socket it leaves
    open when a stream is abandoned (python-genai #2425)."""

    body: bytes
    stream: bool
    response: "httpx2.Response | None" = None


_exchange: ContextVar[_Exchange | None] = ContextVar("_exchange", default=None)
"""That of the request being sent in this task."""


class GeminiModel:
    """`Model` for the Gemini API. `key` is an API key; `base_url` without the version. What Vertex AI does otherwise is
    in `vertex.py`."""

    title = VENDOR
    api_version = "v1beta"
    searches = True

    def __init__(self, key: str, base_url: str = BASE_URL) -> None:
        self._key = key
        """To be kept out of errors."""
        self._base_url = base_url
        self._messages = WireMessages(content)
        self._connection = LazyValue(self._connect)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        reply = GeminiReply(request)
        token: str | None = None
        has_more = True
        while has_more:
            failure: ModelError | None = None
            try:
                async with aclosing(self._chunks(request, token)) as chunks:
                    chunk_count = 0
                    async for chunk in chunks:
                        for delta in self._deltas(reply, chunk):
                            yield delta
                        chunk_count += 1
                        if chunk_count % 16 == 0:
                            await asyncio.sleep(0)  # a burst of chunks has no pause of its own
            except ModelError as error:
                failure = error
            token = reply.resume() if failure is None or isinstance(failure, StreamBroken) else None
            has_more = token is not None
            if failure is not None and not has_more and not reply.pause():
                raise failure
        yield reply.done()

    async def connect(self) -> None:
        (await self._connection.get()).http.connect()

    async def close(self) -> None:
        if (client := self._connection.made) is not None:
            await client.http.aclose()

    async def _chunks(self, request: Request, token: str | None) -> AsyncGenerator[dict[str, Any]]:
        """A reply's chunks. Closing this closes the HTTP stream. `token`: of the place in the reply to go on from."""
        connection = await self._connection.get()
        await self._authorize()
        exchange = _Exchange(self._body(request, token), stream=not request.whole)
        try:
            models: Any = connection.client.aio.models
            named = {"model": request.model.model_id.partition(":")[2], "contents": " ", "config": _OFF}
            _exchange.set(exchange)
            try:
                if request.whole:
                    await models.generate_content(**named)
                else:
                    async for _ in await models.generate_content_stream(**named):
                        pass  # nothing comes: the events are ours
            finally:
                _exchange.set(None)
            assert exchange.response is not None, "the SDK answered by itself"
            if request.whole:
                yield self._chunk(await exchange.response.aread(), exchange.response)
                return
            events = SseParser()
            async for received in exchange.response.aiter_bytes():
                for data in events.feed(received):
                    yield self._chunk(data, exchange.response)
            for data in events.end():
                yield self._chunk(data, exchange.response)
        except Exception as error:
            raise self._explained(error, started=exchange.response is not None) from None
        finally:
            if exchange.response is not None:
                await exchange.response.aclose()

    def _deltas(self, reply: GeminiReply, chunk: dict[str, Any]) -> Iterator[Delta]:
        try:
            yield from reply.add(chunk)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise self._unreadable(error) from None

    def _chunk(self, data: bytes, response: "httpx2.Response") -> dict[str, Any]:
        chunk = loads(data)
        if "error" in chunk:
            raise api_error(chunk["error"]["code"], chunk, response, self._key, self.title)
        tier = response.headers.get(_TIER)
        if tier is not None and isinstance(chunk.get("usageMetadata"), dict):
            chunk["usageMetadata"]["serviceTier"] = tier
        return chunk

    def _body(self, request: Request, token: str | None = None) -> bytes:
        """The request. The contents are joined as they are kept; only the rest is made anew."""
        others: dict[str, Any] = {"generationConfig": generation(request)}
        if token is not None:
            others["generationConfig"]["continuationToken"] = token
        if request.system:
            others["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.web_search:
            others["tools"] = [{"googleSearch": {}}]
        elif request.tools:
            if not request.callable_tools:
                others["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
            declarations = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
                for tool in request.declared_tools
            ]
            others["tools"] = [{"functionDeclarations": declarations}]
        in_loop = family(request.model.model_id).must_return == "signature"
        contents = self._messages.pieces(request.conversation, request.model, place, None if in_loop else 0)
        end = b"]}]," if contents else b"],"
        return b"".join((b'{"contents":[', *contents, end, dumps(extended(others, request))[1:]))

    async def _authorize(self) -> None:
        """Obtain access before a request, for example a fresh token. Raises `ModelError`."""

    def _connect(self) -> "_Connection":
        """Imports the SDK (0.3 s) and makes the clients."""
        from google.genai import types

        # A finish reason newer than the SDK is handled in `GeminiReply`, not printed.
        warnings.filterwarnings("ignore", r".* is not a valid \w+$", UserWarning)
        tls = tls_for(self._base_url)
        # Our own client, so that aiohttp never becomes the transport when it happens to be installed.
        http = http_client(self._base_url, tls, event_hooks={"request": [_send], "response": [_keep]})
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self.api_version,
            httpx_async_client=http,
            async_client_args={"verify": tls, "ssl": tls},  # else the SDK makes two more, 45 ms each
        )
        for name in _BUILT_ON_FIRST_USE:
            if (model := getattr(types, name, None)) is not None:
                model.model_rebuild()
        return _Connection(http, self._client(options))

    def _client(self, options: "HttpOptions") -> "genai.Client":
        from google import genai

        return genai.Client(api_key=self._key, vertexai=False, http_options=options)

    def _explained(self, error: Exception, *, started: bool) -> ModelError:
        import httpx2
        from google.genai.errors import APIError

        if isinstance(error, ModelError):
            return error
        if isinstance(error, APIError):
            details: Any = error
            return api_error(details.code, details.details, details.response, self._key, self.title)
        if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
            return transport_error(self.title, error, self._base_url, started=started)
        return self._unreadable(error)

    def _unreadable(self, error: Exception) -> StreamBroken:
        """What the service sent is no JSON, or has fields of a wrong type."""
        details = mask(repr(error)[:2000], self._key)
        return StreamBroken(f"The reply from {self.title} could not be read.", self.title, details=details)


@dataclass(frozen=True)
class _Connection:
    http: "HttpClient"
    client: "genai.Client"


async def _send(sent: "httpx2.Request") -> None:
    """Before a request goes out."""
    import httpx2

    sent.extensions["timeout"]["connect"] = CONNECT_TIMEOUT  # the SDK takes all limits off
    exchange = _exchange.get()
    assert exchange is not None, "the SDK sent something of its own"
    sent.stream = httpx2.ByteStream(exchange.body)
    sent.headers["content-length"] = str(len(exchange.body))


async def _keep(response: "httpx2.Response") -> None:
    """When the headers have come: the events of a reply are kept from the SDK."""
    import httpx2

    exchange = _exchange.get()
    if exchange is None:
        return
    exchange.response = response
    if exchange.stream and response.is_success:
        events: Any = response.stream
        exchange.response = httpx2.Response(response.status_code, headers=response.headers, stream=events)
        response.stream = httpx2.ByteStream(b"")


def generation(request: Request) -> dict[str, Any]:
    """Limits and thinking: by level for Gemini 3 and later, by a budget of tokens for 2.5, never both (400)."""
    facts = family(request.model.model_id)
    limits: dict[str, Any] = {"maxOutputTokens": min(request.model.max_output, request.max_output or facts.max_output)}
    if not request.model.thinking:
        return limits
    amount = facts.effort_value(request.effort)
    if amount == 0:  # then asking to see the thoughts is an error
        return {**limits, "thinkingConfig": {"thinkingBudget": 0}}
    control = "thinkingBudget" if facts.thinking == "budget" else "thinkingLevel"
    return {**limits, "thinkingConfig": {"includeThoughts": True, control: amount}}


def api_error(status: int | None, answer: Any, response: Any, key: str, vendor: str = VENDOR) -> ModelError:
    """An error the service itself reported, as a status or in mid-stream."""
    outer = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
    error: dict[str, Any] = outer.get("error") or outer
    message = mask(str(error.get("message") or json.dumps(answer, default=str)), key)
    details = mask(json.dumps(answer, default=str)[:4000], key)
    wait = google_wait(error, message) or retry_after(getattr(response, "headers", None) or {})
    if status == 429 and google_daily(error):
        return quota_exhausted(vendor, status, message, retry_after=wait, details=details)
    return status_error(vendor, status, message, retry_after=wait, details=details)
