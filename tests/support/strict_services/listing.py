"""A vendor that is asked which models there are, strict about how: one path, one way to give the key."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from support.strict_services.http import Received

KEY = "key-0123456789"
PATHS = {
    "anthropic": "/v1/models?limit=1000",
    "gemini": "/v1beta/models?pageSize=1000",
    "openai": "/v1/models",
    "openrouter": "/api/v1/models",
}
KEY_PATHS = {"openrouter": "/api/v1/key"}
BASES = {"anthropic": "", "gemini": "", "openai": "/v1", "openrouter": "/api/v1"}
"""Vendor → what its base URL ends with."""
_KEYS: Mapping[str, Mapping[str, str]] = {
    "anthropic": {"x-api-key": "{key}", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "{key}"},
    "openai": {"authorization": "Bearer {key}"},
    "openrouter": {"authorization": "Bearer {key}"},
}


class ListingService:
    """Answers as `vendor` on 127.0.0.1. `answer` is what it says; while `answering` is clear it keeps silent.
    `checking`: only about a key, where the list is public."""

    def __init__(self, vendor: str, answer: Any = None, status: int = 200, *, checking: bool = False) -> None:
        self.vendor = vendor
        self.path = KEY_PATHS.get(vendor, PATHS[vendor]) if checking else PATHS[vendor]
        self.answer = answer
        self.status = status
        self.key: str | None = KEY
        """None: the list is public."""
        self.answering = asyncio.Event()
        self.answering.set()
        self.requests: list[Received] = []
        self.asked = asyncio.Event()
        self.base_url = ""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator["ListingService"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}{BASES[self.vendor]}"
        try:
            yield self
        finally:
            self.answering.set()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ", 2)
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            path, _, query = target.partition("?")
            self.requests.append(Received(method, path, query, headers, b"", 0.0))
            self.asked.set()
            await self.answering.wait()
            status, answer = self.status, self.answer
            if (method, target) != ("GET", self.path):
                status, answer = 404, {"error": {"message": f"{method} {target} is not known."}}
            elif self.key is not None and any(
                headers.get(name) != form.format(key=self.key) for name, form in _KEYS[self.vendor].items()
            ):
                status, answer = 401, {"error": {"message": f"{headers} hold no key."}}
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            writer.write(f"HTTP/1.1 {status} Said\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
