"""`python -m recordings.make`: makes the recordings in this folder anew.

They are recorded from our own strict services on loopback, through the real SDKs, not from the vendors: the shapes
are those that vendors were seen to send, the words are ours. Times and addresses are made even, so that making them
again changes nothing that did not change.
"""

import asyncio
import itertools
import json
import random
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from amanu.core.conversation import Conversation, User
from amanu.core.model import Model, ModelError, Request
from amanu.core.model_families import model_info
from amanu.models.anthropic import AnthropicModel
from amanu.models.gemini import GeminiModel
from amanu.models.openai import OpenAIModel
from amanu.models.openai_compatible import EndpointQuirks, OpenAICompatibleModel
from amanu.models.recording import Recorder
from amanu.models.session_transport import SessionTransport
from recordings.responses_shapes import RESPONSES
from recordings.shapes import ANTHROPIC, COMMON, GEMINI, OPENAI
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Raw, Script, Service, Step
from support.strict_services.openai import OpenAI
from support.strict_services.responses import Responses
from support.vendors import TOOLS

FOLDER = Path(__file__).parent
KEY = "sk-recorded-0123456789abcdef"
SYSTEM = "You help."
PROMPT = "What is in there?"


@dataclass(frozen=True)
class Way:
    """One folder of recordings: service, model, shapes."""

    name: str
    model_id: str
    service: Callable[[Script], Service]
    model: Callable[[str], Model]
    """From base URL."""
    shapes: dict[str, Step] = field(repr=False)


def _compatible(vendor: str, quirks: EndpointQuirks) -> Callable[[str], Model]:
    return lambda url: OpenAICompatibleModel(vendor, f"{url}/v1", KEY, quirks)


_SIGNED = ("text", "thought_text_call", "parallel_calls", "eleven_calls", "max_tokens")
_WHOLE = ("text", "thought_text_call", "parallel_calls", "max_tokens", "refusal")

WAYS = (
    Way("anthropic", "anthropic:claude-opus-5-5", Anthropic, partial(AnthropicModel, KEY), ANTHROPIC),
    Way("gemini-2.5", "gemini:gemini-2.5-pro", Gemini, partial(GeminiModel, KEY), GEMINI),
    Way("gemini-3", "gemini:gemini-3.5-flash", Gemini, partial(GeminiModel, KEY), GEMINI),
    Way("openai", "openrouter:openai/gpt-5.1", OpenAI, _compatible("OpenRouter", EndpointQuirks("always")), OPENAI),
    Way("responses", "openai:gpt-6.2-sol", Responses, lambda url: OpenAIModel("OpenAI", f"{url}/v1", KEY), RESPONSES),
    Way(
        "openai-signed",
        "google-openai:gemini-3-pro",
        partial(OpenAI, gemini=True),
        _compatible("google-openai", EndpointQuirks("always")),
        {name: COMMON[name] for name in _SIGNED},
    ),
    Way(
        "openai-whole",
        "openrouter:qwen/qwen3",
        OpenAI,
        _compatible("OpenRouter", EndpointQuirks("never")),
        {name: COMMON[name] for name in _WHOLE},
    ),
)


def asked(way: Way, conversation: Conversation | None = None) -> Request:
    """The request that every recording answers, and what follows it."""
    conversation = conversation or Conversation([User(text=PROMPT)])
    info = model_info(way.model_id)
    return Request(model=info, system=SYSTEM, tools=TOOLS, conversation=conversation, session_id="s1")


async def main() -> None:
    for way in WAYS:
        folder = FOLDER / way.name
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.ndjson"):
            old.unlink()
        for name, step in way.shapes.items():
            await _record(way, _in_pieces(step) if name == "pieces_cut_anywhere" else step, folder / f"{name}.ndjson")
        sys.stdout.write(f"{way.name}: {len(way.shapes)}\n")


async def _record(way: Way, step: Step, path: Path) -> None:
    service = way.service([step])
    url = await service.start()
    model = way.model(url)
    ticks = itertools.count()
    line = SessionTransport()
    line.recorder = Recorder(
        path, way.model_id, lambda text: text.replace(KEY, "[key]"), clock=lambda: next(ticks) / 100
    )
    with line.used(), suppress(ModelError):
        async with aclosing(cast("Any", model.stream(asked(way)))) as stream:
            async for _ in stream:
                pass
    await model.close()
    await service.stop()
    assert not service.refused and not service.lint, (path, service.refused, service.lint)
    head, *lines = [json.loads(text) for text in path.read_bytes().splitlines()]
    head["at"] = "2026-11-21T12:00:00+00:00"
    request = lines[0]["request"]
    request["url"] = request["url"].replace(url, "http://service.test")
    request["headers"] = [
        each for each in request["headers"] if each[0] in ("content-type", "accept", "anthropic-version")
    ]
    text = "".join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in (head, *lines))
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


def _in_pieces(step: Step) -> Raw:
    """The same bytes, cut without regard to events and characters."""
    assert isinstance(step, Raw)
    dice = random.Random(7)
    data = b"".join(step.events)
    pieces: list[bytes] = []
    while data:
        size = dice.randint(1, 40)
        pieces.append(data[:size])
        data = data[size:]
    return Raw(pieces, delay=0.002)


if __name__ == "__main__":
    asyncio.run(main())
