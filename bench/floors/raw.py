"""Floor: chat completions over a bare HTTP client."""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from bench.floors.agent import Call, serve
from bench.floors.tools import TOOLS, schema

SPECS = [{"type": "function", "function": {"name": name, "parameters": schema(name)}} for name in TOOLS]


class Raw:
    client: httpx2.AsyncClient | None = None

    def __init__(self) -> None:
        self._history: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        self._history += [{"role": "tool", "tool_call_id": call.call_id, "content": text} for call, text in results]

    async def stream(self) -> AsyncIterator[str | Call]:
        client = Raw.client = Raw.client or httpx2.AsyncClient(timeout=None, trust_env=False)
        body = {"model": "gpt-4.1", "stream": True, "messages": self._history, "tools": SPECS}
        said: list[str] = []
        calls: list[dict[str, Any]] = []
        url = os.environ["BENCH_URL"] + "/v1/chat/completions"
        async with client.stream("POST", url, json=body) as response:
            buffer = b""
            async for data in response.aiter_raw():
                *events, buffer = (buffer + data).split(b"\n\n")
                for event in events:
                    if event == b"data: [DONE]":
                        continue
                    for choice in json.loads(event[6:])["choices"]:
                        if text := choice["delta"].get("content"):
                            said.append(text)
                            yield text
                        calls += choice["delta"].get("tool_calls", ())
        message: dict[str, Any] = {"role": "assistant", "content": "".join(said) or None}
        if calls:
            message["tool_calls"] = calls
        self._history.append(message)
        for call in calls:
            function = call["function"]
            yield Call(call["id"], function["name"], json.loads(function["arguments"]))


if __name__ == "__main__":
    serve(Raw)
