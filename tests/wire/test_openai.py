"""What chat-completions servers really send, and what is peculiar to this wire. What all vendors share is in
`test_behaviours.py`."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.conversation import Conversation, Result, Results, Text, Thinking, User
from amanu.core.model import (
    ContextTooLong,
    ModelError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ReplyCompleted,
    Request,
    StreamBroken,
    TokenUsage,
    ToolSpec,
)
from amanu.core.model_families import model_info
from amanu.models.openai_compatible import EndpointQuirks, OpenAICompatibleModel
from amanu.models.openai_endpoint import LINGER, OpenAIEndpoint
from amanu.models.openai_reply import OpenAIReply
from amanu.models.retry import RetryPolicy, stream_with_retry
from amanu.models.sse import SseParser
from amanu_protocol.items import Source
from support.strict_services.http import Fault, Raw, Received, Say, Step, ToolUse
from support.strict_services.openai import OpenAI
from support.vendors import VENDORS, Vendor, request, running

TOOLS = (ToolSpec("f", "F.", {"type": "object", "properties": {}}),)


def asked(conversation: Conversation | None = None, model: str = "ollama:m") -> Request:
    conversation = conversation or Conversation([User(text="Hello.")])
    return Request(model=model_info(model), system="You help.", tools=TOOLS, conversation=conversation, session_id="s1")


async def reply_to(
    steps: Sequence[Step], quirks: EndpointQuirks | None = None, model: str = "ollama:m"
) -> ReplyCompleted:
    """The reply when the server sends these."""
    service = OpenAI(steps, keyless=True, gemini=True)
    client = OpenAICompatibleModel("ollama", await service.start() + "/v1", None, quirks or EndpointQuirks("always"))
    try:
        seen = [delta async for delta in client.stream(asked(model=model))]
    finally:
        await client.close()
        await service.stop()
    assert service.refused == service.lint == []
    assert isinstance(seen[-1], ReplyCompleted)
    return seen[-1]


def sent(*chunks: Any, done: bool = True) -> list[bytes]:
    """Events of these chunks; bytes as they are."""
    framed = [each if isinstance(each, bytes) else b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks]
    return [*framed, *([b"data: [DONE]\n\n"] if done else [])]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A piece of a call."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return delta(tool_calls=[{**fields, "function": function}])


STOP = delta("stop")
CALLS = [("f", {"a": 1}), ("g", {"b": 2})]

# What is sent, as chunks → the calls it means.
SHAPES: dict[str, tuple[list[Any], list[tuple[str, Any]]]] = {
    "as specified": (
        [
            piece("f", "", index=0, id="x"), piece(None, '{"a"', index=0), piece(None, ": 1}", index=0),
            piece("g", "", index=1, id="y"), piece(None, '{"b": 2}', index=1), delta("tool_calls"),
        ],
        CALLS,
    ),
    "finish says stop": ([piece("f", '{"a": 1}', index=0, id="x"), STOP], CALLS[:1]),
    "no index, ids": (
        [
            piece("f", '{"a"', id="x"), piece(None, ": 1}"), piece("g", '{"b"', id="y"), piece(None, ": 2}", id="y"),
            STOP,
        ],
        CALLS,
    ),
    "neither index nor id": ([piece("f", '{"a": 1}'), piece("g", '{"b"'), piece(None, ": 2}"), STOP], CALLS),
    "the same function twice": ([piece("f", '{"a": 1}'), piece("f", '{"a": 1}'), STOP], [CALLS[0], CALLS[0]]),
    "null index and id": (
        [piece("f", '{"a": 1}', index=None, id=None), piece("g", '{"b": 2}', index=None, id=None), STOP],
        CALLS,
    ),
    "id repeated in each piece": (
        [piece("f", '{"a"', index=0, id="x"), piece("f", ": 1}", index=0, id="x"), STOP],
        CALLS[:1],
    ),
    "one id for two calls": (
        [piece("f", '{"a": 1}', index=0, id="x"), piece("g", '{"b": 2}', index=1, id="x"), STOP],
        CALLS,
    ),
    "every call is number 0": (
        [piece("f", '{"a": 1}', index=0, id="x"), piece("g", '{"b": 2}', index=0, id="y"), STOP],
        CALLS,
    ),
    "interleaved": (
        [
            piece("f", '{"a"', index=0, id="x"), piece("g", '{"b"', index=1, id="y"), piece(None, ": 1}", index=0),
            piece(None, ": 2}", index=1), STOP,
        ],
        CALLS,
    ),
    "both in one chunk": (
        [
            delta(
                tool_calls=[
                    {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}},
                    {"index": 1, "id": "y", "function": {"name": "g", "arguments": '{"b": 2}'}},
                ]
            ),
            STOP,
        ],
        CALLS,
    ),
    "arguments as an object": ([piece("f", {"a": 1}, index=0, id="x"), STOP], CALLS[:1]),
    "no arguments": ([piece("f", index=0, id="x"), STOP], [("f", {})]),
    "null function": ([delta(tool_calls=[{"index": 0, "id": "x", "function": None}]), piece("f", "{}", index=0), STOP],
        [("f", {})]),
    "legacy function_call": (
        [delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": '{"a": 1}'}),
         delta("function_call")],
        CALLS[:1],
    ),
    "a whole message in a stream": (
        [{"choices": [{"message": {"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": {"a": 1}}}]},
                       "finish_reason": "tool_calls"}]}],
        CALLS[:1],
    ),
    "Gemini's name and args in tool_calls": (
        [delta(tool_calls=[{"id": "x", "name": "f", "args": {"a": 1}}, {"name": "g", "args": {"b": 2}}]), STOP],
        CALLS,
    ),
    "name and arguments beside the function": (
        [delta(tool_calls=[{"index": 0, "name": "f", "arguments": '{"a"'}]),
         delta(tool_calls=[{"index": 0, "arguments": ": 1}"}]), STOP],
        CALLS[:1],
    ),
    "function.args, an object": ([delta(tool_calls=[{"id": "x", "function": {"name": "f", "args": {"a": 1}}}]), STOP],
        CALLS[:1]),
    "function.args, a text": ([delta(tool_calls=[{"id": "x", "function": {"name": "f", "args": '{"a": 1}'}}]), STOP],
        CALLS[:1]),
    "functionCall in tool_calls": (
        [delta(tool_calls=[{"functionCall": {"name": "f", "args": {"a": 1}}},
                           {"function_call": {"name": "g", "args": {"b": 2}}}]), STOP],
        CALLS,
    ),
    "Gemini's content": (
        [delta(content={"role": "model", "parts": [{"text": "Hi"}, {"functionCall": {"name": "f", "args": {"a": 1}}}]}),
         STOP],
        CALLS[:1],
    ),
    "args beside an empty function.arguments": (
        [delta(tool_calls=[{"id": "x", "function": {"name": "f", "arguments": ""}, "args": {"a": 1}}]), STOP],
        CALLS[:1],
    ),
    "parameters": (
        [delta(tool_calls=[{"id": "x", "function": {"name": "f", "parameters": {"a": 1}}}]), STOP],
        CALLS[:1],
    ),
    "whole calls under one id": (
        [delta(tool_calls=[{"id": "x", "name": "f", "args": {"a": 1}}]),
         delta(tool_calls=[{"id": "x", "name": "g", "args": {"b": 2}}]), STOP],
        CALLS,
    ),
    "whole calls under one index": (
        [delta(tool_calls=[{"index": 0, "name": "f", "args": {"a": 1}}]),
         delta(tool_calls=[{"index": 0, "name": "g", "args": {"b": 2}}]), STOP],
        CALLS,
    ),
    "functionCall of the delta": ([delta(functionCall={"name": "f", "args": {"a": 1}}), STOP], CALLS[:1]),
    "functionCall parts": (
        [delta(parts=[{"text": "Let me see."}, {"functionCall": {"name": "f", "args": {"a": 1}}}]),
         delta(parts=[{"functionCall": {"name": "g", "args": {"b": 2}}}]), STOP],
        CALLS,
    ),
    "functionCall parts of the content, whole": (
        [{"choices": [{"message": {"content": [{"text": "Hm."}, {"functionCall": {"name": "f", "args": {"a": 1}}}]},
                       "finish_reason": "stop"}]}],
        CALLS[:1],
    ),
    "tool_use in the content": (
        [delta(content=[{"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}}]), STOP], CALLS[:1]
    ),
    "half a surrogate pair": ([piece("f", '{"a": "\\ud83d"}', index=0, id="x"), STOP], [("f", {"a": "?"})]),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "calls"), SHAPES.values(), ids=SHAPES)
async def test_calls_are_understood_and_can_be_answered(chunks: list[Any], calls: list[tuple[str, Any]]) -> None:
    service = OpenAI([Raw(sent(*chunks)), Say(text="Fine.")], keyless=True)
    model = OpenAICompatibleModel("ollama", await service.start() + "/v1", None, EndpointQuirks("always"))
    conversation = Conversation([User(text="Hello.")])
    done = [each async for each in model.stream(asked(conversation))][-1]
    assert isinstance(done, ReplyCompleted)
    assert [(each.tool, each.arguments) for each in done.message.calls] == calls
    assert done.stop == "calls"
    conversation.append(done.message)
    answers = [Result(call_id=each.call_id, tool=each.tool, text="ok") for each in done.message.calls]
    conversation.append(Results(results=tuple(answers)))
    conversation.check()
    assert isinstance([each async for each in model.stream(asked(conversation))][-1], ReplyCompleted)
    await model.close()
    await service.stop()
    assert service.refused == service.lint == []


HI = delta(content="Hi")

# What is sent → the text it means.
STREAMS: dict[str, tuple[list[bytes], str]] = {
    "choices null, then usage only": (sent(HI, {"choices": None}, STOP, {"choices": [], "usage": {}}), "Hi"),
    "null for no calls": (sent(delta(content="Hi", functionCall=None, tool_calls=None), STOP), "Hi"),
    "null for no call in a part": (sent(delta(parts=[{"text": "Hi", "functionCall": None}]), STOP), "Hi"),
    "no [DONE]": (sent(HI, STOP, done=False), "Hi"),
    "[DONE] and no finish_reason": (sent(HI), "Hi"),
    "comments between events": (sent(b": OPENROUTER PROCESSING\n\n", HI, b": x\n\n", STOP), "Hi"),
    "no space after data:": ([each.replace(b"data: ", b"data:") for each in sent(HI, STOP)], "Hi"),
    "CRLF": ([each.replace(b"\n", b"\r\n") for each in sent(HI, STOP)], "Hi"),
    "CR": ([each.replace(b"\n", b"\r") for each in sent(HI, STOP)], "Hi"),
    "event and id fields": (sent(b'event: x\nid: 1\ndata: {"choices": []}\n\n', HI, STOP), "Hi"),
    "U+2028 is text": (
        sent(b'data: {"choices":[{"delta":{"content":"a\xe2\x80\xa8b"}}]}\n\n', STOP), "a\u2028b",
    ),
    "an event over two lines": (sent(b'data: {"choices": [{"delta":\ndata: {"content": "Hi"}}]}\n\n', STOP), "Hi"),
    "last event without blank line": ([b"".join(sent(HI, STOP, done=False)).rstrip()], "Hi"),
    "bytes in ones": ([bytes([byte]) for byte in b"".join(sent(HI, STOP))], "Hi"),
    "null content, empty deltas": (sent(delta(content=None), delta(), HI, delta(content=""), STOP), "Hi"),
    "content as parts": (sent(delta(content=[{"type": "text", "text": "Hi"}]), STOP), "Hi"),
    "a second choice": (sent(HI, {"choices": [{"index": 1, "delta": {"content": "no"}}]}, STOP), "Hi"),
    "reset after the end": (sent(HI, STOP, b"data: [DONE]\n\n", done=False), "Hi"),
    "half a surrogate pair": (sent(delta(content="H\ud83di"), STOP), "H?i"),
}  # fmt: skip


@pytest.mark.parametrize(("events", "text"), STREAMS.values(), ids=STREAMS)
async def test_streams_are_understood(events: list[bytes], text: str) -> None:
    done = await reply_to([Raw(events)])
    assert (done.message.text, done.stop) == (text, "end")


CACHED = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}

# What is counted → the tokens and the dollars it means (OpenRouter's "Usage Accounting").
USAGES: dict[str, tuple[dict[str, Any], TokenUsage]] = {
    "reads": ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}}, TokenUsage(40, 60)),
    "writes": (CACHED, TokenUsage(10, 60, 30)),
    "more in the cache than in the prompt": ({**CACHED, "prompt_tokens": 50}, TokenUsage(0, 60, 30)),
    "searches": ({"server_tool_use": {"web_search_requests": 2}}, TokenUsage(searches=2)),
    "a cost": ({"cost": 0.0123}, TokenUsage(told_usd=0.0123)),
    "a whole number of dollars": ({"cost": 2}, TokenUsage(told_usd=2)),
    "nothing": ({"cost": 0}, TokenUsage()),
    "no cost": ({"cost": None, "cost_details": None, "server_tool_use": None}, TokenUsage()),
    "a cost in words": ({"cost": "free"}, TokenUsage()),
    "a cost below nothing": ({"cost": -1.0}, TokenUsage()),
    "the user's own key": (
        {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}},
        TokenUsage(told_usd=0.021),
    ),
    "the provider's part of the cost": (
        {"cost": 0.03, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}},
        TokenUsage(told_usd=0.03),
    ),
}


@pytest.mark.parametrize(("counted", "expected"), USAGES.values(), ids=USAGES)
async def test_usage_is_understood(counted: dict[str, Any], expected: TokenUsage) -> None:
    done = await reply_to([Raw(sent(HI, STOP, {"choices": [], "usage": counted}))])
    assert done.usage == expected


THOUGHTS: dict[str, list[Any]] = {
    "reasoning_content": [delta(reasoning_content="Let me "), delta(reasoning_content="see.")],
    "reasoning": [delta(reasoning="Let me "), delta(reasoning="see.", content="")],
    "reasoning and its details": [
        delta(reasoning="Let me ", reasoning_details=[{"type": "reasoning.text", "text": "Let me ", "index": 0}]),
        delta(reasoning="see.", reasoning_details=[{"type": "reasoning.text", "text": "see.", "index": 0}]),
    ],
    "details alone": [
        delta(reasoning_details=[{"type": "reasoning.summary", "summary": "Let me ", "index": 0}]),
        delta(reasoning_details=[{"type": "reasoning.summary", "summary": "see.", "index": 0}]),
    ],
}


ANNOTATIONS: list[tuple[Any, list[Source]]] = [
    (
        {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "content": "so"}},
        [Source(title="A", url="https://a.example", quote="so")],
    ),
    (
        {"type": "url_citation", "url_citation": {"url": "https://a.example"}},
        [Source(title="https://a.example", url="https://a.example")],
    ),
    ({"type": "file_citation", "file_citation": {"filename": "a.pdf", "index": 3}}, [Source(title="a.pdf")]),
    ({"type": "url_citation", "url_citation": {"url": 5}}, []),
    ({"type": "file", "file": {"hash": "x"}}, []),
    ("text", []),
]


@pytest.mark.parametrize(("annotation", "sources"), ANNOTATIONS)
async def test_annotations_are_sources(annotation: Any, sources: list[Source]) -> None:
    done = await reply_to([Raw(sent(HI, delta(annotations=[annotation]), STOP))])
    assert list(done.sources) == sources


@pytest.mark.parametrize("chunks", THOUGHTS.values(), ids=THOUGHTS)
async def test_thoughts_are_found_wherever_they_are(chunks: list[Any]) -> None:
    done = await reply_to([Raw(sent(*chunks, HI, STOP))])
    assert done.message.parts == (Thinking(text="Let me see."), Text(text="Hi"))


async def test_reasoning_details_go_back_as_they_came() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "a", "index": 0, "format": "x"},
        {"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "zz", "index": 1},
    ]
    chunks = [delta(reasoning_details=[each]) for each in pieces]
    service = OpenAI([Raw(sent(*chunks, HI, STOP)), Say(text="Fine.")], keyless=True)
    model = OpenAICompatibleModel("openrouter", await service.start() + "/v1", None)
    conversation = Conversation([User(text="Hello.")])
    done = [each async for each in model.stream(asked(conversation))][-1]
    assert isinstance(done, ReplyCompleted)
    conversation.append(done.message)
    conversation.append(User(text="Again."))
    assert [each async for each in model.stream(asked(conversation))]
    back = service.requests[1].json["messages"][2]["reasoning_details"]
    await model.close()
    await service.stop()
    assert back == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "format": "x", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "zz", "index": 1},
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thoughts_go_back_in_the_field_they_came_in(field: str) -> None:
    chunks = [delta(**{field: "Let me "}), delta(**{field: "see.", "content": None})]
    done = await reply_to([Raw(sent(*chunks, HI, STOP))])
    native = done.message.native
    assert native is not None
    assert native.blocks == {"role": "assistant", "content": "Hi", field: "Let me see."}


async def test_a_whole_reply_where_a_stream_was_asked_for() -> None:
    """A server that does not stream answers with one JSON object; a bare one is no event stream."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.I)
        await reader.readexactly(int(length[1]) if length else 0)
        body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    model = OpenAICompatibleModel("ollama", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/")
    done = [each async for each in model.stream(asked())][-1]
    assert isinstance(done, ReplyCompleted)
    assert done.message.text == "Hi"
    await model.close()
    server.close()


async def test_a_server_that_never_ends_the_stream_costs_little() -> None:
    started = asyncio.get_running_loop().time()
    done = await reply_to([Say(text=["Hi"], fault=Fault("silence", after=3))])
    assert done.message.text == "Hi"
    assert asyncio.get_running_loop().time() - started < LINGER + 1


DAILY = {
    "code": 429,
    "message": "You exceeded your current quota, please check your plan. Please retry in 20s.",
    "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}],
}
"""As Google's compatible endpoint says it."""

BROKEN: dict[str, tuple[Step, type[ModelError]]] = {
    "neither finish nor [DONE]": (Raw(sent(HI, done=False)), StreamBroken),
    "nothing at all": (Raw([]), StreamBroken),
    "finish says error": (Raw(sent(HI, delta("error"))), StreamBroken),
    "not JSON": (Raw(sent(b"data: {oops\n\n")), StreamBroken),
    "no object": (Raw(sent([1, 2])), StreamBroken),
    "ill-typed": (Raw(sent({"choices": ["what"]})), StreamBroken),
    "ill-typed delta": (Raw(sent(delta(content={"a": 1}))), StreamBroken),
    "ill-typed name": (Raw(sent(piece(5, "{}", index=0), STOP)), StreamBroken),  # type: ignore[arg-type]
    "error with a status": (Raw(sent(HI, {"error": {"code": 429, "message": "slow"}})), RateLimited),
    "error with a word": (Raw(sent(HI, {"error": {"code": "rate_limit_exceeded", "message": "slow"}})), RateLimited),
    "error as text": (Raw(sent(HI, {"error": "something"})), Overloaded),
    "error of length": (
        Raw(sent({"error": {"message": "This model's maximum context length is 9 tokens"}})), ContextTooLong,
    ),
    "no credit": (Fault("status", status=429, code="insufficient_quota", message="You exceeded."), QuotaExhausted),
    "no credit, OpenRouter": (
        Fault("status", status=402, message="This request requires more credits."), QuotaExhausted,
    ),
    "a day's quota, Google": (Raw(sent({"error": DAILY})), QuotaExhausted),
    "context, llama.cpp": (
        Fault("status", status=400, message="the request exceeds the available context size"), ContextTooLong,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("step", "error"), BROKEN.values(), ids=BROKEN)
async def test_what_is_no_reply_is_a_typed_error(step: Step, error: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_to([step])
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("said", "wait"),
    [("Please try again in 20s.", 20), ("try again in 1m30s", 90), ("try again in 250ms", 0.25), ("no", None)],
)
async def test_the_wait_is_read_from_the_words(said: str, wait: float | None) -> None:
    with pytest.raises(RateLimited) as caught:
        await reply_to([Fault("status", status=429, message=said)])
    assert caught.value.retry_after == wait


async def test_a_refusal_is_no_answer() -> None:
    done = await reply_to([Raw(sent(delta(refusal="I can"), delta(refusal="not."), STOP))])
    assert (done.stop, done.detail) == ("refused", "I cannot.")


STOPS: dict[str, tuple[str, bool]] = {
    # finish reason of a text → how it ended, whether the window is full
    "stop": ("end", False),
    "something_new": ("end", False),
    "length": ("outputLimit", False),
    "model_context_window_exceeded": ("outputLimit", True),
    "sensitive": ("refused", False),
}


@pytest.mark.parametrize(("finish", "stop", "full"), [(name, *end) for name, end in STOPS.items()], ids=STOPS)
async def test_finish_reasons(finish: str, stop: str, full: bool) -> None:
    done = await reply_to([Raw(sent(HI, delta(finish)))])
    assert (done.message.text, done.stop, done.window_full) == ("Hi", stop, full)


CODES: dict[str, dict[str, Any]] = {
    # errors whose words alone do not say that the request is too long
    "LM Studio, OpenAI's proxies": {"code": "context_length_exceeded", "message": "Bad request."},
    "llama.cpp": {"code": 400, "type": "exceed_context_size_error", "message": "Bad request."},
}


@pytest.mark.parametrize("error", CODES.values(), ids=CODES)
async def test_a_code_says_as_much_as_words(error: dict[str, Any]) -> None:
    endpoint = OpenAIEndpoint("Vendor", "http://127.0.0.1:9/v1")
    assert isinstance(endpoint.error(400, {"error": error}), ContextTooLong)


# Whole replies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", ["untilBroken", "always", "never"])
async def test_a_broken_streamed_call_is_asked_for_again_whole(streaming: Any) -> None:
    broken = Say(text="Hm.", calls=[ToolUse("f", '{"a": ')])
    good = Say(text="Now.", thought="So.", calls=[ToolUse("f", {"a": 1})], usage={"input": 7})
    service = OpenAI([broken, good, good], keyless=True)
    model = OpenAICompatibleModel("vllm", await service.start() + "/v1", None, EndpointQuirks(streaming))
    quick = RetryPolicy(first_delay=0)
    dones: list[ReplyCompleted] = []
    for _ in range(2):
        dones += [each async for each in stream_with_retry(model, asked(), quick) if isinstance(each, ReplyCompleted)]
    await model.close()
    await service.stop()
    assert service.refused == service.lint == []
    asked_streamed = [each.json["stream"] for each in service.requests]
    arguments = [each.message.calls[0].arguments for each in dones]
    match streaming:
        case "untilBroken":
            assert (asked_streamed, arguments) == ([True, False, False], [{"a": 1}, {"a": 1}])
            assert (dones[0].message.parts[:2], dones[0].usage.input) == ((Thinking(text="So."), Text(text="Now.")), 7)
        case "always":
            assert (asked_streamed, arguments) == ([True, True], ['{"a": ', {"a": 1}])
        case _:
            assert (asked_streamed, arguments) == ([False, False], ['{"a": ', {"a": 1}])


ANNOUNCED = Say(text="I read it now.", stop="calls")
CALLED = Say(calls=[ToolUse("f", {"a": 1})])
LOST: dict[str, tuple[Sequence[Step], list[bool], int]] = {
    # replies that announce calls and have none, then others → was each streamed, calls in the end
    "the stream lost it": ([ANNOUNCED, CALLED], [True, False], 1),
    "there is none": ([ANNOUNCED, ANNOUNCED], [True, False], 0),
    "not even text": ([Say(stop="calls")] * 3 + [Say(text="Well.")], [True, False, False, False], 0),
}


@pytest.mark.parametrize("case", LOST)
async def test_calls_that_are_announced_and_do_not_come_are_asked_for_once_more_whole(case: str) -> None:
    steps, streamed, calls = LOST[case]
    service = OpenAI([*steps, CALLED], keyless=True)
    model = OpenAICompatibleModel("vllm", await service.start() + "/v1")
    quick = RetryPolicy(first_delay=0)
    try:
        done = [each async for each in stream_with_retry(model, asked(), quick)][-1]
        assert isinstance(done, ReplyCompleted) and len(done.message.calls) == calls
        assert done.stop == ("calls" if calls else "end")
        assert [each.json["stream"] for each in service.requests] == streamed
        _ = [each async for each in stream_with_retry(model, asked(), quick)]
        assert service.requests[-1].json["stream"], "the next request is streamed again"
    finally:
        await model.close()
        await service.stop()


CONCEDING = [vendor for vendor in VENDORS if vendor.lacks.get("rawArguments") == "asks again for the whole reply"]
SAYS: dict[str, Step] = {
    "b": Say(calls=[ToolUse("read_file", '{"path": ')]),
    "g": Say(calls=[ToolUse("read_file", {"path": "a"})]),
    "f": Fault("status", status=503),
}
PIECES = {
    # Each word is a turn: the model, A or B, and what its service says: a broken call, a good one, or a failure. Each
    # letter is a request: for a stream, or for the whole reply.
    "Ag Ag Ag": "sss",
    "Abg Ag Ag Ag Ag Ag Ag": "swwwwwss",
    "Abg Bg Ag": "swsw",
    "Abg Bbg Ag Bg": "swswww",
    "Abb Ag Ag Ag Ag Ag": "swwwwws",
    "Abg Ag Ag Ag Ag Abg Ag": "swwwwwsww",
    "Abfg Ag Ag Ag Ag Ag": "swwwwwws",
}


@pytest.mark.parametrize(("turns", "asked_for"), PIECES.items())
@pytest.mark.parametrize("vendor", CONCEDING, ids=[vendor.name for vendor in CONCEDING])
async def test_a_broken_streamed_call_stops_streaming_for_that_model_and_a_few_replies(
    vendor: Vendor, turns: str, asked_for: str
) -> None:
    async with running(vendor, [SAYS[word] for turn in turns.split() for word in turn[1:]]) as (service, model):
        for turn in turns.split():
            info = model_info(vendor.model_id).model_copy(update={"model_id": f"{vendor.model_id}-{turn[0]}"})
            one = replace(request(vendor), model=info)
            seen = [each async for each in stream_with_retry(model, one, RetryPolicy(first_delay=0))]
            assert isinstance(seen[-1], ReplyCompleted)
        assert "".join("s" if each.json["stream"] else "w" for each in service.requests) == asked_for


# The request -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "fields", "absent"),
    [
        ("openai:gpt-5.1", {"max_completion_tokens": 64_000, "reasoning_effort": "medium"}, {"max_tokens"}),
        ("openai:gpt-5-mini", {"reasoning_effort": "medium"}, {"max_tokens"}),
        ("openai:gpt-4.1", {"max_tokens": 16_384}, {"max_completion_tokens", "reasoning_effort"}),
        ("ollama:qwen3", {"max_tokens": 8_192, "model": "qwen3"}, {"reasoning_effort", "cache_control"}),
        (
            "openrouter:anthropic/claude-opus-5.5",
            {"cache_control": {"type": "ephemeral"}, "reasoning": {"effort": "medium"}},
            {"reasoning_effort"},
        ),
        ("openrouter:google/gemini-4-argon", {"reasoning": {"effort": "medium"}}, {"cache_control"}),
        ("openrouter:openai/gpt-6.2-sol", {"reasoning": {"effort": "medium"}}, {"reasoning_effort"}),
        ("openrouter:deepseek/deepseek-v4-pro", {}, {"cache_control", "reasoning"}),
        ("vllm:org/model:tag", {"model": "org/model:tag"}, {"reasoning_effort"}),
    ],
)
async def test_the_request_says_what_the_family_takes(model_id: str, fields: dict[str, Any], absent: set[str]) -> None:
    vendor = model_id.partition(":")[0]
    local = vendor != "openai"
    service = OpenAI([Say(text="Hi.")], keyless=local)
    model = OpenAICompatibleModel(vendor, await service.start() + "/v1", None if local else "k")
    assert [each async for each in model.stream(asked(model=model_id))]
    body = service.requests[0].json
    await model.close()
    await service.stop()
    assert service.refused == service.lint == []
    assert {name: body.get(name) for name in fields} == fields
    assert not absent & body.keys()
    assert ("prompt_cache_key" in body) is (vendor == "openai")


# Pieces ------------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab:\u2028 ", min_size=1), min_size=1), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_events_are_the_same_however_they_are_cut(texts: list[str], end: bytes, data: st.DataObject) -> None:
    whole = b"".join(b"data: " + text.encode() + end + end for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    events = SseParser()
    seen: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        seen += events.feed(whole[start:stop])
    assert [each.decode() for each in seen + events.end()] == texts


@given(st.dictionaries(st.text(), st.text()), st.data())
def test_arguments_are_the_same_however_they_are_cut(arguments: dict[str, str], data: st.DataObject) -> None:
    written = json.dumps(arguments)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    reply = OpenAIReply(asked(), "test")
    spans = zip([0, *cuts], [*cuts, len(written)], strict=True)
    chunks = [piece("f" if start == 0 else None, written[start:stop], index=0) for start, stop in spans]
    for chunk in [*chunks, delta("tool_calls")]:
        list(reply.add(chunk))
    assert reply.done().message.calls[0].arguments == arguments


# The service itself ------------------------------------------------------------------------------------

USER = {"role": "user", "content": "Go."}
TOOL = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}}}


def called(*ids: str, arguments: Any = "{}", name: str = "f", **more: Any) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": name, "arguments": arguments}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answered(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


@pytest.mark.parametrize(
    ("verdict", "changed"),
    [
        ("fine", {}),
        ("fine", {"messages": [USER, called("a", "b"), answered("a"), answered("b"), USER]}),
        ("refused", {"messages": []}),
        ("refused", {"novelty": 1}),
        ("refused", {"model": ""}),
        ("refused", {"stream_options": {"include_usage": True}}),
        ("refused", {"model": "gpt-5.1", "max_tokens": 5}),
        ("refused", {"reasoning_effort": "low"}),
        ("refused", {"tools": []}),
        ("refused", {"tools": [TOOL, TOOL]}),
        ("refused", {"tools": [{**TOOL, "function": {"name": "a b"}}]}),
        ("refused", {"messages": [{"role": "bot", "content": "x"}]}),
        ("refused", {"messages": [{"role": "assistant", "content": None}]}),
        ("refused", {"messages": [{**USER, "novelty": 1}]}),
        ("refused", {"messages": [USER, called("a")]}),
        ("refused", {"messages": [USER, called("a"), USER]}),
        ("refused", {"messages": [USER, called("a", "b"), answered("a"), USER]}),
        ("refused", {"messages": [USER, answered("a")]}),
        ("refused", {"messages": [USER, called("a"), answered("a"), answered("a")]}),
        ("refused", {"messages": [USER, called("a", "a"), answered("a"), answered("a")]}),
        ("refused", {"messages": [USER, called("a" * 41), answered("a" * 41)]}),
        ("refused", {"messages": [USER, called("a", arguments={}), answered("a")]}),
        ("refused", {"messages": [USER, called("a", arguments="{"), answered("a")]}),
        ("refused", {"messages": [USER, called("a", name="a b"), answered("a")]}),
        ("refused", {"messages": [USER, called("a", reasoning_content="x"), answered("a")]}),
        ("lint", {"messages": [USER, called("a", "b"), answered("b"), answered("a")]}),
        ("lint", {"messages": [USER, called("a"), answered("a")], "tools": None}),
        ("lint", {"messages": [USER, {"role": "assistant", "content": ""}, USER]}),
    ],
)
def test_the_strict_service_is_strict(verdict: str, changed: dict[str, Any]) -> None:
    body: dict[str, Any] = {"model": "m", "messages": [USER], "tools": [TOOL], **changed}
    service = OpenAI()
    headers = {"authorization": "Bearer k", "content-type": "application/json"}
    sent = Received("POST", "/v1/chat/completions", "", headers, json.dumps(body).encode(), 0.0)
    assert (service.check(sent) is not None) is (verdict == "refused")
    assert bool(service.lint) is (verdict == "lint")
    del sent.headers["authorization"]
    without_key = service.check(sent)
    assert without_key is not None and without_key.status == 401
