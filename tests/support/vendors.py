"""The vendors the behaviour tests run over: how to start the strict service, how to reach it, which model."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from amanu.core.conversation import Assistant, Conversation, Message, Result, Results, User
from amanu.core.model import Delta, Model, RemoteModel, ReplyCompleted, Request, ToolSpec
from amanu.core.model_families import model_info
from amanu.models.anthropic import AnthropicModel
from amanu.models.gemini import GeminiModel
from amanu.models.offered import OfferedModels
from amanu.models.openai import OpenAIModel
from amanu.models.openai_compatible import EndpointQuirks, OpenAICompatibleModel
from amanu.models.openai_responses import ResponsesModel
from amanu.models.vscode import VSCodeModel
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Script, Service
from support.strict_services.openai import OpenAI
from support.strict_services.responses import Responses
from support.strict_services.vscode import VSCode

KEY = "sk-ant-test-0123456789abcdef0123456789"


Column = Literal[
    "Claude 5.5",
    "Claude before",
    "Gemini 4",
    "Gemini 3",
    "Gemini 2.5",
    "OpenAI Responses",
    "ChatGPT plan",
    "OpenRouter",
    "DeepSeek, Kimi",
    "other compatible",
    "VS Code",
]

Need = Literal[
    "thoughts",  # they are shown
    "rawArguments",  # of a call, as the model wrote them, JSON or not
    "key",  # without one it does not answer
    "eyes",  # it can see
    "errorEvent",  # an error can come after a 200
    "redaction",  # thoughts come that nobody may read
    "signatures",  # on parts of a reply
    "whole",  # a reply can be asked for in one piece
    "limit",  # a request says how long the reply may be
    "sibling",  # another model is reached by the same service
    "binding",  # thoughts are valid only after what they were made with
    "search",  # the service itself can search the web
    "http",  # it is reached by HTTP: statuses, connections, recordings
    "counts",  # it counts tokens
    "stop",  # it tells why a reply ended
    "sources",  # it tells what a text rests on
]
"""What a behaviour may be about that not every wire has."""


@dataclass(frozen=True)
class Vendor:
    """One adapter, with one kind of model."""

    name: str
    service: Callable[[Script], Service]
    model: Callable[[str, str], RemoteModel]
    """From key and base URL."""
    model_id: str
    column: Column
    """Of the table in docs/models.md."""
    lacks: Mapping[Need, str] = field(default_factory=dict[Need, str])
    """What the wire does not have, and why, so that tests about it are left out."""


always = EndpointQuirks(streaming="always")


def _compatible(vendor: str, quirks: EndpointQuirks | None = None) -> Callable[[str, str], RemoteModel]:
    return lambda key, url: OpenAICompatibleModel(vendor, f"{url}/v1", key, quirks)


def _openai(key: str, url: str) -> RemoteModel:
    return OpenAIModel("OpenAI", f"{url}/v1", key)


def _plan(key: str, url: str) -> RemoteModel:
    return ResponsesModel("OpenAI", f"{url}/v1", key, on_plan=True, searches=True)


def _local(_: str, url: str) -> RemoteModel:
    """No key, and a few whole replies after a streamed call that came malformed."""
    return OpenAICompatibleModel("Ollama", f"{url}/v1")


def _offered(_: str, url: str) -> RemoteModel:
    """What the VS Code at that address offers; nothing, if there is none."""
    return VSCodeModel(VSCode.open[url].offered if url in VSCode.open else OfferedModels())


_thinking_in_text = partial(OpenAI, deepseek=True)

_NO_SEARCH = "the service has no search"
_UNBOUND: Mapping[Need, str] = {"binding": "thinking is bound to nothing before it"}
_UNSIGNED: Mapping[Need, str] = {"signatures": "signs whole thinking blocks, not parts"}
_OPEN: Mapping[Need, str] = {"redaction": "no thoughts are sent that nobody may read"}
_GEMINI: Mapping[Need, str] = {**_UNBOUND, **_OPEN, "rawArguments": "the service itself parses arguments"}
_RESPONSES: Mapping[Need, str] = {
    **_UNBOUND,
    "redaction": "what nobody may read is encrypted beside the summary",
    "signatures": "encrypts whole items, signs no parts",
}
_OPENAI: Mapping[Need, str] = {**_UNBOUND, **_OPEN, "signatures": "has none, but for a Gemini behind it"}
_PLAN: Mapping[Need, str] = {
    **_RESPONSES,
    "whole": "every reply must be streamed",
    "limit": "takes no limit",
    "sibling": "the models of OpenAI Responses",
}
_ROUTED: Mapping[Need, str] = {
    **_OPENAI,
    "eyes": "what a routed model can see is not known",
    "rawArguments": "asks again for the whole reply",
}

VENDORS = [
    Vendor("anthropic", Anthropic, AnthropicModel, "anthropic:claude-opus-5-5", "Claude 5.5", _UNSIGNED),
    Vendor(
        "anthropic-adaptive",
        Anthropic,
        AnthropicModel,
        "anthropic:claude-sonnet-5",
        "Claude before",
        {**_UNSIGNED, **_UNBOUND},
    ),
    Vendor(
        "anthropic-budget",
        Anthropic,
        AnthropicModel,
        "anthropic:claude-haiku-4-5",
        "Claude before",
        {**_UNSIGNED, **_UNBOUND},
    ),
    Vendor("gemini-4", Gemini, GeminiModel, "gemini:gemini-4-argon", "Gemini 4", _GEMINI),
    Vendor("gemini", Gemini, GeminiModel, "gemini:gemini-3.5-flash", "Gemini 3", _GEMINI),
    Vendor(
        "gemini-2.5",
        Gemini,
        GeminiModel,
        "gemini:gemini-2.5-pro",
        "Gemini 2.5",
        {**_GEMINI, "signatures": "may be left out"},
    ),
    Vendor("openai", Responses, _openai, "openai:gpt-6.2-sol", "OpenAI Responses", _RESPONSES),
    Vendor("openai-5.4", Responses, _openai, "openai:gpt-5.4", "OpenAI Responses", _RESPONSES),
    Vendor("openai-plain", Responses, _openai, "openai:gpt-4.1", "OpenAI Responses", _RESPONSES),
    Vendor(
        "chatgpt-plan",
        partial(Responses, plan=lambda token: token == KEY),
        _plan,
        "openai:gpt-6.1-terra",
        "ChatGPT plan",
        _PLAN,
    ),
    Vendor(
        "openrouter",
        OpenAI,
        _compatible("OpenRouter", EndpointQuirks(searches=True)),
        "openrouter:openai/gpt-5.5",
        "OpenRouter",
        _ROUTED,
    ),
    Vendor(
        "openrouter-plain",
        OpenAI,
        _compatible("OpenRouter", EndpointQuirks(searches=True)),
        "openrouter:openai/gpt-4.1",
        "OpenRouter",
        _ROUTED,
    ),
    Vendor(
        "openrouter-claude",
        OpenAI,
        _compatible("OpenRouter", EndpointQuirks(searches=True)),
        "openrouter:anthropic/claude-opus-5-5",
        "OpenRouter",
        _ROUTED,
    ),
    Vendor(
        "google-openai",
        partial(OpenAI, gemini=True),
        _compatible("google-openai", always),
        "google-openai:gemini-3-pro",
        "other compatible",
        {**_UNBOUND, **_OPEN, "sibling": "one model each", "search": _NO_SEARCH},
    ),
    Vendor(
        "deepseek",
        _thinking_in_text,
        _compatible("deepseek", always),
        "deepseek:deepseek-v4-flash",
        "DeepSeek, Kimi",
        {**_OPENAI, "eyes": "the model cannot see", "search": _NO_SEARCH},
    ),
    Vendor(
        "kimi",
        _thinking_in_text,
        _compatible("moonshot", always),
        "moonshot:kimi-k3",
        "DeepSeek, Kimi",
        {**_OPENAI, "eyes": "the model cannot see", "search": _NO_SEARCH},
    ),
    Vendor(
        "local",
        partial(OpenAI, keyless=True),
        _local,
        "ollama:qwen3",
        "other compatible",
        {
            **_OPENAI,
            "rawArguments": "asks again for the whole reply",
            "key": "needs none",
            "eyes": "cannot see",
            "search": _NO_SEARCH,
        },
    ),
    Vendor(
        "vscode",
        VSCode,
        _offered,
        "vscode:copilot/gpt-5",
        "VS Code",
        {
            **_UNBOUND,
            **_OPEN,
            "thoughts": "VS Code keeps thoughts to itself",
            "rawArguments": "VS Code itself parses arguments",
            "key": "needs none",
            "eyes": "VS Code does not tell which models can see",
            "signatures": "signs nothing",
            "whole": "every reply is streamed",
            "limit": "takes no limit",
            "sibling": "one model each",
            "search": _NO_SEARCH,
            "http": "VS Code is a client of the daemon, not a server; its faults have tests of their own",
            "counts": "VS Code tells no counts; they are estimated",
            "stop": "VS Code does not tell why a reply ended",
            "sources": "VS Code tells no sources",
        },
    ),
]

TOOLS = (
    ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("grep", "Search.", {"type": "object", "properties": {"pattern": {"type": "string"}}}),
)


@asynccontextmanager
async def running(
    vendor: Vendor, script: Script, *, lint_ok: bool = False
) -> AsyncGenerator[tuple[Service, RemoteModel]]:
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
    return Request(model=model_info(vendor.model_id), conversation=conversation, **given)


async def deltas(model: Model, asked: Request) -> list[Delta]:
    """All that one attempt yields."""
    async with aclosing(cast("Any", model.stream(asked))) as stream:
        return [delta async for delta in stream]


async def answer(model: Model, asked: Request) -> ReplyCompleted:
    """The reply; checks that `Done` comes once and last."""
    seen = await deltas(model, asked)
    assert [isinstance(delta, ReplyCompleted) for delta in seen] == [False] * (len(seen) - 1) + [True]
    last = seen[-1]
    assert isinstance(last, ReplyCompleted)
    return last


def results(reply: Assistant, *texts: str, is_error: bool = False, notes: tuple[str, ...] = ()) -> Results:
    """Results for the calls of the reply, in order; the last text answers all that remain."""
    return Results(
        results=tuple(
            Result(call_id=call.call_id, tool=call.tool, text=texts[min(at, len(texts) - 1)], is_error=is_error)
            for at, call in enumerate(reply.calls)
        ),
        notes=notes,
    )
