"""Floor: google-genai as its documentation shows it; with the argument `raw`, its history as JSON past the SDK."""

import os
import sys
from collections.abc import AsyncIterator
from typing import Any

from google import genai
from google.genai import types

from bench.floors.agent import Call, serve
from bench.floors.tools import TOOLS, schema

DECLARED = [types.FunctionDeclaration(name=name, parameters_json_schema=schema(name)) for name in TOOLS]
SPECS = [types.Tool(function_declarations=DECLARED)]


class Genai:
    client: genai.Client | None = None

    def __init__(self) -> None:
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def answer(self, results: list[tuple[Call, str]]) -> None:
        parts = [types.Part.from_function_response(name=call.tool, response={"output": text}) for call, text in results]
        self._history.append(types.Content(role="user", parts=parts))

    async def stream(self) -> AsyncIterator[str | Call]:
        client = Genai.client = Genai.client or genai.Client(
            api_key="dummy", http_options=types.HttpOptions(base_url=os.environ["BENCH_URL"])
        )
        models: Any = client.aio.models
        chunks: AsyncIterator[types.GenerateContentResponse] = await models.generate_content_stream(
            model="gemini-2.5-flash", contents=self._contents(), config=self._config()
        )
        said: list[str] = []
        called: list[types.Part] = []
        async for chunk in chunks:
            for candidate in chunk.candidates or ():
                for part in (candidate.content and candidate.content.parts) or ():
                    if part.text:
                        said.append(part.text)
                        yield part.text
                    else:
                        called.append(part)
        self._keep([types.Part(text="".join(said))] * bool(said) + called)
        for part in called:
            if part.function_call:
                yield Call("", part.function_call.name or "", dict(part.function_call.args or {}))

    def _contents(self) -> Any:
        return self._history

    def _config(self) -> types.GenerateContentConfig:
        off = types.AutomaticFunctionCallingConfig(disable=True)
        return types.GenerateContentConfig(tools=SPECS, automatic_function_calling=off)  # pyright: ignore[reportArgumentType]

    def _keep(self, parts: list[types.Part]) -> None:
        self._history.append(types.Content(role="model", parts=parts))


class RawHistory(Genai):
    def say(self, text: str) -> None:
        self._history.append({"role": "user", "parts": [{"text": text}]})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        parts = [{"functionResponse": {"name": call.tool, "response": {"output": text}}} for call, text in results]
        self._history.append({"role": "user", "parts": parts})

    def _contents(self) -> Any:
        return " "

    def _config(self) -> types.GenerateContentConfig:
        config = super()._config()
        config.http_options = types.HttpOptions(extra_body={"contents": self._history})
        return config

    def _keep(self, parts: list[types.Part]) -> None:
        kept = [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in parts]
        self._history.append({"role": "model", "parts": kept})


if __name__ == "__main__":
    serve(RawHistory if sys.argv[1:] == ["raw"] else Genai)
