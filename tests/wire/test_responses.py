"""What is peculiar to OpenAI's Responses API. What all vendors share is in `test_behaviours.py`."""

import asyncio
import json
from typing import Any, cast

import pytest

from amanu.core.conversation import Compacted, Conversation, SystemText, User
from amanu.core.model import (
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ReplyCompleted,
    Request,
    RequestRefused,
    StreamBroken,
    ToolSpec,
)
from amanu.core.model_families import model_info
from amanu.core.tool import tool_schema
from amanu.models.openai import OpenAIModel
from amanu.models.openai_responses import ResponsesModel
from amanu.models.retry import RetryPolicy, stream_with_retry
from amanu.tools.edits.apply_patch import ApplyPatch
from amanu.tools.edits.live_edit import LivePatch
from recordings.responses_shapes import failed, r_end, r_text
from support.strict_services.http import Fault, Raw, Refusal, Say, Service, Step, ToolUse
from support.strict_services.openai import OpenAI
from support.strict_services.responses import Responses
from support.vendors import KEY, TOOLS, VENDORS, answer, deltas, request, results, running

READ = ToolUse("read_file", {"path": "a.py"})
OPENAI = next(vendor for vendor in VENDORS if vendor.name == "openai")
PLAIN = next(vendor for vendor in VENDORS if vendor.name == "openai-plain")
PATCH = '*** Begin Patch\n*** Update File: a.py\n@@\n-old "ä"\n+new\n*** End Patch\n'
PATCH_TOOL = ToolSpec(
    "apply_patch", ApplyPatch.description, tool_schema(ApplyPatch.params), freeform=ApplyPatch.freeform
)


async def test_the_request_is_stateless_and_says_what_it_wants() -> None:
    async with running(OPENAI, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(OPENAI, effort="high"))
        body: dict[str, Any] = service.requests[0].json
    assert (body["store"], body["stream"], body["instructions"]) == (False, True, "You help.")
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["prompt_cache_key"] == "s1"
    assert [tool["strict"] for tool in body["tools"]] == [False, False]


async def test_reasoning_and_phases_go_back_as_they_came_without_ids() -> None:
    script = [Say(thought="Hm.", text="I look.", calls=[READ]), Say(text="Fine.")]
    async with running(OPENAI, script) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(OPENAI, conversation=conversation))
        conversation.append(first.message)
        conversation.append(results(first.message, "text"))
        await answer(model, request(OPENAI, conversation=conversation))
        _, reasoning, message, call, output = service.requests[1].json["input"]
    assert (reasoning["type"], reasoning["encrypted_content"], reasoning["summary"][0]["text"]) == (
        "reasoning",
        "gAAAA1",
        "Hm.",
    )
    assert (message["phase"], call["type"], output["type"]) == ("commentary", "function_call", "function_call_output")
    assert not any("id" in item for item in (reasoning, message, call, output))


async def test_how_the_session_is_run_is_said_as_the_developer_after_the_user() -> None:
    async with running(OPENAI, [Say(calls=[READ]), Say(text="Fine.")]) as (service, model):
        conversation = Conversation([User(text="Hi.", status="Mode: ask.")])
        called = (await answer(model, request(OPENAI, conversation=conversation))).message
        conversation.append(called)
        conversation.append(results(called, "text"))
        conversation.add_notes(SystemText(text="Mode: plan.", status=True), "Steer.")
        await answer(model, request(OPENAI, conversation=conversation))
        items = service.requests[1].json["input"]
    assert [(item["role"], item["content"][0]["text"]) for item in items if item["type"] == "message"] == [
        ("user", "Hi."), ("developer", "Mode: ask."), ("user", "Steer."), ("developer", "Mode: plan.")
    ]  # fmt: skip


# What is refused and can be done without ---------------------------------------------------------------


async def conversed(service: Responses, model: str = "openai:gpt-6.2-sol") -> list[dict[str, Any]]:
    """A tool call and its results; the bodies that were not refused."""
    client = ResponsesModel("OpenAI", f"{await service.start()}/v1", KEY)
    conversation = Conversation([User(text="Hello.")])
    try:
        for _ in range(2):
            asked = Request(model_info(model), "You help.", TOOLS, conversation, "s1", "high")
            done = await answer(client, asked)
            conversation.append(done.message)
            if done.message.calls:
                conversation.append(results(done.message, "text"))
                service.known = False
    finally:
        await client.close()
        await service.stop()
    return [received.json for received in service.requests if received.refused is None]


SCRIPT = [Say(thought="Hm.", calls=[READ]), Say(text="Fine.")]


async def test_reasoning_the_service_cannot_decrypt_costs_the_reasoning_only() -> None:
    service = Responses(SCRIPT)
    first, second = await conversed(service)
    assert service.refused == [
        "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed."
    ]
    assert [item["type"] for item in second["input"]] == ["message", "function_call", "function_call_output"]
    assert service.lint == [] and first["include"]


async def test_summaries_nobody_may_have_are_asked_for_once() -> None:
    service = Responses(SCRIPT, summaries=False)
    first, second = await conversed(service)
    assert len(service.refused) == 2  # the summary, then the reasoning
    assert first["reasoning"] == second["reasoning"] == {"effort": "high"}


class Picky(Responses):
    """A gateway that knows fewer fields and efforts."""

    lacks = "prompt_cache_key"
    offers: tuple[str, ...] = ()

    def check(self, request: Any) -> Any:
        body = request.json
        refusal = super().check(request)
        if refusal is None and self.lacks in body:
            return self.refusal(f"Unknown parameter: '{self.lacks}'.")
        effort = body.get("reasoning", {}).get("effort")
        if refusal is None and self.offers and effort not in self.offers:
            offered = ", ".join(f"'{word}'" for word in self.offers)
            return self.refusal(
                f"Unsupported value: '{effort}' is not supported with the 'm' model. Supported values are: {offered}."
            )
        return refusal

    @staticmethod
    def refusal(message: str) -> Any:
        return Refusal(400, message)


class Unencrypted(Responses):
    """A gateway that has no encrypted reasoning to give."""

    def check(self, request: Any) -> Any:
        if "include" in request.json:
            return Refusal(400, "Encrypted content is not supported with this model.")
        return super().check(request)


async def test_reasoning_that_is_not_given_is_no_longer_asked_for() -> None:
    service = Unencrypted([Say(text="Hi."), Say(text="Again.")])
    bodies = await conversed(service)
    assert len(bodies) == 2 and not any("include" in body for body in bodies)
    assert len(service.refused) == 2  # without the old reasoning first, then without asking


async def test_requests_at_once_learn_of_one_refusal() -> None:
    service = Picky([Say(text="One."), Say(text="Two.")])
    client = ResponsesModel("OpenAI", f"{await service.start()}/v1", KEY)
    try:
        replies = await asyncio.gather(*(answer(client, request(OPENAI)) for _ in range(2)))
    finally:
        await client.close()
        await service.stop()
    assert {reply.message.text for reply in replies} == {"One.", "Two."}


async def test_reasoning_is_sent_again_after_a_compaction() -> None:
    script = [*SCRIPT, Say(thought="Well.", calls=[READ]), Say(text="So.")]
    service = Responses(script)
    client = ResponsesModel("OpenAI", f"{await service.start()}/v1", KEY)
    conversation = Conversation([User(text="Hello.")])
    asked = Request(model_info("openai:gpt-6.2-sol"), "You help.", TOOLS, conversation, "s1", "high")

    async def step() -> None:
        done = await answer(client, asked)
        conversation.append(done.message)
        conversation.append(results(done.message, "text") if done.message.calls else User(text="Go on."))

    try:
        await step()
        service.known = False
        await step()
        service.known = True
        conversation.compact(Compacted(text="It was greeted.", replaced=len(conversation), snapshot=""))
        await step()
        await step()
    finally:
        await client.close()
        await service.stop()
    assert [item["type"] for item in service.requests[-1].json["input"]][1] == "reasoning"


@pytest.mark.parametrize("field", ["prompt_cache_key", "include", "max_output_tokens", "stream_options"])
async def test_a_field_a_gateway_does_not_know_is_left_out(field: str) -> None:
    service = Picky([Say(text="Hi."), Say(text="Again.")])
    service.lacks = field
    bodies = await conversed(service)
    assert len(service.refused) == 1
    assert len(bodies) == 2 and not any(field in body for body in bodies)


@pytest.mark.parametrize(
    ("offers", "effort"), [(("none", "low"), "low"), (("medium", "xhigh"), "medium"), (("max",), "max")]
)
async def test_an_effort_the_model_does_not_take_becomes_the_nearest(offers: tuple[str, ...], effort: str) -> None:
    service = Picky([Say(text="Hi."), Say(text="Again.")])
    service.lacks, service.offers = "", offers
    service_efforts = await conversed(service)
    assert [body["reasoning"]["effort"] for body in service_efforts] == [effort] * 2


async def test_what_it_cannot_do_without_is_refused_once() -> None:
    service = Picky([Say(text="Hi.")])
    service.lacks = "tools"
    with pytest.raises(RequestRefused):
        await conversed(service)
    assert len(service.requests) == 1


# Errors in mid-stream ----------------------------------------------------------------------------------

ENDS: dict[str, tuple[list[bytes], type[ModelError]]] = {
    "the server failed": ([failed("server_error", "The server had an error.")], Overloaded),
    "too fast": ([failed("rate_limit_exceeded", "Rate limit reached. Try again in 2s.")], RateLimited),
    "too long": ([failed("context_length_exceeded", "Your input exceeds the context window of this model.")],
                 ContextTooLong),
    "no credit": ([failed("insufficient_quota", "You exceeded your current quota.")], QuotaExhausted),
    "a bad prompt": ([failed("invalid_prompt", "Invalid prompt: limited access.")], RequestRefused),
    "against the policy": ([failed("bio_policy", "This request was blocked.")], RequestRefused),
    "no end": (r_text(0, "Half"), StreamBroken),
    "a piece of an earlier message": ([*r_text(1, "Two.")[:-1], *r_text(0, "One."), r_end()], StreamBroken),
    "a piece of nothing": ([b'data: {"type":"response.output_text.delta","output_index":3,"delta":"x"}\n\n'],
                           StreamBroken),
    "nested error": ([b'data: {"type":"error","error":{"code":"server_error","message":"Oops."}}\n\n'], Overloaded),
}  # fmt: skip


@pytest.mark.parametrize(("events", "error"), ENDS.values(), ids=ENDS)
async def test_an_error_in_mid_stream_is_typed(events: list[bytes], error: type[ModelError]) -> None:
    async with running(OPENAI, [Raw(events)]) as (_, model):
        with pytest.raises(ModelError) as caught:
            await answer(model, request(OPENAI))
    assert type(caught.value) is error


async def test_a_refusal_is_told_in_its_own_words() -> None:
    events = [
        b'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}\n\n',
        b'data: {"type":"response.refusal.delta","output_index":0,"delta":"I will not."}\n\n',
        b'data: {"type":"response.completed","response":{"status":"completed"}}\n\n',
    ]
    async with running(OPENAI, [Raw(events)]) as (_, model):
        done = await answer(model, request(OPENAI))
    assert (done.stop, done.detail) == ("refused", "I will not.")


@pytest.mark.parametrize(
    ("actions", "searches"),
    [
        ([{"type": "search", "query": "mango"}], 1),
        ([{"type": "search"}, {"type": "open_page", "url": "https://a.example"}, {"type": "search"}], 2),
        ([{"type": "find_in_page"}], 0),
        ([None], 1),  # it may leave out what it did
    ],
)
async def test_a_search_costs_and_reading_what_was_found_does_not(actions: list[Any], searches: int) -> None:
    items = [{"type": "web_search_call", "id": f"ws_{at}", "action": action} for at, action in enumerate(actions)]
    ended: dict[str, Any] = {"status": "completed", "output": [], "usage": {"input_tokens": 9, "output_tokens": 1}}
    events = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    raw = [f"data: {json.dumps(each)}\n\n".encode() for each in events]
    end = f"data: {json.dumps({'type': 'response.completed', 'response': ended})}\n\n".encode()
    async with running(OPENAI, [Raw([*raw, *r_text(len(items), "Fine."), end])]) as (_, model):
        done = await answer(model, request(OPENAI))
    assert (done.usage.input, done.usage.searches) == (9, searches)


# Patches written without JSON --------------------------------------------------------------------------


async def test_a_patch_is_written_freely_and_answered_as_such() -> None:
    script: list[Step] = [Say(calls=[ToolUse("apply_patch", PATCH)]), Say(text="Fine.")]
    async with running(OPENAI, script) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        asked = request(OPENAI, conversation=conversation, tools=[PATCH_TOOL])
        seen = await deltas(model, asked)
        first = cast("ReplyCompleted", seen[-1])
        (call,) = first.message.calls
        conversation.append(first.message)
        conversation.append(results(first.message, "Done."))
        await answer(model, asked)
        (tool,), sent = service.requests[0].json["tools"], service.requests[1].json["input"]
    assert call.arguments == {"patch": PATCH}
    written = "".join(getattr(delta, "text", "") for delta in seen)
    assert json.loads(written) == {"patch": PATCH}
    assert LivePatch("patch", str).feed(written)
    assert (tool["type"], tool["format"]["syntax"]) == ("custom", "lark")
    assert "*** Begin Patch" in tool["description"]
    assert [item["type"] for item in sent[1:]] == ["reasoning", "custom_tool_call", "custom_tool_call_output"]


async def test_who_writes_json_gets_the_tool_as_a_function() -> None:
    async with running(PLAIN, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(PLAIN, tools=[PATCH_TOOL]))
    assert service.requests[0].json["tools"][0]["type"] == "function"


# A server that knows only chat completions -------------------------------------------------------------


async def reply_of(service: Service) -> list[str]:
    """The texts of two replies, through an `OPENAI_BASE_URL` that leads there."""
    model = OpenAIModel("OpenAI", f"{await service.start()}/v1", KEY)
    try:
        return [(await answer(model, request(PLAIN))).message.text for _ in range(2)]
    finally:
        await model.close()
        await service.stop()


async def test_chat_completions_are_used_where_a_server_has_nothing_else() -> None:
    service = OpenAI([Say(text="One."), Say(text="Two.")], keyless=True)
    texts = await reply_of(service)
    assert texts == ["One.", "Two."]
    assert [received.path for received in service.requests] == ["/v1/responses", *["/v1/chat/completions"] * 2]


@pytest.mark.parametrize("message", ["The model 'gpt-9' does not exist.", "Item with id 'x' not found."])
async def test_a_model_that_does_not_exist_is_no_missing_path(message: str) -> None:
    service = Responses([Fault("status", status=404, message=message)])
    with pytest.raises((ModelNotFound, RequestRefused)):
        await reply_of(service)
    assert {received.path for received in service.requests} == {"/v1/responses"}


# For the vendor's support ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor_name", "header"),
    [("openai", "x-request-id"), ("anthropic", "request-id"), ("openrouter", "x-generation-id")],
)
async def test_the_log_has_the_id_of_a_request_that_failed(
    vendor_name: str, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    vendor = next(vendor for vendor in VENDORS if vendor.name == vendor_name)
    fault = Fault("status", status=500, headers={header: "req_42"}, message=f"Oops, {KEY}")
    async with running(vendor, [fault]) as (_, model):
        with pytest.raises(ModelError):
            async for _delta in stream_with_retry(model, request(vendor), RetryPolicy(attempts=1)):
                pass
    assert "(request id: req_42)" in caplog.text
    assert KEY not in caplog.text
