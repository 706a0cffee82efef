"""Floor: OpenAI's Responses API over a bare HTTP client."""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from bench.floors.agent import Call, serve
from bench.floors.tools import TOOLS, schema

SPECS = [{"type": "function", "name": name, "parameters": schema(name), "strict": False} for name in TOOLS]


class RawResponses:
    client: httpx2.AsyncClient | None = None

    def __init__(self) -> None:
        self._history: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        self._history += [
            {"type": "function_call_output", "call_id": call.call_id, "output": text} for call, text in results
        ]

    async def stream(self) -> AsyncIterator[str | Call]:
        client = RawResponses.client = RawResponses.client or httpx2.AsyncClient(timeout=None, trust_env=False)
        body = {"model": "gpt-6.2-sol", "stream": True, "store": False, "input": self._history, "tools": SPECS}
        items: list[dict[str, Any]] = []
        url = os.environ["BENCH_URL"] + "/v1/responses"
        async with client.stream("POST", url, json=body) as response:
            buffer = b""
            async for data in response.aiter_raw():
                *events, buffer = (buffer + data).split(b"\n\n")
                for event in events:
                    value = json.loads(event[event.index(b"data: ") + 6 :])
                    if value["type"] == "response.output_text.delta":
                        yield value["delta"]
                    elif value["type"] == "response.output_item.done":
                        items.append(value["item"])
        self._history += items
        for item in items:
            if item["type"] == "function_call":
                yield Call(item["call_id"], item["name"], json.loads(item["arguments"]))


if __name__ == "__main__":
    serve(RawResponses)
