"""Anthropic, through its SDK: connections, headers, errors. The SDK's retries are off (`retry.py` does that), and
bodies and events pass it as bytes: it would copy the whole history on each request, and build a pydantic model
of each event.

`anthropic_request.py` makes the body, `anthropic_reply.py` takes the events.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import orjson

from amanu.core.model import Delta, ModelError, Request, StreamBroken
from amanu.core.service_tiers import offers
from amanu.models.anthropic_reply import AnthropicReply
from amanu.models.anthropic_request import Dispensable, RequestBodies
from amanu.models.errors import mask, request_id_of, retry_after, status_error, transport_error, with_request_id
from amanu.models.http import LazyValue, http_client, tls_for
from amanu.models.sse import SseParser

if TYPE_CHECKING:
    from anthropic import AsyncStream
    from anthropic._base_client import AsyncAPIClient  # the base of all its clients has no public name

    from amanu.models.transport import HttpClient

_PROGRESS = "thinking-display-updates-2026-08-18"
"""The beta in which what is said between calls comes without what is thought."""
BASE_URL = "https://api.anthropic.com"
VENDOR = "Anthropic"


class AnthropicModel:
    """`Model` for the Anthropic API. `key` is an API key; `base_url` without `/v1`. What clouds do otherwise is in
    `anthropic_clouds.py`."""

    title = VENDOR
    searches = True

    def __init__(self, key: str, base_url: str = BASE_URL) -> None:
        self._key = key
        """To be kept out of errors."""
        self._base_url = base_url
        self._bodies = RequestBodies()
        self._headers: dict[str, str] = {}
        """Of our own, besides the SDK's."""
        self._connection = LazyValue(self._connect)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        """See `Model.stream`."""
        client = (self._connection.made or await self._connection.get()).client
        stream = None
        try:
            await self._authorize()
            stream, reply = await self._ask(client, request)
            reply.request_id = request_id_of(stream.response.headers)
            body = stream.response.aiter_bytes()
            events = _whole_events(body) if request.whole else _events(body)
            async with aclosing(events):
                async for data in events:
                    event = orjson.loads(data)
                    if event["type"] == "error":
                        raise self._said(data.decode())
                    delta = reply.add(event)
                    if delta is not None:
                        yield delta
                    elif reply.finished:
                        await _read_out(body)
                        break
            ending = reply.done()
        except (LookupError, TypeError, AttributeError, ValueError) as error:  # ValueError: not JSON, not UTF-8
            raise StreamBroken(f"The reply from {self.title} is malformed.", self.title, details=repr(error)) from error
        except ModelError:
            raise
        except Exception as error:
            raise self._error(error, started=stream is not None) from None
        finally:
            if stream is not None:
                await stream.close()
        yield ending

    async def connect(self) -> None:
        (await self._connection.get()).http.connect()

    async def close(self) -> None:
        if (client := self._connection.made) is not None:
            await client.http.aclose()

    async def _authorize(self) -> None:
        """Obtain access before a request, for example a fresh token. Raises `ModelError`."""

    async def _ask(self, client: "AsyncAPIClient", request: Request) -> "tuple[AsyncStream[object], AnthropicReply]":
        """Send the request; again without what the service refuses of it, if it can do without: thinking, the wish for
        arguments in pieces, caches that last an hour or messages of the system, which gateways need not know.

        Of thinking it should refuse none: what was rewritten costs its thinking in `anthropic_request.py`. But a
        session must not be lost to a block the service no longer takes (the key of another account, a proxy that
        touched a message). The service's own way out, `block_binding.prefix_mismatch_behavior`, is a beta that gateways
        need not know, and leaves open what the model saw; ours is exact, and the digests of later replies stay true.
        """
        from anthropic import BadRequestError

        model = request.model.model_id.partition(":")[2]
        taken = request.conversation.has_wire_id
        while True:
            without = set(self._bodies.left_out)
            body, prefix = self._bodies.body(request)
            progress = self._bodies.tells_progress(request)
            try:
                stream = await self._open(client, body, request, progress)
                return stream, AnthropicReply(model, prefix, taken, progress, request.service_tier)
            except BadRequestError as error:
                if not self._leaves_out(error.response.text, without, request):
                    raise

    def _leaves_out(self, error_text: str, without: set[Dispensable], request: Request) -> bool:
        """Leave out what the service refused, from now on. False if it must stay, or the request was `without` it
        already; another request may have learnt it meanwhile."""
        for name, refusal in _DISPENSABLE.items():
            if name not in without and refusal.search(error_text):
                self._bodies.left_out.add(name)
                return True
        return bool(_ABOUT_THINKING.search(error_text)) and self._bodies.forget_thinking(request.conversation)

    async def _open(
        self, client: "AsyncAPIClient", body: bytes, request: Request, progress: bool
    ) -> "AsyncStream[object]":
        from anthropic import AsyncStream

        offer = offers(request.model.model_id).get(request.service_tier)
        betas = [_PROGRESS] if progress else []
        if offer is not None and offer.beta is not None:
            betas.append(offer.beta)
        return await client.post(
            self._path(request),
            cast_to=object,
            content=body,
            options={"headers": {"anthropic-beta": ",".join(betas)}} if betas else {},
            stream=True,
            stream_cls=AsyncStream[object],
        )

    def _path(self, request: Request) -> str:
        return "/v1/messages"

    def _connect(self) -> "_Connection":
        http = http_client(self._base_url, tls_for(self._base_url), follow_redirects=False)
        options = {"max_retries": 0, "timeout": http.timeout, "open_telemetry": False, "http_client": http}
        client = self._client(options)
        # The SDK adds the headers that ANTHROPIC_CUSTOM_HEADERS of this process names: a gateway's, perhaps with its
        # secret, of whoever started the daemon.
        client._custom_headers = dict(self._headers)  # pyright: ignore[reportPrivateUsage]
        return _Connection(http, client)

    def _client(self, options: dict[str, Any]) -> "AsyncAPIClient":
        """The SDK's client; `options` are those that all its clients take."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key=self._key, base_url=self._base_url, **options)

    def _said(self, data: str) -> ModelError:
        """The error of an error event, which comes after a 200: its type says what it is."""
        data = mask(data, self._key)
        try:
            error: dict[str, Any] = orjson.loads(data)["error"]
            kind, message = str(error["type"]), str(error["message"])
        except (ValueError, LookupError, TypeError):
            return StreamBroken(f"{self.title} ended the reply with an error.", self.title, details=data)
        return status_error(self.title, _STATUS.get(kind), message, details=data)

    def _error(self, error: Exception, *, started: bool) -> Exception:
        import httpx2
        from anthropic import APIConnectionError, APIStatusError

        if isinstance(error, APIStatusError):
            details = with_request_id(mask(error.response.text, self._key), error.response.headers)
            message = mask(error.api_message or error.response.text or error.message, self._key)
            wait = retry_after(error.response.headers)
            return status_error(self.title, error.status_code, message, retry_after=wait, details=details)
        if isinstance(error, APIConnectionError):
            cause = cast("Exception | None", error.__cause__) or error
            return transport_error(self.title, cause, self._base_url, started=False)
        if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
            return transport_error(self.title, error, self._base_url, started=started)
        return error


@dataclass(frozen=True)
class _Connection:
    http: "HttpClient"
    client: "AsyncAPIClient"


async def _events(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The data of the events. The SDK's reader copies all of an unfinished event for each of its lines."""
    events = SseParser()
    async for received in body:
        for data in events.feed(received):
            yield data
    for data in events.end():
        yield data


async def _whole_events(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """A message that came in one piece, as the events it would have come in."""
    message: dict[str, Any] = orjson.loads(b"".join([data async for data in body]))
    if message["type"] == "error":
        yield orjson.dumps(message)
        return
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(message["content"]):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if block["type"] == "tool_use":
            arguments = orjson.dumps(block["input"]).decode()
            delta = {"type": "input_json_delta", "partial_json": arguments}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": message, "usage": message.get("usage")}, {"type": "message_stop"}]
    for event in events:
        yield orjson.dumps(event)


async def _read_out(body: AsyncIterator[bytes]) -> None:
    """Take what follows the last event, which is nothing, so that the connection can be used again."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(0.25):
            async for _ in body:
                pass


_ABOUT_THINKING = re.compile(r"thinking`? block|block_binding|`(redacted_)?thinking`")
"""What a refusal says that is about thinking blocks: changed, out of place, missing, of another conversation
(platform.claude.com, "Fix a thinking block bound to a different conversation")."""

_DISPENSABLE: Mapping[Dispensable, re.Pattern[str]] = {
    "updates": re.compile(r"thinking-display-updates|thinking\.\S*display|'updates'|anthropic-beta"),
    "eager": re.compile(r"eager_input_streaming"),
    "system role": re.compile(r"\brole\W{1,4}system\b|'user' or 'assistant'"),
    "hour": re.compile(r"\bttl\b"),
}
"""What can be left out → how a refusal names it."""

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status each type of error has when it comes instead of a reply."""
