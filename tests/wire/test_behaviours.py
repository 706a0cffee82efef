"""What every vendor's translator must do, against its strict service. One list, all vendors (`vendors.py`)."""

import asyncio
import gc
import itertools
import time
from contextlib import aclosing
from dataclasses import replace
from types import AsyncGeneratorType
from typing import Any, cast

import pytest

from amanu.core.conversation import Assistant, Call, Conversation, Native, Result, Results, Text, Thinking, User
from amanu.core.model import (
    AuthFailed,
    CallDelta,
    CallStarted,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    RateLimited,
    ReplyCompleted,
    RequestRefused,
    StreamBroken,
    TextDelta,
    ThoughtDelta,
    Unreachable,
)
from amanu.core.model_families import EFFORTS
from amanu.models.retry import AttemptWithdrawn, RetryPolicy, RetryScheduled, stream_with_retry
from amanu.tools.edits.live_edit import LiveEdit
from amanu_protocol.items import Effort
from support.strict_services.http import Fault, Say, Step, ToolUse
from support.vendor_sweeps import over_cases, over_vendors
from support.vendors import KEY, Vendor, answer, deltas, request, results, running

READ = ToolUse("read_file", {"path": "a.py"})
GREP = ToolUse("grep", {"pattern": 'ä "quoted" \n line'})
AT_ONCE = RetryPolicy(first_delay=0.01, longest_delay=0.01)
QUICK = replace(AT_ONCE, idle_text=0.1, idle_thinking=0.1)


# The reply ---------------------------------------------------------------------------------------------


@over_vendors("thoughts")
async def test_a_reply_is_thought_text_and_calls_in_order(vendor: Vendor) -> None:
    script = [Say(thought=["Let me ", "see."], text=["I ", "read."], calls=[READ, GREP])]
    async with running(vendor, script) as (_, model):
        seen = await deltas(model, request(vendor))
    assert "".join(each.text for each in seen if isinstance(each, ThoughtDelta)) == "Let me see."
    assert "".join(each.text for each in seen if isinstance(each, TextDelta)) == "I read."
    started = [each for each in seen if isinstance(each, CallStarted)]
    assert [each.tool for each in started] == ["read_file", "grep"]
    done = cast("Any", seen[-1])
    thought, text, *calls = done.message.parts
    assert (thought, text) == (Thinking(text="Let me see."), Text(text="I read."))
    assert [call.arguments for call in calls] == [READ.arguments, GREP.arguments]
    assert [call.call_id for call in calls] == [each.call_id for each in started]
    assert len({call.call_id for call in calls}) == 2
    assert (done.stop, done.message.cut) == ("calls", False)
    written = "".join(each.text for each in seen if isinstance(each, CallDelta))
    assert '"a.py"' in written or written == ""


@over_vendors()
async def test_text_is_yielded_while_the_model_still_writes(vendor: Vendor) -> None:
    read = asyncio.Event()
    async with running(vendor, [Say(text=["one", "two", "three"], until=read)]) as (_, model):
        texts: list[str] = []
        async for each in cast("Any", model.stream(request(vendor))):
            if isinstance(each, TextDelta):
                read.set()
                texts.append(each.text)
    assert texts == ["one", "two", "three"]


@over_vendors("stop")
@pytest.mark.parametrize(
    ("say", "stop"),
    [
        (Say(text="Done."), "end"),
        (Say(text="Reading.", calls=[READ]), "calls"),
        (Say(calls=[READ]), "calls"),
        (Say(text="And then", stop="outputLimit"), "outputLimit"),
        (Say(text="I can not.", stop="refused"), "refused"),
    ],
    ids=["end", "calls", "only calls", "outputLimit", "refused"],
)
async def test_the_reason_to_stop_is_told(vendor: Vendor, say: Say, stop: str) -> None:
    async with running(vendor, [say]) as (_, model):
        done = await answer(model, request(vendor))
    assert done.stop == stop
    assert done.message.cut == (stop == "outputLimit")


WORDS = {
    "Claude": ("end_turn", "tool_use", "max_tokens", "msg_"),
    "Gemini": ("STOP", "STOP", "MAX_TOKENS", "r"),
    "OpenAI Responses": ("completed", "completed", "max_output_tokens", "resp_"),
    "ChatGPT": ("completed", "completed", "max_output_tokens", "resp_"),
    "": ("stop", "tool_calls", "length", "c"),
}
"""The beginning of a column's name → the service's words for the end, for calls and for the limit, and how its ids
begin."""


@over_vendors("stop")
async def test_the_services_own_word_and_id_are_told(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    words = next(words for column, words in WORDS.items() if vendor.column.startswith(column))
    says = [Say(text="Done."), Say(calls=[READ]), Say(text="And then", stop="outputLimit")]
    async with running(vendor, [*says, Say(text="Done.")]) as (service, model):
        for word in words[:3]:
            done = await answer(model, request(vendor))
            assert (done.finish_reason, done.request_id[: len(words[3])]) == (word, words[3])
        headers = service.headers_of
        header = "request-id" if vendor.column.startswith("Claude") else "x-request-id"
        monkeypatch.setattr(service, "headers_of", lambda *given: {**headers(*given), header: f"req_{'1' * 200}"})
        done = await answer(model, request(vendor))
        is_google = vendor.column.startswith("Gemini")  # which has it in the body
        assert done.request_id.startswith("r") if is_google else done.request_id == f"req_{'1' * 96}"


@over_vendors("counts")
async def test_usage_is_counted(vendor: Vendor) -> None:
    usage = {"input": 70, "output": 12, "cache_read": 30}
    async with running(vendor, [Say(text="Hi.", usage=usage)]) as (_, model):
        done = await answer(model, request(vendor))
    assert (done.usage.input, done.usage.output, done.usage.cache_read) == (70, 12, 30)
    assert done.usage.context == 112


@over_vendors()
async def test_an_edit_can_be_shown_from_the_pieces_of_its_arguments(vendor: Vendor) -> None:
    edits = [{"path": "ä.py", "content": 'one\n"two" \U0001f600\n'}, {"content": "no final line feed", "path": "b.py"}]
    async with running(vendor, [Say(calls=[ToolUse("read_file", each) for each in edits])]) as (_, model):
        seen = await deltas(model, request(vendor))
    started = [each.call_id for each in seen if isinstance(each, CallStarted)]
    edits = {call_id: LiveEdit(lambda given: given["path"], {"content": "+"}) for call_id in started}
    shown = dict.fromkeys(edits, "")
    for each in seen:
        if isinstance(each, CallDelta):
            shown[each.call_id] += edits[each.call_id].feed(each.text)
    assert [edit.title for edit in edits.values()] == ["ä.py", "b.py"]
    assert list(shown.values()) == ['+one\n+"two" \U0001f600\n', "+no final line feed\n"]


@over_vendors("thoughts")
async def test_thought_tokens_are_told_apart(vendor: Vendor) -> None:
    script = [Say(thought="Hm.", text="Hi.", usage={"output": 12, "thoughts": 400})]
    async with running(vendor, script) as (_, model):
        done = await answer(model, request(vendor))
    assert (done.usage.output, done.usage.thoughts) == (12, 400)


@over_cases("effort", {effort: effort for effort in EFFORTS})
async def test_every_effort_is_accepted(vendor: Vendor, effort: Effort) -> None:
    async with running(vendor, [Say(text="Hi.")]) as (_, model):
        await answer(model, request(vendor, effort=effort, max_output=2_048))


# Calls and results -------------------------------------------------------------------------------------


RESULTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "plain": (("one", "two"), {}),
    "empty": (("",), {}),
    "blank": (("  \n",), {}),
    "empty error": (("",), {"is_error": True}),
    "error": (("No such file.",), {"is_error": True}),
    "notes": (("ok",), {"notes": ("The user says: hurry.", " ", "")}),
    "lone surrogate": (("bad \ud800 bytes",), {}),
    "long": (("x" * 200_000,), {}),
}


@over_cases("texts, more", RESULTS)
async def test_results_of_all_kinds_are_accepted(vendor: Vendor, texts: tuple[str, ...], more: dict[str, Any]) -> None:
    async with running(vendor, [Say(text="Look.", calls=[READ, GREP]), Say(text="Fine.")]) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        conversation.append(results(first.message, *texts, **more))
        conversation.check()
        done = await answer(model, request(vendor, conversation=conversation))
    assert done.message.text == "Fine."


@over_cases("written", {each: each for each in ['{"path": "a', "[1, 2]", "not json", '"text"', "{}}"]}, "rawArguments")
async def test_arguments_that_are_no_object_come_as_written_and_can_be_answered(vendor: Vendor, written: str) -> None:
    script = [Say(calls=[ToolUse("read_file", written)]), Say(text="Sorry.")]
    async with running(vendor, script) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(vendor, conversation=conversation))
        assert [call.arguments for call in first.message.calls] == [written]
        conversation.append(first.message)
        conversation.append(results(first.message, "The arguments are not a JSON object.", is_error=True))
        await answer(model, request(vendor, conversation=conversation))


@over_vendors("stop")
async def test_a_call_cut_by_the_output_limit_is_marked_and_can_be_answered(vendor: Vendor) -> None:
    cut = ToolUse("read_file", {"path": "a"} if "rawArguments" in vendor.lacks else '{"path": "a')
    script = [Say(text="I write", calls=[cut], stop="outputLimit"), Say(text="Shorter.")]
    async with running(vendor, script) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(vendor, conversation=conversation))
        assert (first.stop, first.message.cut) == ("outputLimit", True)
        conversation.append(first.message)
        conversation.close_calls("Not run: the reply was cut.")
        await answer(model, request(vendor, conversation=conversation))


@over_vendors()
async def test_a_long_tool_loop_is_accepted_and_append_only(vendor: Vendor) -> None:
    thought = "" if "thoughts" in vendor.lacks else "Hm."
    script = [Say(thought=thought, text="Next.", calls=[READ, GREP]) for _ in range(12)]
    async with running(vendor, [*script, Say(text="End.")]) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        while (done := await answer(model, request(vendor, conversation=conversation))).message.calls:
            conversation.append(done.message)
            conversation.append(results(done.message, "text", notes=("Keep going.",)))
        conversation.append(done.message)
        conversation.append(User(text="Again."))
        service.script([Say(text="Yes.")])
        await answer(model, request(vendor, conversation=conversation))
        bodies = [_history(each.json) for each in service.requests]
    for before, after in itertools.pairwise(bodies):
        assert after[: len(before)] == before


def _history(body: dict[str, Any]) -> list[str]:
    """The messages of a body, without cache marks."""
    messages: list[Any] = body.get("messages") or body.get("input") or body["contents"]
    return [repr(_unmarked(each)) for each in messages]


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: _unmarked(each) for name, each in pairs if name != "cache_control"}
    return value


FOREIGN = [
    User(text="Hello."),
    Assistant(
        parts=(
            Thinking(text="Another model thought."),
            Text(text="Reading."),
            Call(call_id="call:1/ü", tool="read_file", arguments={"path": "a"}),
            Call(call_id="call_1__", tool="read_file", arguments='{"broken'),
        ),
        native=Native(wire="elsewhere", model="other", blocks={"secret": "form"}, call_ids={"x": "call:1/ü"}),
    ),
    Results(
        results=(
            Result(call_id="call:1/ü", tool="read_file", text="text"),
            Result(call_id="call_1__", tool="read_file", text="Not an object.", is_error=True),
        ),
        notes=("Go on.",),
    ),
    Assistant(parts=(Thinking(text="Only a thought."),)),
    User(text="And?"),
    Assistant(parts=(Text(text=""), Text(text=" Blank around. ")), cut=True),
    User(text="  "),
]


@over_cases("length", {str(length): length for length in range(1, len(FOREIGN) + 1)})
async def test_a_conversation_another_model_had_is_understood(vendor: Vendor, length: int) -> None:
    messages = FOREIGN[:length]
    if isinstance(messages[-1], Assistant) and messages[-1].calls:
        messages = messages[:-1]
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, request(vendor, *messages))
        sent = service.requests[0].body.decode()
    assert "Another model thought" not in sent
    assert "secret" not in sent


@over_vendors()
async def test_a_reply_of_the_same_vendor_but_another_model_is_understood(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Look.", calls=[READ]), Say(text="Fine.")]) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(vendor, conversation=conversation))
        native = cast("Native", first.message.native)
        conversation.append(
            first.message.model_copy(update={"native": native.model_copy(update={"model": "another-model"})})
        )
        conversation.append(results(first.message, "text"))
        await answer(model, request(vendor, conversation=conversation))


@over_vendors()
async def test_a_conversation_survives_the_journal(vendor: Vendor) -> None:
    """What was written as JSON and read again is sent to the byte as before."""
    thought = "" if "thoughts" in vendor.lacks else "Hm."
    script = [Say(thought=thought, text="Look.", calls=[READ]), Say(text="Fine."), Say(text="Fine.")]
    async with running(vendor, script) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        conversation.append(results(first.message, "text"))
        await answer(model, request(vendor, conversation=conversation))
        again = Conversation([type(each).model_validate_json(each.model_dump_json()) for each in conversation])
        await answer(model, request(vendor, conversation=again))
        assert service.requests[1].body == service.requests[2].body


@over_vendors("stop")
async def test_a_text_with_an_unknown_finish_reason_is_an_answer(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Fine.", stop="SOMETHING_NEW")]) as (_, model):
        done = await answer(model, request(vendor))
    assert (done.message.text, done.stop) == ("Fine.", "end")


# Faults ------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Fault, type[ModelError], float | None]] = {
    "401": (Fault("status", status=401), AuthFailed, None),
    "403": (Fault("status", status=403), AuthFailed, None),
    "404": (Fault("status", status=404, message="model: nothing"), ModelNotFound, None),
    "400": (Fault("status", status=400, message="tools: bad"), RequestRefused, None),
    "429": (Fault("status", status=429), RateLimited, None),
    "429 with Retry-After": (Fault("status", status=429, headers={"retry-after": "7"}), RateLimited, 7.0),
    "500": (Fault("status", status=500), Overloaded, None),
    "502": (Fault("status", status=502), Overloaded, None),
    "503 with Retry-After": (Fault("status", status=503, headers={"retry-after": "3"}), Overloaded, 3.0),
    "529": (Fault("status", status=529), Overloaded, None),
    "redirect": (Fault("status", status=307, headers={"location": "http://127.0.0.1:9/"}), RequestRefused, None),
    "reset before headers": (Fault("reset", headers_first=False), Unreachable, None),
    "reset after headers": (Fault("reset"), StreamBroken, None),
    "reset in mid-stream": (Fault("reset", after=3), StreamBroken, None),
    "no finish marker": (Fault("unfinished"), StreamBroken, None),
    "cut in a string": (Fault("cut", after=2), StreamBroken, None),
    "cut in the first event": (Fault("cut"), StreamBroken, None),
    "empty stream": (Fault("empty"), StreamBroken, None),
    "malformed event": (Fault("malformed", after=2), StreamBroken, None),
    "malformed first event": (Fault("malformed"), StreamBroken, None),
}


@over_cases("fault, error, wait", FAULTS, "http")
async def test_a_fault_is_a_typed_error(vendor: Vendor, fault: Fault, error: type[ModelError], wait: float) -> None:
    async with running(vendor, [fault]) as (service, model):
        with pytest.raises(ModelError) as caught:
            await answer(model, request(vendor))
        await _until(lambda: service.open_streams == 0)
    assert type(caught.value) is error
    assert caught.value.retry_after == wait
    assert str(caught.value)[-1] in ".!?…)"


@over_vendors("errorEvent")
@pytest.mark.parametrize("after", [0, 2])
async def test_an_error_event_after_200_is_a_typed_error(vendor: Vendor, after: int) -> None:
    async with running(vendor, [Fault("errorEvent", after=after, message="Overloaded")]) as (_, model):
        with pytest.raises(Overloaded):
            await answer(model, request(vendor))


@over_vendors()
async def test_a_prompt_over_the_window_is_context_too_long(vendor: Vendor) -> None:
    async with running(vendor, []) as (service, model):
        cast("Any", service).window = 10
        with pytest.raises(ContextTooLong):
            await answer(model, request(vendor))
        service.refused.clear()


@over_vendors("http")
async def test_an_address_where_nobody_listens_is_unreachable(vendor: Vendor) -> None:
    model = vendor.model(KEY, "http://127.0.0.1:9")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        await answer(model, request(vendor))
    await model.close()


@over_vendors("key")
async def test_the_key_is_nowhere_to_be_seen(vendor: Vendor) -> None:
    faults: list[Step] = [Fault("status", status=status, message=f"bad key {KEY}") for status in (400, 401, 429, 500)]
    if "errorEvent" not in vendor.lacks:
        faults.append(Fault("errorEvent", after=1, message=f"bad key {KEY}"))
    async with running(vendor, faults) as (_, model):
        for _each in faults:
            with pytest.raises(ModelError) as caught:
                await answer(model, request(vendor))
            error = caught.value
            assert KEY not in f"{error} {error!r} {error.details} {error.__cause__!r} {model!r}"


# Silence, cancelling, retries --------------------------------------------------------------------------


@over_vendors()
@pytest.mark.parametrize("after", [0, 3])
async def test_silence_is_noticed_and_tried_again(vendor: Vendor, after: int) -> None:
    script: list[Step] = [Say(text="Warm."), Fault("silence", after=after), *[Say(text="Here.")] * 9]
    async with running(vendor, script) as (service, model):
        _ = [each async for each in model.stream(request(vendor))]  # importing an SDK is no silence
        seen = [each async for each in stream_with_retry(model, request(vendor), QUICK)]
        assert service.requests[1].dropped.is_set()
    retries = [each for each in seen if isinstance(each, RetryScheduled)]
    assert retries  # on a slow machine the next attempt may seem silent too
    assert "silent" in retries[0].reason


@over_vendors()
async def test_what_a_broken_attempt_showed_is_withdrawn_before_the_next(vendor: Vendor) -> None:
    script: list[Step] = [Say(text=["dead ", "words"], fault=Fault("unfinished")), Say(text="Alive.")]
    async with running(vendor, script) as (_, model):
        shown = ""
        async for each in stream_with_retry(model, request(vendor), AT_ONCE):
            if isinstance(each, TextDelta):
                shown += each.text
            elif isinstance(each, AttemptWithdrawn):
                assert shown == "dead words"
                shown = ""
    assert shown == "Alive."


@over_vendors("thoughts", "whole")
async def test_what_breaks_off_twice_is_asked_for_in_one_piece(vendor: Vendor) -> None:
    broken = Say(text="Half a", fault=Fault("unfinished"))
    whole = Say(thought="Hm.", text="All of it.", calls=[READ, GREP])
    async with running(vendor, [broken, broken, whole, Say(text="Fine.")]) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        asked = request(vendor, conversation=conversation)
        seen = [each async for each in stream_with_retry(model, asked, AT_ONCE)]
        done = cast("ReplyCompleted", seen[-1])
        conversation.append(done.message)
        conversation.append(results(done.message, "text"))
        await answer(model, asked)
        streamed = [b'"stream":true' in each.body or "alt=sse" in each.query for each in service.requests]
    assert streamed == [True, True, False, True]
    assert (done.message.text, done.stop) == ("All of it.", "calls")
    assert [call.arguments for call in done.message.calls] == [READ.arguments, GREP.arguments]
    assert any(isinstance(part, Thinking) for part in done.message.parts)


@over_vendors("thoughts")
async def test_a_reply_of_thoughts_alone_is_no_answer(vendor: Vendor) -> None:
    async with running(vendor, [Say(thought="Hm."), Say(text="Here.")]) as (service, model):
        seen = [each async for each in stream_with_retry(model, request(vendor), AT_ONCE)]
        assert len(service.requests) == 2
    assert [type(each) for each in seen if isinstance(each, AttemptWithdrawn | RetryScheduled)] == [
        AttemptWithdrawn,
        RetryScheduled,
    ]


UNDER_WAY: dict[str, Step] = {
    "writing": Say(text=["a"] * 50, delay=0.05),
    "silent": Fault("silence"),
    "not yet begun": Say(text="a", wait=30),
}


@over_cases("step", UNDER_WAY)
async def test_cancelling_drops_the_connection_at_once(vendor: Vendor, step: Step) -> None:
    async with running(vendor, [step]) as (service, model):
        task = asyncio.create_task(deltas(model, request(vendor)))
        await _until(lambda: len(service.requests) == 1)
        await asyncio.sleep(0.03)
        cancelled = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(service.requests[0].dropped.wait(), 2)
        assert cast("float", service.requests[0].dropped_at) - cancelled < 0.5


@over_vendors()
async def test_closing_the_stream_drops_the_connection(vendor: Vendor) -> None:
    async with running(vendor, [Say(text=["a"] * 50, delay=0.05)]) as (service, model):
        async with aclosing(cast("Any", model.stream(request(vendor)))) as stream:
            async for _each in stream:
                break
        assert _open_bodies() == [], "a collector in another thread must find none to end"
        await asyncio.wait_for(service.requests[0].dropped.wait(), 2)


def _open_bodies() -> list[Any]:
    """Bodies of responses that somebody began to read, and nobody ended."""
    found = cast("list[Any]", [each for each in gc.get_objects() if type(each) is AsyncGeneratorType])
    return [each for each in found if each.ag_frame is not None and "AsyncResponseStream" in each.__qualname__]


@over_vendors()
async def test_streams_at_once_do_not_mix(vendor: Vendor) -> None:
    words = [f"w{at}" for at in range(8)]
    async with running(vendor, [Say(text=[word] * 5, delay=0.01) for word in words]) as (_, model):
        dones = await asyncio.gather(*(answer(model, request(vendor)) for _ in words))
    assert sorted(done.message.text for done in dones) == sorted(word * 5 for word in words)


async def _until(holds: Any) -> None:
    """Wait until it holds, at most five seconds."""
    for _each in range(1000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("did not come true")
