"""What is particular to Gemini: signatures, chunks of all kinds, finish reasons, quotas. What all vendors share is in
`test_behaviours.py`."""

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from amanu.core.conversation import Assistant, Call, Conversation, Native, Result, Results, Text, Thinking, User
from amanu.core.model import (
    AuthFailed,
    ModelError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ReplyCompleted,
    RequestRefused,
    StreamBroken,
)
from amanu.models.gemini import GeminiModel
from amanu.models.gemini_reply import GeminiReply
from amanu_protocol.items import Source
from support.strict_services.gemini import Gemini
from support.strict_services.http import Fault, Raw, Received, Say, Step, ToolUse
from support.vendors import KEY, VENDORS, Vendor, answer, request, running

G3 = next(vendor for vendor in VENDORS if vendor.name == "gemini")
G25 = next(vendor for vendor in VENDORS if vendor.name == "gemini-2.5")
SIGNATURE = base64.b64encode(b"\xfb\xff\xbfsignature").decode()
assert "+" in SIGNATURE and "/" in SIGNATURE  # where the URL-safe alphabet differs


def read(path: str) -> ToolUse:
    return ToolUse("read_file", {"path": path})


def results(reply: Assistant) -> Results:
    return Results(results=tuple(Result(call_id=each.call_id, tool=each.tool, text="ok") for each in reply.calls))


def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return event({"candidates": [candidate], **more})


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"


HI = {"text": "Hi"}
STOP = chunk({"text": ""}, finish="STOP")
CALL = {"functionCall": {"name": "read_file", "args": {"path": "a"}}}


async def reply_to(steps: Sequence[Step], vendor: Vendor = G3, *messages: Any) -> ReplyCompleted:
    async with running(vendor, steps, lint_ok=True) as (_, model):
        return await answer(model, request(vendor, *messages))


# Signatures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call_ids", [True, False])
@pytest.mark.parametrize("vendor", [G3, G25], ids=["3", "2.5"])
async def test_signatures_go_back_on_their_very_part(vendor: Vendor, call_ids: bool) -> None:
    """The strict service refuses a missing or unknown one, and lints one that moved."""
    script = [
        Say(thought="Hm.", calls=[read("a"), ToolUse("grep", {"pattern": "x"})]),
        Say(thought="Hm.", text="And", calls=[read("b")]),
        Say(calls=[read("c")]),
        Say(thought="Hm.", text="Done."),
        Say(thought="Hm.", calls=[read("d")]),
        Say(text="End."),
    ]
    async with running(vendor, script) as (service, model):
        cast("Any", service).call_ids = call_ids
        conversation = Conversation([User(text="Hello.")])
        for step in range(6):
            done = await answer(model, request(vendor, conversation=conversation))
            conversation.append(done.message)
            conversation.append(results(done.message) if done.message.calls else User(text=f"Go on {step}."))
        last = service.requests[-1].json["contents"]
    model_parts = [part for content in last if content["role"] == "model" for part in content["parts"]]
    signed = ["thoughtSignature" in part for part in model_parts]
    if vendor is G25:
        assert not any(signed)
    else:  # call, sibling | text, call | call that was issued none, in a loop that is over | text, empty text | call
        assert signed == [True, False, False, True, False, False, True, True]
        third = service.requests[3].json["contents"][5]["parts"]
        assert third[0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert all("id" in part["functionCall"] for part in model_parts if "functionCall" in part) is call_ids
    assert not any(part.get("thought") for part in model_parts)


PARTS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "on a call": ([{**CALL, "thoughtSignature": SIGNATURE}], [{**CALL, "thoughtSignature": SIGNATURE}]),
    "on an empty text": ([HI, {"text": "", "thoughtSignature": SIGNATURE}], []),
    "on text between text": (
        [{"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": SIGNATURE}, {"text": "d"}, {"text": "e"}],
        [{"text": "ab"}, {"text": "c", "thoughtSignature": SIGNATURE}, {"text": "de"}],
    ),
    "on a thought": (
        [{"text": "Hm.", "thought": True}, {"text": "So.", "thought": True, "thoughtSignature": SIGNATURE}, HI],
        [{"text": "So.", "thought": True, "thoughtSignature": SIGNATURE}, HI],
    ),
    "nowhere": ([{"text": "Hm.", "thought": True}, HI, {"text": ""}], [HI]),
}


@pytest.mark.parametrize(("sent", "kept"), PARTS.values(), ids=PARTS)
async def test_a_signature_is_kept_to_the_byte_and_on_its_part(
    sent: list[dict[str, Any]], kept: list[dict[str, Any]]
) -> None:
    done = await reply_to([Raw([*map(chunk, sent), STOP])])
    assert done.message.native is not None
    assert done.message.native.blocks == (kept or sent)


async def test_a_url_safe_signature_becomes_standard() -> None:
    part = {**CALL, "thoughtSignature": SIGNATURE.replace("+", "-").replace("/", "_").rstrip("=")}
    done = await reply_to([Raw([chunk(part), STOP])])
    assert done.message.native is not None
    assert cast("Any", done.message.native.blocks)[0]["thoughtSignature"] == SIGNATURE


@pytest.mark.parametrize("vendor", [G3, G25], ids=["3", "2.5"])
async def test_calls_made_elsewhere_skip_the_validator_once_per_step(vendor: Vendor) -> None:
    other = Native(wire="anthropic", model="m", blocks={})
    calls = (Call(call_id="a", tool="grep", arguments={}), Call(call_id="b", tool="grep", arguments="{bad"))
    step = Assistant(parts=(Thinking(text="Hm."), Text(text="So"), *calls), native=other)
    conversation = [User(text="Go."), step, results(step), step, results(step)]
    async with running(vendor, [Say(text="Fine.")]) as (service, model):
        await answer(model, request(vendor, *conversation))
        contents = service.requests[0].json["contents"]
    skip = {"thoughtSignature": "skip_thought_signature_validator"} if vendor is G3 else {}
    assert contents[3]["parts"] == [
        {"text": "So"},
        {"functionCall": {"id": "a", "name": "grep", "args": {}}, **skip},
        {"functionCall": {"id": "b", "name": "grep", "args": {"malformed": "{bad"}}},
    ]


async def test_replies_in_a_row_are_one_turn() -> None:
    parts = (Text(text="a"),)
    conversation = [User(text="Go."), Assistant(parts=parts), Assistant(parts=(Text(text="b"),)), User(text="So?")]
    async with running(G3, [Say(text="Fine.")]) as (service, model):
        await answer(model, request(G3, *conversation))
        assert service.requests[0].json["contents"][1] == {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]}


# Chunks ------------------------------------------------------------------------------------------------

READ_A = [("read_file", {"path": "a"})]

# What is sent → text, calls.
CHUNKS: dict[str, tuple[list[bytes], str, list[tuple[str, Any]]]] = {
    "no candidates": ([event({"usageMetadata": {}}), chunk(HI), event({}), STOP], "Hi", []),
    "content without parts": (
        [event({"candidates": [{"content": {"role": "model"}}]}), chunk(HI), STOP], "Hi", [],
    ),
    "candidate without content": ([chunk(HI), event({"candidates": [{"finishReason": "STOP"}]})], "Hi", []),
    "no role": ([event({"candidates": [{"content": {"parts": [HI]}, "finishReason": "STOP"}]})], "Hi", []),
    "several STOPs": ([chunk(CALL, finish="STOP"), chunk(HI, finish="STOP")], "Hi", READ_A),
    "call and text in one chunk": ([chunk(HI, CALL, finish="STOP")], "Hi", READ_A),
    "call without args": ([chunk({"functionCall": {"name": "f"}}, finish="STOP")], "", [("f", {})]),
    "call without a name": ([chunk({"functionCall": {"args": {}}}, finish="STOP")], "", [("unnamed", {})]),
    "eleven calls": ([chunk(*[CALL] * 11, finish="STOP")], "", READ_A * 11),
    "an unknown part": ([chunk({"hologram": {"x": 1}}, HI), STOP], "Hi", []),
    "unknown fields": ([chunk(HI, finish="STOP", novelty=[1])], "Hi", []),
    "LF only": ([each.replace(b"\r\n", b"\n") for each in (chunk(HI), STOP)], "Hi", []),
    "cut anywhere": ([bytes([byte]) for byte in chunk(HI) + STOP], "Hi", []),
}  # fmt: skip


@pytest.mark.parametrize(("events", "text", "calls"), CHUNKS.values(), ids=CHUNKS)
async def test_chunks_of_all_kinds_are_understood(events: list[bytes], text: str, calls: list[Any]) -> None:
    """And what is made of them is accepted by the service."""
    async with running(G25, [Raw(events), Say(text="Fine.")]) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        done = await answer(model, request(G25, conversation=conversation))
        assert (done.message.text, [(each.tool, each.arguments) for each in done.message.calls]) == (text, calls)
        conversation.append(done.message)
        conversation.append(results(done.message) if calls else User(text="Go on."))
        await answer(model, request(G25, conversation=conversation))


async def test_usage_is_the_last_told_and_counts_once() -> None:
    told = [
        {"promptTokenCount": 50, "totalTokenCount": 50},
        {"promptTokenCount": 50, "candidatesTokenCount": 3, "thoughtsTokenCount": 4, "cachedContentTokenCount": 20},
        {"promptTokenCount": 50, "candidatesTokenCount": 9, "thoughtsTokenCount": 4, "cachedContentTokenCount": 20},
    ]
    done = await reply_to([Raw([*(chunk(HI, usageMetadata=each) for each in told), STOP])])
    usage = done.usage
    assert (usage.input, usage.cache_read, usage.output, usage.thoughts, usage.context) == (30, 20, 9, 4, 63)


@pytest.mark.parametrize(
    ("told", "searches"),
    [
        ([["mango"]], 1),
        ([["mango", "kiwi"]], 2),
        ([["mango"], ["mango", "kiwi"]], 2),  # a later chunk repeats what an earlier one said
        ([[]], 0),
        ([[""]], 0),
        ([None], 0),
    ],
)
async def test_searches_are_counted_once(told: list[list[str] | None], searches: int) -> None:
    chunks = [
        event({"candidates": [{"content": {"parts": [HI]}, "groundingMetadata": {"webSearchQueries": each}}]})
        for each in told
    ]
    assert (await reply_to([Raw([*chunks, STOP])])).usage.searches == searches


CITED: dict[str, tuple[dict[str, Any], list[Source]]] = {
    "pages": (
        {"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]}},
        [Source(title="A", url="https://a.example")],
    ),
    "a place": (
        {"groundingMetadata": {"groundingChunks": [{"maps": {"uri": "https://m.example", "title": "M"}}]}},
        [Source(title="M", url="https://m.example")],
    ),
    "a document of a store": (
        {"groundingMetadata": {"groundingChunks": [{"retrievedContext": {"title": "D", "text": "passage"}}]}},
        [Source(title="D", quote="passage")],
    ),
    "recited": (
        {"citationMetadata": {"citationSources": [{"uri": "https://r.example", "startIndex": 1}]}},
        [Source(title="https://r.example", url="https://r.example")],
    ),
    "without anything": ({"groundingMetadata": {"groundingChunks": [{"web": {}}, {}]}, "citationMetadata": {}},
        [Source(title="A source without a name")]),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "sources"), CITED.values(), ids=CITED)
async def test_what_an_answer_is_grounded_on_is_told(metadata: dict[str, Any], sources: list[Source]) -> None:
    candidate = {"content": {"role": "model", "parts": [HI]}, "finishReason": "STOP", **metadata}
    done = await reply_to([Raw([event({"candidates": [candidate]})])])
    assert list(done.sources) == sources


# How it ends -------------------------------------------------------------------------------------------

THOUGHT = {"text": "Hm.", "thought": True}


@pytest.mark.parametrize(
    ("reason", "parts", "outcome"),
    [
        ("STOP", [HI], "end"),
        ("STOP", [CALL], "calls"),
        ("MAX_TOKENS", [HI], "outputLimit"),
        ("MAX_TOKENS", [THOUGHT], "outputLimit"),
        ("CONTINUATION", [HI], "paused"),
        *((reason, [HI], "refused") for reason in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        ("SAFETY", [], "refused"),
        ("LANGUAGE", [HI], "refused"),
        *((reason, [HI], "refused") for reason in ("MODEL_ARMOR", "ESCALATION")),
        ("NEWER_THAN_THE_SDK", [HI], "end"),
        ("NEWER_THAN_THE_SDK", [CALL], "calls"),
        *(("NEWER_THAN_THE_SDK", parts, "refused") for parts in ([], [THOUGHT])),
        *((reason, [HI], None) for reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER")),
        *((reason, [THOUGHT], None) for reason in ("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE")),
        ("TOO_MANY_TOOL_CALLS", [CALL], None),
        # whether that is an answer is not the translator's to say (`retry.py`)
        *(("STOP", parts, "end") for parts in ([THOUGHT], [], [{"text": "  \n"}])),
    ],
)
async def test_the_finish_reason_decides(reason: str, parts: list[dict[str, Any]], outcome: str | None) -> None:
    steps = [Raw([chunk(*parts), chunk(finish=reason)])]
    if outcome is None:
        with pytest.raises(StreamBroken):
            await reply_to(steps)
        return
    done = await reply_to(steps)
    assert done.stop == outcome
    assert outcome != "refused" or reason in done.detail


G4 = Vendor("gemini-4", Gemini, GeminiModel, "gemini:gemini-4-argon", "Gemini 3")
LONG = [
    Say(thought="Hm.", text=["One ", "two "], stop="paused", usage={"input": 100, "output": 10, "thoughts": 5}),
    Say(text="three ", stop="paused", usage={"input": 40, "cache_read": 70, "output": 20}),
    Say(text="four.", calls=[read("a")], usage={"input": 130, "output": 30}),
]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_long_reply_is_one_over_several_requests(whole: bool) -> None:
    """The strict service wants the same request with the token it gave."""
    async with running(G4, [*LONG, Say(text="Done.")]) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        done = await answer(model, request(G4, conversation=conversation, whole=whole))
        conversation.append(done.message)
        conversation.append(results(done.message))
        await answer(model, request(G4, conversation=conversation))
    assert (done.message.text, done.stop) == ("One two three four.", "calls")
    assert [type(part) for part in done.message.parts] == [Thinking, Text, Call]
    usage = done.usage
    assert (usage.input, usage.cache_read, usage.output, usage.thoughts) == (270, 70, 60, 5)
    assert (usage.prompt, usage.context) == (100, 165), "the prompt came thrice and fills the window once"
    tokens = [each.json["generationConfig"].get("continuationToken") for each in service.requests]
    assert [token is None for token in tokens] == [True, False, False, True]
    assert service.requests[0].json["generationConfig"]["maxOutputTokens"] == 131_072


async def test_a_wrong_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GeminiReply, "resume", lambda _: "made up")
    service = Gemini(LONG)
    model = GeminiModel(KEY, await service.start())
    with pytest.raises(RequestRefused, match="Invalid continuation token"):
        await answer(model, request(G4))
    await model.close()
    await service.stop()


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ([Fault("reset")], "One two four."),
        ([Fault("empty")], "One two four."),
        ([Fault("reset"), Fault("reset")], "One two "),
        ([Fault("status", status=429)], "One two "),  # told and waited for when the rest is asked for anew
        ([Fault("status", status=401)], "One two "),
        ([Fault("reset", after=1)], None),  # what was shown would come twice
    ],
    ids=["reset", "empty", "twice", "too fast", "not allowed", "in its midst"],
)
async def test_a_long_reply_that_breaks_off_goes_on_from_its_token(faults: list[Step], text: str | None) -> None:
    async with running(G4, [LONG[0], *faults, LONG[2]]) as (_, model):
        if text is None:
            with pytest.raises(StreamBroken):
                await answer(model, request(G4))
        else:
            done = await answer(model, request(G4))
            assert (done.message.text, done.stop) == (text, "paused" if text == "One two " else "calls")
            assert done.usage.output == (10 if done.stop == "paused" else 40)


@pytest.mark.parametrize(("shown_after", "goes_on"), [((), True), (({"text": "lost "},), False)])
async def test_a_stream_that_breaks_off_goes_on_from_a_token_in_its_midst(
    shown_after: tuple[dict[str, Any], ...], goes_on: bool
) -> None:
    token = base64.b64encode(b"in its midst").decode()
    part = {"content": {"role": "model", "parts": [{"text": "One "}]}, "continuationToken": token}
    events = [event({"candidates": [part]}), *(chunk(shown) for shown in shown_after)]
    async with running(G4, [Raw(events), Say(text="two.")]) as (service, model):
        service.on_request = lambda received: service.issue(events[0], received)
        if goes_on:
            assert (await answer(model, request(G4))).message.text == "One two."
        else:
            with pytest.raises(StreamBroken):
                await answer(model, request(G4))


async def test_a_token_of_an_earlier_place_is_not_gone_on_from() -> None:
    part = {"content": {"role": "model", "parts": [{"text": "One "}]}, "continuationToken": "dG9rZW4="}
    events = [event({"candidates": [part]}), chunk({"text": "two "}), chunk(finish="CONTINUATION")]
    async with running(G4, [Raw(events)]) as (_, model):
        done = await answer(model, request(G4))
    assert (done.message.text, done.stop) == ("One two ", "paused")


@pytest.mark.parametrize("token", [None, "same"])
async def test_a_reply_without_a_new_token_is_paused(token: str | None) -> None:
    script: list[Step] = [LONG[0]] if token else []
    async with running(G4, [*script, Raw([chunk(HI), chunk(finish="CONTINUATION")])]) as (_, model):
        assert (await answer(model, request(G4))).stop == "paused"


async def test_cancelling_between_two_requests_of_a_reply_drops_the_second() -> None:
    async with running(G4, [LONG[0], Say(text="late", wait=30)]) as (service, model):
        asked = asyncio.create_task(answer(model, request(G4)))
        while len(service.requests) < 2:
            await asyncio.sleep(0.005)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.wait_for(service.requests[1].dropped.wait(), 2)


async def test_a_blocked_prompt_is_a_refusal() -> None:
    done = await reply_to([Raw([event({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})])])
    assert (done.stop, done.message.parts) == ("refused", ())
    assert "PROHIBITED_CONTENT" in done.detail


# Errors ------------------------------------------------------------------------------------------------


def quota(message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


def violation(quota_id: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


def delay(seconds: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds}


ERRORS: dict[str, tuple[Any, type[ModelError], float | None]] = {
    "RetryInfo": (quota("Slow down.", delay("34.5s")), RateLimited, 34.5),
    "words, seconds": (quota("Please retry in 12.25s."), RateLimited, 12.25),
    "words, milliseconds": (quota("Please retry in 250ms."), RateLimited, 0.25),
    "per minute": (quota("Slow down.", violation("GenerateRequestsPerMinutePerProject")), RateLimited, 60),
    "nothing said": (quota("Slow down."), RateLimited, None),
    "per day": (quota("Slow down.", violation("GenerateRequestsPerDayPerProject"), delay("20s")), QuotaExhausted, None),
    "limit 0": (quota("Quota exceeded, limit: 0, model: x. Please retry in 3s."), QuotaExhausted, None),
    "a long wait": (quota("Slow down.", delay("3600s")), QuotaExhausted, 3600),
    "odd details": (quota("Slow down.", cast("Any", "text"), {"violations": "none"}), RateLimited, None),
    "details no list": ({"error": {"code": 429, "message": "Slow", "details": 5}}, RateLimited, None),
    "500": ({"error": {"code": 500, "message": "Internal."}}, Overloaded, None),
    "503": ({"error": {"code": 503, "message": "The model is overloaded."}}, Overloaded, None),
    "no code": ({"error": {"message": "Who knows."}}, StreamBroken, None),
    "a text": ({"error": "Who knows."}, StreamBroken, None),
}


@pytest.mark.parametrize(("error", "kind", "wait"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("after", [0, 1], ids=["first", "in mid-stream"])
async def test_errors_of_the_service(error: Any, kind: type[ModelError], wait: float | None, after: int) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_to([Raw([*[chunk(HI)] * after, event(error)])])
    assert (type(caught.value), caught.value.retry_after) == (kind, wait)
    assert kind is not QuotaExhausted or "used up" in str(caught.value)


async def test_a_bad_key_is_told_from_a_bad_request() -> None:
    service = Gemini([])
    model = GeminiModel("bad", await service.start())
    with pytest.raises(AuthFailed, match="amanu auth"):
        await answer(model, request(G3))
    await model.close()
    await service.stop()


async def test_an_error_that_is_no_json_keeps_its_status() -> None:
    class Proxy(Gemini):
        def error_body(self, status: int, message: str, code: str) -> bytes:
            return b"<html>Bad gateway</html>"

    service = Proxy([Fault("status", status=502)])
    model = GeminiModel(KEY, await service.start())
    with pytest.raises(Overloaded, match="Bad gateway"):
        await answer(model, request(G3))
    await model.close()
    await service.stop()


ILL_TYPED: list[Any] = [
    {"candidates": 5},
    {"candidates": ["x"]},
    {"candidates": [{"content": {"parts": [{"text": 5}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": 5}}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "x", "thoughtSignature": "*"}]}}]},
    {"usageMetadata": {"promptTokenCount": "x"}},
    [],
    "text",
]


@pytest.mark.parametrize("value", ILL_TYPED, ids=map(str, ILL_TYPED))
async def test_what_is_ill_typed_is_a_broken_stream(value: Any) -> None:
    with pytest.raises(StreamBroken):
        await reply_to([Raw([event(value), chunk(HI)])])


async def test_half_a_surrogate_pair_in_arguments_does_no_harm() -> None:
    call = {"functionCall": {"name": "f", "args": {"a\ud83d": ["\ud83d"]}}}
    done = await reply_to([Raw([chunk(call), STOP])])
    assert [each.arguments for each in done.message.calls] == [{"a?": ["?"]}]
    assert done.message.model_dump_json()


# The request -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "effort", "thinking"),
    [
        ("gemini-3.5-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-3.8-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3.1-pro-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-4-hydrogen", "max", {"includeThoughts": True, "thinkingLevel": "XHIGH"}),
        ("gemini-4-neon", "max", {"includeThoughts": True, "thinkingLevel": "XHIGH"}),
        ("gemini-4-argon", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "minimal", {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-pro", "minimal", {"includeThoughts": True, "thinkingBudget": 128}),
        ("gemini-2.5-pro", "low", {"includeThoughts": True, "thinkingBudget": 2_048}),
        ("gemini-2.5-flash", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
    ],
)
async def test_thinking_is_by_level_or_by_budget(name: str, effort: str, thinking: dict[str, Any]) -> None:
    vendor = replace(G3, model_id=f"gemini:{name}")
    async with running(vendor, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(vendor, effort=effort))
        assert service.requests[0].json["generationConfig"]["thinkingConfig"] == thinking


async def test_nothing_of_the_environment_redirects_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GOOGLE_API_KEY": "stolen",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "GOOGLE_GENAI_API_VERSION": "v1",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    async with running(G3, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(G3))
        assert service.requests[0].headers["x-goog-api-key"] == KEY
        assert service.requests[0].path.startswith("/v1beta/models/gemini-3")


# The service itself ------------------------------------------------------------------------------------

DECLARED = {"functionDeclarations": [{"name": "f", "description": "F.", "parametersJsonSchema": {"type": "object"}}]}
SKIP = "skip_thought_signature_validator"
CALL_1: dict[str, Any] = {"functionCall": {"id": "1", "name": "f", "args": {}}}
CALLED: dict[str, Any] = {"role": "model", "parts": [{**CALL_1, "thoughtSignature": "s"}]}
SKIPPED: dict[str, Any] = {"role": "model", "parts": [{**CALL_1, "thoughtSignature": SKIP}]}
ANSWER = {"id": "1", "name": "f", "response": {"output": "x"}}
ANSWERED = {"role": "user", "parts": [{"functionResponse": ANSWER}]}
ASKED = {"role": "user", "parts": [{"text": "Go."}]}


def response(**changed: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {**ANSWER, **changed}}]}


@pytest.mark.parametrize(
    ("verdict", "changed"),
    [
        ("fine", {}),
        ("fine", {"contents": [ASKED]}),
        ("refused", {"contents": []}),
        ("refused", {"novelty": 1}),
        ("refused", {"contents": [{"role": "tool", "parts": [{"text": "x"}]}]}),
        ("refused", {"contents": [{"role": "user", "parts": []}]}),
        ("refused", {"contents": [{"role": "user", "parts": [{}]}]}),
        ("refused", {"contents": [{"role": "user", "parts": [{"text": 5}]}]}),
        ("refused", {"contents": [{"role": "user", "parts": [{"text": "x", "novelty": 1}]}]}),
        ("refused", {"contents": [SKIPPED, ANSWERED]}),
        ("refused", {"contents": [ASKED, SKIPPED]}),
        ("refused", {"contents": [ASKED, SKIPPED, ASKED]}),
        ("refused", {"contents": [ASKED, ANSWERED]}),
        ("refused", {"contents": [ASKED, SKIPPED, {"role": "user", "parts": [*ANSWERED["parts"]] * 2}]}),
        ("refused", {"contents": [ASKED, SKIPPED, response(name="")]}),
        ("refused", {"contents": [ASKED, SKIPPED, response(response="x")]}),
        ("refused", {"contents": [ASKED, CALLED, ANSWERED]}),
        ("refused", {"contents": [ASKED, {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}, ANSWERED]}),
        ("refused", {"tools": [DECLARED, DECLARED]}),
        ("refused", {"tools": [{"functionDeclarations": [{"name": "1f", "description": "F."}]}]}),
        ("refused", {"tools": [{"functionDeclarations": [{"name": "f", "description": "F.", "schema": {}}]}]}),
        ("refused", {"generationConfig": {"temperature": 3}}),
        ("refused", {"generationConfig": {"maxOutputTokens": 70_000}}),
        ("refused", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1024, "thinkingLevel": "LOW"}}}),
        ("refused", {"cachedContent": "c"}),
        ("lint", {"tools": None}),
        ("refused", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}}}),
        ("refused", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH"}}}),
        ("lint", {"contents": [ASKED, SKIPPED, ANSWERED, ASKED]}),
        ("lint", {"contents": [ASKED, SKIPPED, response(name="g")]}),
        ("lint", {"contents": [ASKED, SKIPPED, response(id="2")]}),
        ("lint", {"contents": [ASKED, SKIPPED, {"role": "user", "parts": [{"text": "x"}, *ANSWERED["parts"]]}]}),
        ("lint", {"contents": [ASKED, *[{"role": "model", "parts": [{"text": "x"}]}] * 2, ASKED]}),
        ("lint", {"contents": [{"role": "user", "parts": [{"text": "x", "thought": True}]}]}),
        ("lint", {"contents": [{"role": "user", "parts": [{"text": ""}]}]}),
    ],
)
def test_the_strict_service_is_strict(verdict: str, changed: dict[str, Any]) -> None:
    body: dict[str, Any] = {"contents": [ASKED, SKIPPED, ANSWERED], "tools": [DECLARED], **changed}
    service = Gemini()
    path = "/v1beta/models/gemini-3.5-flash:streamGenerateContent"
    sent = Received("POST", path, "alt=sse", {"x-goog-api-key": "k"}, json.dumps(body).encode(), 0.0)
    assert (service.check(sent) is not None) is (verdict == "refused")
    assert verdict == "refused" or bool(service.lint) is (verdict == "lint")
