"""An OpenAI-style HTTP endpoint: a JSON request in, events or one JSON object out; refusals are raised as the errors
of `core/model.py`. Both OpenAI APIs use it: `openai_compatible.py` and `openai_responses.py`.

It uses httpx2 directly: the openai SDK validates the whole history on each request and costs 0.3 s and 30 MB.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from amanu.core.model import AuthFailed, ModelError, StreamBroken
from amanu.models.chatgpt_refusals import PLAN_PREFIX, plan_error
from amanu.models.errors import (
    mask,
    quota_exhausted,
    request_id_of,
    retry_after,
    sentence,
    status_error,
    transport_error,
    with_request_id,
)
from amanu.models.http import LazyValue, http_client, tls_for
from amanu.models.quotas import google_daily, google_wait
from amanu.models.refusal_words import overflow
from amanu.models.sse import SseParser
from amanu.models.wire_messages import loads

if TYPE_CHECKING:
    from amanu.models.transport import HttpClient

LINGER = 0.5
"""Seconds to wait for more after a reply is complete: token usage may still follow, and a connection whose body was
read to the end can be reused; but some servers never end the body."""

_REFUSALS = {"invalid_prompt", "bio_policy", "cyber_policy", "misalignment_policy_violation", "invalid_request_error"}
"""Codes of mid-stream errors that a retry cannot fix."""


class IncomingReply(Protocol):
    """A reply that is being read. `complete`: the finish marker was seen. `request_id`: of the answer's header."""

    complete: bool
    request_id: str


class TokenSource(Protocol):
    """A source of short-lived access tokens. Both methods raise only `ModelError`."""

    async def current(self) -> str:
        """A token that is valid now."""
        ...

    async def renewed(self, refused: str) -> str:
        """A new token in place of `refused`, which the service did not accept."""
        ...


class OpenAIEndpoint:
    """`vendor` as the user knows it; `base_url` with the version (`https://api.openai.com/v1`); `key`: None for local
    servers, or a source that is asked for a token at each request."""

    def __init__(self, vendor: str, base_url: str, key: str | TokenSource | None = None) -> None:
        self.vendor = vendor
        self.base_url = base_url.rstrip("/")
        self._key = key if isinstance(key, str) else None
        self._tokens = None if isinstance(key, str) else key
        self._sent: deque[str] = deque([self._key] if self._key else [], maxlen=4)
        """The key, or the latest tokens: taken out of whatever is told of an answer."""
        self._connection = LazyValue(self._connect)

    async def connect(self) -> None:
        (await self._connection.get()).connect()

    async def close(self) -> None:
        if (http := self._connection.made) is not None:
            await http.aclose()

    async def post(
        self, path: str, body: bytes, reply: IncomingReply, *, streaming: bool
    ) -> AsyncGenerator[dict[str, Any]]:
        """The events of the answer, or a whole answer as one event. Sets `reply.complete` when a non-streamed body has
        been read or `[DONE]` was seen; the caller sets it for other finish markers. Closing this closes the HTTP
        stream. Raises `ModelError`. A refused token is renewed once."""
        key = await self._tokens.current() if self._tokens is not None else self._key
        began = False
        try:
            async with aclosing(self._post(path, body, reply, key, streaming=streaming)) as events:
                async for event in events:
                    began = True
                    yield event
            return
        except AuthFailed as refusal:
            if self._tokens is None or key is None or refusal.status != 401 or began:
                raise
            key = await self._tokens.renewed(key)
        async with aclosing(self._post(path, body, reply, key, streaming=streaming)) as events:
            async for event in events:
                yield event

    async def _post(
        self, path: str, body: bytes, reply: IncomingReply, key: str | None, *, streaming: bool
    ) -> AsyncGenerator[dict[str, Any]]:
        http = await self._connection.get()
        import httpx2

        headers = {"authorization": f"Bearer {key}"} if key else {}
        if key and (urlsplit(self.base_url).hostname or "").endswith(".azure.com"):
            headers["api-key"] = key
        if key and key not in self._sent:
            self._sent.append(key)
        started = False
        try:
            async with http.stream("POST", f"{self.base_url}{path}", content=body, headers=headers) as response:
                started = True
                if response.status_code != 200:
                    raise self._refused(response.status_code, await response.aread(), response.headers)
                reply.request_id = request_id_of(response.headers)
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
                raise transport_error(self.vendor, error, self.base_url, started=started) from None

    def error(self, status: int | None, answer: Any, headers: Any = None) -> ModelError:
        """The error for a status and its body (`{"error": {…}}`, plain text, FastAPI's `detail`, Google's list of one),
        or for a mid-stream error event (`status` None)."""
        outer = _object(cast(list[Any], answer)[0] if isinstance(answer, list) and answer else answer)
        error = _object(outer.get("error") or outer)
        message = self._masked(str(error.get("message") or error.get("detail") or error))
        code = str(error.get("code") or error.get("type") or "")
        if status is None:
            if code in _REFUSALS or code.startswith("invalid_image"):
                status = 400
            else:
                status = int(code) if code.isdecimal() else 429 if "rate_limit" in code else None
        kind = f"{error.get('code')} {error.get('type')}"
        if overflow(kind) is not None and overflow(message) is None:
            message = f"{message} ({kind})"
        details = with_request_id(self._masked(str(outer)[:4000]), headers or {})
        wait = retry_after(headers or {}) or google_wait(error, message)
        if code.startswith(PLAN_PREFIX):
            return plan_error(self.vendor, code, status, message, wait=wait, details=details)
        if "insufficient_quota" in (code, error.get("type")) or (status == 429 and google_daily(error)):
            return quota_exhausted(self.vendor, status, message, retry_after=wait, details=details)
        if self._tokens is not None and status in (401, 403):
            said = f"OpenAI does not accept your ChatGPT sign-in: {sentence(message)} Run: amanu auth login openai"
            return AuthFailed(said, self.vendor, status, details=details)
        return status_error(self.vendor, status, message, retry_after=wait, details=details)

    def unreadable(self, description: str) -> StreamBroken:
        """The error for a malformed reply. `description`: the part that could not be read."""
        return StreamBroken(
            f"The reply from {self.vendor} could not be read.",
            self.vendor,
            details=self._masked(description[:2000]),
        )

    def _masked(self, text: str) -> str:
        for key in self._sent:
            text = mask(text, key)
        return text

    def _connect(self) -> "HttpClient":
        return http_client(self.base_url, tls_for(self.base_url), headers={"content-type": "application/json"})

    def _parsed(self, event: bytes) -> dict[str, Any]:
        """The chunk, parsed. Raises the error if the chunk reports one."""
        try:
            chunk = loads(event)
        except ValueError:
            raise self.unreadable(event[:500].decode("utf-8", "replace")) from None
        if not isinstance(chunk, dict):
            raise self.unreadable(event[:500].decode("utf-8", "replace"))
        chunk = cast(dict[str, Any], chunk)
        if chunk.get("error"):
            raise self.error(None, chunk)
        return chunk

    def _refused(self, status: int, body: bytes, headers: Any) -> ModelError:
        try:
            answer = loads(body)
        except ValueError:
            answer = {"message": body[:2000].decode("utf-8", "replace")}
        return self.error(status, answer, headers)


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {"message": value}


async def _events(body: AsyncIterator[bytes], reply: IncomingReply) -> AsyncGenerator[bytes]:
    """The events of a reply up to its end; once it is complete, only while more arrives within `LINGER`."""
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
