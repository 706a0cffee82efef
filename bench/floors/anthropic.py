"""Floor: the anthropic SDK, raw events."""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

from anthropic import AsyncAnthropic

from bench.floors.agent import Call, serve
from bench.floors.tools import TOOLS, schema

SPECS: Any = [{"name": name, "input_schema": schema(name)} for name in TOOLS]


class Anthropic:
    client: AsyncAnthropic | None = None

    def __init__(self) -> None:
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call.call_id, "content": text} for call, text in results]
        self._history.append({"role": "user", "content": blocks})

    async def stream(self) -> AsyncIterator[str | Call]:
        client = Anthropic.client = Anthropic.client or AsyncAnthropic(
            api_key="dummy", base_url=os.environ["BENCH_URL"], max_retries=0
        )
        events = await client.messages.create(
            model="claude-sonnet-4-6", max_tokens=32_000, messages=self._history, tools=SPECS, stream=True
        )
        blocks: list[dict[str, Any]] = []
        arguments: list[str] = []
        async for event in events:
            match event.type:
                case "content_block_start":
                    blocks.append(event.content_block.model_dump(exclude_none=True))
                case "content_block_delta":
                    if event.delta.type == "text_delta":
                        blocks[-1]["text"] += event.delta.text
                        yield event.delta.text
                    elif event.delta.type == "input_json_delta":
                        arguments.append(event.delta.partial_json)
                case "content_block_stop":
                    if blocks[-1]["type"] == "tool_use":
                        blocks[-1]["input"] = json.loads("".join(arguments))
                        arguments.clear()
                case _:
                    pass
        self._history.append({"role": "assistant", "content": blocks})
        for block in blocks:
            if block["type"] == "tool_use":
                yield Call(block["id"], block["name"], block["input"])


if __name__ == "__main__":
    serve(Anthropic)
