"""Everything that speaks chat completions: OpenAI, OpenRouter, Google's compatible endpoint, Ollama, llama.cpp,
vLLM. Directly on httpx2: the openai SDK validates the whole history on each request and costs 0.3 s and 30 MB.

What a message looks like on the wire is in `openai_messages.py`, what a reply is made of in `openai_reply.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from amanu.core.model import Delta, ModelError, Request, StreamBroken
from amanu.core.model_families import family
from amanu.models.errors import mask, quota_exhausted, retry_after, status_error, transport_error
from amanu.models.http import LazyValue, http_client, tls_for
from amanu.models.openai_messages import message
from amanu.models.openai_reply import OpenAIReply
from amanu.models.quotas import google_daily, google_wait
from amanu.models.sse import SseParser
from amanu.models.wire_messages import WireMessages, dumps, loads, loop_start

if TYPE_CHECKING:
    from amanu.models.transport import HttpClient

LINGER = 0.5
"""Seconds to wait for more of a reply that is complete: the usage follows it, and a body read to its end leaves
the connection fit for the next request; but some servers never end it."""


@dataclass(frozen=True)
class EndpointQuirks:
    """Facts of an endpoint (those of its models are in `core/model_families.py`)."""

    streaming: Literal["always", "untilBroken", "never"] = "untilBroken"
    """`untilBroken`: once a streamed call came malformed, whole replies are asked for from then on."""


QUIRKS = {"openai": EndpointQuirks(streaming="always")}


class OpenAICompatibleModel:
    """`Model` for one endpoint. `vendor` as in `vendor:model`; `base_url` with the version
    (`https://api.openai.com/v1`); `key` None for local servers."""

    def __init__(
        self, vendor: str, base_url: str, key: str | None = None, quirks: EndpointQuirks | None = None
    ) -> None:
        self._vendor = vendor
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._quirks = quirks or QUIRKS.get(vendor, EndpointQuirks())
        self._streaming = self._quirks.streaming != "never"
        self._messages = WireMessages(message)
        self._connection = LazyValue(self._connect)

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._vendor!r}, {self._base_url!r})"

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        reply = OpenAIReply(request, self._vendor)
        streaming = self._streaming
        async with aclosing(self._chunks(request, reply, streaming)) as chunks:
            async for chunk in chunks:
                try:
                    deltas = list(reply.add(chunk))
                except (AttributeError, TypeError) as error:
                    raise self._unreadable(repr(error)) from None
                for delta in deltas:
                    yield delta
        if streaming and reply.malformed and self._quirks.streaming == "untilBroken":
            self._streaming = False
            raise StreamBroken(
                f"{self._vendor} streamed a broken tool call; Amanu asks it for complete replies from now on.",
                self._vendor,
            )
        yield reply.done()

    async def connect(self) -> None:
        (await self._connection.get()).connect()

    async def close(self) -> None:
        if (http := self._connection.made) is not None:
            await http.aclose()

    async def _chunks(self, request: Request, reply: OpenAIReply, streaming: bool) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of the reply, or the reply as one chunk. Closing this closes the HTTP stream."""
        http = await self._connection.get()
        import httpx2

        started = False
        try:
            async with http.stream(
                "POST", f"{self._base_url}/chat/completions", content=self._body(request, streaming)
            ) as response:
                started = True
                if response.status_code != 200:
                    raise self._refused(response.status_code, await response.aread(), response.headers)
                if not streaming or response.headers.get("content-type", "").startswith("application/json"):
                    whole = self._parsed(await response.aread())
                    reply.complete = True
                    yield whole
                    return
                async with aclosing(_events(response.aiter_bytes(), reply)) as events:
                    async for event in events:
                        if event.strip() == b"[DONE]":
                            reply.complete = True
                        else:
                            yield self._parsed(event)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            if not reply.complete:
                raise transport_error(self._vendor, error, self._base_url, started=started) from None

    def _connect(self) -> "HttpClient":
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        return http_client(self._base_url, tls_for(self._base_url), headers=headers)

    def _body(self, request: Request, streaming: bool) -> bytes:
        """The request. The messages are joined as they are kept; only the rest is made anew."""
        pairs = zip(request.conversation, self._messages.of(request.conversation, request.model), strict=True)
        sent = [(message, objects) for message, objects in pairs if objects.data]
        loop = loop_start([message for message, _ in sent], notes_apart=False)
        messages = [(index > loop and converted.in_loop) or converted.data for index, (_, converted) in enumerate(sent)]
        if request.system:
            messages.insert(0, dumps({"role": "system", "content": request.system}))
        facts = family(request.model.model_id)
        others: dict[str, Any] = {
            "model": request.model.model_id.partition(":")[2],
            "stream": streaming,
            facts.max_tokens_field: min(request.model.max_output, request.max_output or facts.max_output),
        }
        if streaming:
            others["stream_options"] = {"include_usage": True}
        if request.tools:
            others["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.model.thinking and facts.thinking == "effort":
            others["reasoning_effort"] = facts.efforts[request.effort]
        if facts.caching == "key":
            others["prompt_cache_key"] = request.session_id
        if facts.caching == "one mark":
            others["cache_control"] = {"type": "ephemeral"}
        pieces = [b","] * max(0, 2 * len(messages) - 1)
        pieces[::2] = messages
        return b"".join((b'{"messages":[', *pieces, b"],", dumps(others)[1:]))

    def _parsed(self, event: bytes) -> dict[str, Any]:
        """A chunk. Raises what it says when it is an error."""
        try:
            chunk = loads(event)
        except ValueError:
            raise self._unreadable(event[:500].decode("utf-8", "replace")) from None
        if not isinstance(chunk, dict):
            raise self._unreadable(event[:500].decode("utf-8", "replace"))
        chunk = cast(dict[str, Any], chunk)
        if chunk.get("error"):
            raise self._error(None, chunk, {})
        return chunk

    def _refused(self, status: int, body: bytes, headers: Any) -> ModelError:
        try:
            answer = loads(body)
        except ValueError:
            answer = {"message": body[:2000].decode("utf-8", "replace")}
        return self._error(status, answer, headers)

    def _error(self, status: int | None, answer: Any, headers: Any) -> ModelError:
        """From a status and its body (`{"error": {…}}`, a text, FastAPI's `detail`, Google's list of one), or
        from an error event in mid-stream (status None)."""
        outer = _object(cast(list[Any], answer)[0] if isinstance(answer, list) and answer else answer)
        error = _object(outer.get("error") or outer)
        message = mask(str(error.get("message") or error.get("detail") or error), self._key)
        code = str(error.get("code") or error.get("type") or "")
        if status is None:
            status = int(code) if code.isdecimal() else 429 if "rate_limit" in code else None
        details = mask(str(outer)[:4000], self._key)
        wait = retry_after(headers) or google_wait(error, message)
        if "insufficient_quota" in (code, error.get("type")) or (status == 429 and google_daily(error)):
            return quota_exhausted(self._vendor, status, message, retry_after=wait, details=details)
        return status_error(self._vendor, status, message, retry_after=wait, details=details)

    def _unreadable(self, description: str) -> StreamBroken:
        return StreamBroken(
            f"The reply from {self._vendor} could not be read.",
            self._vendor,
            details=mask(description[:2000], self._key),
        )


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {"message": value}


async def _events(body: AsyncIterator[bytes], reply: OpenAIReply) -> AsyncGenerator[bytes]:
    """The events of a reply to its end; once it is complete, for as long as more comes within `LINGER`."""
    events = SseParser()
    while True:
        try:
            async with asyncio.timeout(LINGER if reply.complete else None):
                data = await anext(body, None)
        except TimeoutError:
            return
        for event in events.end() if data is None else events.feed(data):
            yield event
        if data is None:
            return
