"""The vendors the behaviour tests run over: how to start the strict service, how to reach it, which model."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pytest

from amanu.conversation import Conversation, Message, User
from amanu.models.anthropic import AnthropicModel
from amanu.models.base import Delta, Done, Model, Request, ToolSpec
from amanu.models.families import known
from amanu.models.gemini import GeminiModel
from amanu.models.openai_compatible import OpenAICompatibleModel, Quirks
from strict.anthropic import Anthropic
from strict.gemini import Gemini
from strict.http import Script, Service
from strict.openai import OpenAI

KEY = "sk-ant-test-0123456789abcdef0123456789"


@dataclass(frozen=True)
class Vendor:
    """One adapter. `lacks` names what the wire cannot express, so that its tests are left out."""

    name: str
    service: Callable[[Script], Service]
    model: Callable[[str, str], Model]
    """From key and base URL."""
    model_id: str
    lacks: frozenset[str] = field(default_factory=frozenset[str])
    """Of: "thoughts", "refusalDetail", "errorEvent", "rawArguments" (the service itself parses arguments),
    "key" (it needs none)."""


always = Quirks(streaming="always")


def _compatible(vendor: str, quirks: Quirks | None = None) -> Callable[[str, str], Model]:
    return lambda key, url: OpenAICompatibleModel(vendor, f"{url}/v1", key, quirks)


def _local(_: str, url: str) -> Model:
    """No key, and whole replies once a streamed call came malformed."""
    return OpenAICompatibleModel("ollama", f"{url}/v1")


VENDORS = [
    Vendor("anthropic", Anthropic, AnthropicModel, "anthropic:claude-opus-5-5"),
    Vendor("anthropic-adaptive", Anthropic, AnthropicModel, "anthropic:claude-sonnet-5"),
    Vendor("anthropic-budget", Anthropic, AnthropicModel, "anthropic:claude-haiku-4-5"),
    Vendor("gemini", Gemini, GeminiModel, "gemini:gemini-3.5-flash", frozenset({"rawArguments"})),
    Vendor("gemini-2.5", Gemini, GeminiModel, "gemini:gemini-2.5-pro", frozenset({"rawArguments"})),
    Vendor("openai", OpenAI, _compatible("openai"), "openai:gpt-5.1"),
    Vendor("openai-plain", OpenAI, _compatible("openai"), "openai:gpt-4.1"),
    Vendor(
        "google-openai",
        partial(OpenAI, gemini=True),
        _compatible("google-openai", always),
        "google-openai:gemini-3-pro",
    ),
    Vendor("deepseek", partial(OpenAI, deepseek=True), _compatible("deepseek", always), "deepseek:deepseek-v4-flash"),
    Vendor("local", partial(OpenAI, keyless=True), _local, "ollama:qwen3", frozenset({"rawArguments", "key"})),
]

TOOLS = (
    ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}}),
)


@asynccontextmanager
async def running(vendor: Vendor, script: Script, *, lint_ok: bool = False) -> AsyncGenerator[tuple[Service, Model]]:
    """The vendor's service and a model that talks to it. At the end no stream may be open, nothing may have been
    refused, and there may be no lint."""
    service = vendor.service(script)
    model = vendor.model(KEY, await service.start())
    try:
        yield service, model
    finally:
        await model.close()
        await service.stop()
    assert service.refused == []
    assert lint_ok or service.lint == []


def request(vendor: Vendor, *messages: Message, conversation: Conversation | None = None, **changed: Any) -> Request:
    """A request for the vendor's model; of `messages`, or of a conversation that goes on."""
    if conversation is None:
        conversation = Conversation(messages or [User(text="Hello.")])
    given: dict[str, Any] = {"system": "You help.", "tools": TOOLS, "session_id": "s1", **changed}
    return Request(model=known(vendor.model_id), conversation=conversation, **given)


async def deltas(model: Model, asked: Request) -> list[Delta]:
    """All that one attempt yields."""
    async with aclosing(cast("Any", model.stream(asked))) as stream:
        return [delta async for delta in stream]


async def answer(model: Model, asked: Request) -> Done:
    """The reply; checks that `Done` comes once and last."""
    seen = await deltas(model, asked)
    assert [isinstance(delta, Done) for delta in seen] == [False] * (len(seen) - 1) + [True]
    last = seen[-1]
    assert isinstance(last, Done)
    return last


def over_vendors(lacking: str = "") -> pytest.MarkDecorator:
    """Run the test over all vendors that can do what is named."""
    able = [vendor for vendor in VENDORS if lacking not in vendor.lacks]
    return pytest.mark.parametrize("vendor", able, ids=[vendor.name for vendor in able])
