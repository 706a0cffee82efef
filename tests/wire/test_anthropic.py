"""What is particular to Anthropic: thinking, cache marks, bound prefixes, its events and errors."""

import asyncio
import itertools
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from amanu.agent.loop import run_turn
from amanu.core.conversation import (
    Assistant,
    Call,
    Conversation,
    Message,
    Native,
    Result,
    Results,
    SystemText,
    Text,
    Thinking,
    User,
)
from amanu.core.model import (
    AuthFailed,
    CallDelta,
    ContextTooLong,
    ModelError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ReplyCompleted,
    Request,
    RequestRefused,
    StreamBroken,
)
from amanu.core.model_families import model_info
from amanu.models import anthropic_request
from amanu.models.anthropic import AnthropicModel
from amanu.models.anthropic_reply import AnthropicReply
from amanu.models.anthropic_request import RequestBodies
from amanu_protocol.items import Effort, Source
from support.loop_harness import LoopHarness
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Fault, Raw, Received, Refusal, Say, Step, ToolUse
from support.sweeps import examples
from support.vendors import KEY, TOOLS, VENDORS, answer, deltas, request, running

BOUND, ADAPTIVE, BUDGET = VENDORS[:3]
READ = ToolUse("read_file", {"path": "a.py"})


def body(
    bodies: RequestBodies,
    conversation: Conversation,
    model: str = "claude-opus-5-5",
    effort: Effort = "medium",
    *,
    user_may_pause: bool = False,
) -> dict[str, Any]:
    """The request's body; refused by the strict service → the test fails."""
    info = model_info(f"anthropic:{model}")
    asked = Request(info, "You help.", TOOLS, conversation, "s1", effort, user_may_pause=user_may_pause)
    data, _ = bodies.body(asked)
    assert verdict(data) is None
    return json.loads(data)


def verdict(data: bytes) -> Refusal | None:
    """What the service says to the body."""
    headers = {"authorization": f"Bearer {KEY}", "anthropic-version": "1"}
    service = Anthropic()
    refusal = service.check(Received("POST", "/v1/messages", "", headers, data, 0.0))
    assert service.lint == []
    return refusal


# The request -------------------------------------------------------------------------------------------

THINKING: list[tuple[str, Effort, dict[str, Any]]] = [
    (
        "claude-opus-5-5",
        "high",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
    ),
    (
        "claude-sonnet-4-6",
        "low",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    ),
    (
        "claude-opus-5-5",
        "minimal",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    ),
    (
        "claude-opus-5",
        "xhigh",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
    ),
    (
        "claude-sonnet-4-6",
        "xhigh",
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}},
    ),
    ("claude-haiku-4-5", "minimal", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("claude-haiku-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ("claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 24_576}}),
    ("claude-3-5-haiku-latest", "high", {}),
]


@pytest.mark.parametrize(("model", "effort", "expected"), THINKING)
def test_thinking_is_asked_for_as_the_model_wants_it(model: str, effort: Effort, expected: dict[str, Any]) -> None:
    sent = body(RequestBodies(), Conversation([User(text="Hi.")]), model, effort=effort)
    assert {name: sent[name] for name in ("thinking", "output_config") if name in sent} == expected
    assert not {"temperature", "top_p", "top_k"} & sent.keys()


def turns(count: int) -> Conversation:
    """So many steps of a tool loop."""
    conversation = Conversation([User(text="Hi.")])
    for at in range(count):
        call = Call(call_id=f"c{at}", tool="grep", arguments={"pattern": "x"})
        conversation.append(Assistant(parts=(Text(text="Look."), call)))
        conversation.append(Results(results=(Result(call_id=f"c{at}", tool="grep", text="found"),)))
    return conversation


@pytest.mark.parametrize(("steps", "marked"), [(0, [0]), (1, [0, 2]), (2, [2, 4]), (40, [78, 80])])
def test_cache_marks_are_on_tools_system_and_the_last_two_of_the_user(steps: int, marked: list[int]) -> None:
    sent = body(RequestBodies(), turns(steps))
    assert ["cache_control" in tool for tool in sent["tools"]] == [False, True]
    assert ["cache_control" in block for block in sent["system"]] == [True]
    found = [at for at, each in enumerate(sent["messages"]) for block in each["content"] if "cache_control" in block]
    assert found == marked


LIFETIMES = [(False, {"type": "ephemeral"}), (True, {"type": "ephemeral", "ttl": "1h"})]


@pytest.mark.parametrize(("user_may_pause", "mark"), LIFETIMES, ids=["nobody waits", "a user may pause"])
def test_caches_last_as_long_as_a_user_may_pause(user_may_pause: bool, mark: dict[str, str]) -> None:
    sent = body(RequestBodies(), turns(3), user_may_pause=user_may_pause)
    blocks = [*sent["tools"], *sent["system"], *(block for each in sent["messages"] for block in each["content"])]
    assert [block["cache_control"] for block in blocks if "cache_control" in block] == [mark] * 4


def test_how_long_a_cache_lasts_does_not_touch_bound_thinking() -> None:
    bodies = RequestBodies()
    asked = [
        Request(model_info(BOUND.model_id), "Help.", TOOLS, turns(1), "s1", user_may_pause=at) for at in (False, True)
    ]
    assert len({bodies.body(each)[1] for each in asked}) == 1


@pytest.mark.parametrize("known_there", [True, False], ids=["the service", "a gateway that refuses lifetimes"])
async def test_what_was_written_for_an_hour_is_counted_apart(known_there: bool) -> None:
    say = Say(text="Hi.", usage={"cache_write": 70})
    async with running(BOUND, [say] * 3) as (service, model):
        service.knows_ttl = known_there  # type: ignore[attr-defined]
        counted = [await answer(model, request(BOUND, user_may_pause=at)) for at in (False, True, True)]
        hour = 70 if known_there else 0
        assert [(each.usage.cache_write, each.usage.cache_write_hour) for each in counted] == [
            (70, 0), (70, hour), (70, hour)
        ]  # fmt: skip
        assert len(service.refused) == (0 if known_there else 1), "told once, it is not wished for again"
        service.refused.clear()


async def test_requests_at_once_learn_of_one_refusal() -> None:
    async with running(BOUND, [Say(text="One."), Say(text="Two.")]) as (service, model):
        service.knows_eager = False  # type: ignore[attr-defined]
        replies = await asyncio.gather(*(answer(model, request(BOUND)) for _ in range(2)))
        assert {each.message.text for each in replies} == {"One.", "Two."}
        service.refused.clear()


async def test_a_gateway_may_refuse_several_wishes_one_after_the_other() -> None:
    async with running(BOUND, [Say(text="Hi.")]) as (service, model):
        service.knows_eager = service.knows_ttl = False  # type: ignore[attr-defined]
        await answer(model, request(BOUND, user_may_pause=True))
        assert len(service.refused) == 2
        service.refused.clear()


MINUTES, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize(
    ("tool", "system", "said", "expected"),
    [
        (MINUTES, MINUTES, MINUTES, None),
        (HOUR, HOUR, HOUR, None),
        (HOUR, HOUR, MINUTES, None),
        (HOUR, MINUTES, {"type": "ephemeral", "ttl": "5m"}, None),
        (MINUTES, HOUR, HOUR, "a ttl='1h' cache_control block must not come after"),
        (HOUR, MINUTES, HOUR, "a ttl='1h' cache_control block must not come after"),
        (HOUR, HOUR, {"type": "ephemeral", "ttl": "2h"}, "ttl: Input should be '5m' or '1h'"),
        (HOUR, HOUR, {"type": "ephemeral", "scope": "x"}, "cache_control.ephemeral.scope: Extra inputs"),
        (HOUR, HOUR, {"type": "lasting"}, "cache_control.type: Input should be 'ephemeral'"),
    ],
)
def test_the_service_refuses_lifetimes_that_make_no_sense(
    tool: dict[str, str], system: dict[str, str], said: dict[str, str], expected: str | None
) -> None:
    sent = body(RequestBodies(), Conversation([User(text="Hi.")]))
    sent["tools"][-1]["cache_control"] = tool
    sent["system"][0]["cache_control"] = system
    sent["messages"][0]["content"][0]["cache_control"] = said
    refusal = verdict(json.dumps(sent).encode())
    assert (refusal is None) if expected is None else (refusal is not None and expected in refusal.message)


def test_each_message_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []

    def dumps(value: Any) -> bytes:
        written.append(value)
        return json.dumps(value).encode()

    monkeypatch.setattr(anthropic_request, "dumps", dumps)
    bodies, conversation = RequestBodies(), turns(50)
    body(bodies, conversation)
    written.clear()
    conversation.append(Assistant(parts=(Text(text="New."),)))
    conversation.append(User(text="Newer."))
    body(bodies, conversation)
    assert [each["role"] for each in written if isinstance(each, dict) and "role" in each] == ["assistant", "user"]
    assert len(written) == 5  # and what the prefix begins with, the head, and the mark


def test_what_was_replaced_is_written_anew() -> None:
    bodies = RequestBodies()
    conversation = turns(3)
    before = body(bodies, conversation)
    grown = Conversation([*conversation])
    bodies.body(request(BOUND, conversation=grown))
    grown.close_calls()
    changed = cast("Results", grown[2]).model_copy(update={"notes": ("Late.",)})
    rewritten = Conversation([grown[0], grown[1], changed, *[grown[at] for at in range(3, len(grown))]])
    after = body(bodies, rewritten)
    assert before["messages"][2] != after["messages"][2]
    assert before["messages"][3:] == after["messages"][3:]
    conversation._messages[2] = changed  # pyright: ignore[reportPrivateUsage]
    conversation.rewrites += 1
    assert body(bodies, conversation) == after


def test_a_conversation_is_forgotten_with_its_last_user() -> None:
    bodies = RequestBodies()
    body(bodies, turns(2))
    assert len(bodies._kept) == 0  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("vendor", "system", "tools", "kept"),
    [
        (BOUND, "You help.", TOOLS, True),
        (BOUND, "You help, and know the time.", TOOLS, False),
        (BOUND, "You help.", TOOLS[:1], False),
        (ADAPTIVE, "You help, and know the time.", TOOLS, True),
        (BUDGET, "You help, and know the time.", TOOLS, True),
    ],
    ids=["same", "other system", "other tools", "unbound", "unbound budget"],
)
async def test_thinking_bound_to_another_prefix_is_left_out(vendor: Any, system: str, tools: Any, kept: bool) -> None:
    script = [Say(thought="Hm.", calls=[READ]), Say(thought="Aha.", text="Fine.")]
    async with running(vendor, script) as (service, model):
        conversation = Conversation([User(text="Hi.")])
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        call = first.message.calls[0]
        conversation.append(Results(results=(Result(call_id=call.call_id, tool=call.tool, text="ok"),)))
        await answer(model, request(vendor, conversation=conversation, system=system, tools=tools))
        kinds = [block["type"] for block in service.requests[1].json["messages"][1]["content"]]
    assert kinds == (["thinking", "tool_use"] if kept else ["tool_use"])


async def test_masking_an_early_result_costs_the_later_thinking_and_nothing_else() -> None:
    script = [Say(thought="Hm.", calls=[READ]) for _ in range(3)]
    async with running(BOUND, [*script, Say(text="Fine."), Say(text="Fine.")]) as (service, model):
        conversation = Conversation([User(text="Hi.")])
        while (done := await answer(model, request(BOUND, conversation=conversation))).message.calls:
            conversation.append(done.message)
            call = done.message.calls[0]
            conversation.append(Results(results=(Result(call_id=call.call_id, tool=call.tool, text="long"),)))
        messages = list(conversation)
        first = cast("Results", messages[2])
        messages[2] = Results(results=(first.results[0].model_copy(update={"text": "(masked)"}),))
        await answer(model, request(BOUND, conversation=Conversation(messages)))
        sent = service.requests[-1].json["messages"]
    assert [[block["type"] for block in each["content"]] for each in sent if each["role"] == "assistant"] == [
        ["thinking", "tool_use"],
        ["tool_use"],
        ["tool_use"],
    ]


async def test_a_loop_begun_by_another_model_goes_on_without_thinking_where_that_is_required() -> None:
    async with running(BUDGET, [Say(text="Fine."), Say(text="Fine.")]) as (service, model):
        conversation = turns(2)
        conversation.append((await answer(model, request(BUDGET, conversation=conversation))).message)
        conversation.append(User(text="A new turn."))
        await answer(model, request(BUDGET, conversation=conversation))
        assert ["thinking" in each.json for each in service.requests] == [False, True]


@pytest.mark.parametrize("known_there", [True, False], ids=["the service", "a gateway that refuses the wish"])
async def test_arguments_come_as_they_are_written_where_the_service_can(known_there: bool) -> None:
    async with running(ADAPTIVE, [Say(calls=[READ]), Say(calls=[READ])]) as (service, model):
        service.knows_eager = known_there  # type: ignore[attr-defined]
        for _ in range(2):
            seen = await deltas(model, request(ADAPTIVE))
            pieces = [each for each in seen if isinstance(each, CallDelta) and each.text]
            assert (len(pieces) > 1, isinstance(seen[-1], ReplyCompleted)) == (known_there, True)
        assert [len(service.refused), *(["eager_input_streaming" in each for each in service.refused])] == (
            [0] if known_there else [1, True]
        ), "told once, it is not wished for again"
        service.refused.clear()


async def test_the_key_given_is_the_key_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with running(BOUND, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(BOUND))
        assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert "another" not in json.dumps(service.requests[0].headers)


async def test_one_connection_serves_one_request_after_the_other() -> None:
    async with running(BOUND, [Say(text="Hi.")] * 3) as (service, model):
        for _ in range(3):
            await answer(model, request(BOUND))
        assert service.connections == 1


# How the session is run -----------------------------------------------------------------------------------

PLAN = SystemText(text="Mode: plan.", status=True)
PROMPT = User(text="Hi.", status="Mode: ask.")
CALLED = Assistant(parts=(Call(call_id="c", tool="grep", arguments={"pattern": "x"}),))
FOUND = Result(call_id="c", tool="grep", text="found")
ANSWERED = Assistant(parts=(Text(text="So."),))


@pytest.mark.parametrize(
    ("model", "messages", "expected"),
    [
        ("claude-opus-5-5", [PROMPT], ["user: Hi.", "system: Mode: ask."]),
        ("claude-opus-4-8", [PROMPT], ["user: Hi.", "system: Mode: ask."]),
        ("claude-sonnet-5", [PROMPT], ["user: Hi.\n\nMode: ask."]),
        ("claude-haiku-4-5", [PROMPT], ["user: Hi.\n\nMode: ask."]),
        ("claude-opus-5", [PROMPT, ANSWERED], ["user: Hi.", "system: Mode: ask.", "assistant: So.", "user: Go on."]),
        # Only one that is last, or followed by a reply, may be the system's.
        ("claude-opus-5", [PROMPT, User(text="Again.")], ["user: Hi.", "user: Mode: ask.", "user: Again."]),
        (
            "claude-opus-5",
            [User(text="Hi."), CALLED, Results(results=(FOUND,), notes=("Steer.", PLAN, SystemText(text="Note.")))],
            ["user: Hi.", "assistant: grep", "user: found Steer. Note.", "system: Mode: plan."],
        ),
        (
            "claude-sonnet-5",
            [User(text="Hi."), CALLED, Results(results=(FOUND,), notes=(PLAN,))],
            ["user: Hi.", "assistant: grep", "user: found Mode: plan."],
        ),
        (
            "claude-opus-5",
            [PROMPT, CALLED, Results(results=(FOUND,), notes=(PLAN,)), User(text="Again.", status="Mode: auto.")],
            ["user: Hi.", "system: Mode: ask.", "assistant: grep", "user: found", "user: Mode: plan.", "user: Again.",
             "system: Mode: auto."],
        ),
    ],
)  # fmt: skip
def test_how_the_session_is_run_is_said_as_the_system_where_the_model_takes_it(
    model: str, messages: list[Message], expected: list[str]
) -> None:
    sent = body(RequestBodies(), Conversation(messages), model)["messages"]
    words = [[str(each.get("text") or each.get("content") or each.get("name")) for each in m["content"]] for m in sent]
    assert [f"{m['role']}: {' '.join(said)}" for m, said in zip(sent, words, strict=True)] == expected


async def test_a_change_of_mode_leaves_bound_thinking_and_all_before_it_as_it_was() -> None:
    replies = [Say(thought="Hm.", calls=[READ]), Say(thought="Hm.", calls=[READ]), Say(thought="So.", text="Done.")]
    async with running(BOUND, [*replies, Say(text="Bye.")]) as (service, model):
        conversation = Conversation([PROMPT])
        for _ in replies:
            conversation.append((await answer(model, request(BOUND, conversation=conversation))).message)
            if conversation.open_calls():
                conversation.close_calls("text")
                conversation.add_notes(PLAN)
        conversation.append(User(text="Next.", status="Mode: auto."))
        await answer(model, request(BOUND, conversation=conversation))
        sent = [each.body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for each in service.requests]
    assert all(after.startswith(before.removesuffix(b"]}")) for before, after in itertools.pairwise(sent))
    assert sent[-1].count(b'"role":"system"') == 4 and sent[-1].count(b'"type":"thinking"') == 3


@pytest.mark.parametrize(
    "words",
    [
        "role 'system' is not supported on this model",
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.',
        "messages.1.role: Input should be 'user' or 'assistant'",
    ],
)
async def test_a_gateway_that_refuses_messages_of_the_system_is_told_as_the_user(words: str) -> None:
    async with running(BOUND, [Say(text="Hi.")] * 2) as (service, model):
        service.knows_system_role = False  # type: ignore[attr-defined]
        service.system_role_refusal = words  # type: ignore[attr-defined]
        for _ in range(2):
            await answer(model, request(BOUND, PROMPT))
        assert len(service.refused) == 1, "told once, it is not tried again"
        service.refused.clear()


SYSTEM = {"role": "system", "content": [{"type": "text", "text": "Mode: plan."}]}
SAID = {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
REPLIED = {"role": "assistant", "content": [{"type": "text", "text": "So."}]}


@pytest.mark.parametrize(
    ("model", "messages", "expected"),
    [
        ("claude-opus-5", [SAID, SYSTEM], None),
        ("claude-opus-5", [SAID, SYSTEM, REPLIED, SAID], None),
        ("claude-fable-5-1", [SAID, SYSTEM], None),
        ("claude-sonnet-5", [SAID, SYSTEM], "role 'system' is not supported on this model"),
        ("claude-opus-4-7", [SAID, SYSTEM], "role 'system' is not supported on this model"),
        ("claude-opus-5", [SYSTEM, SAID], "first message must use the user role"),
        ("claude-opus-5", [SAID, SYSTEM, SYSTEM], "must be last or before an assistant message"),
        ("claude-opus-5", [SAID, SYSTEM, SAID], "must be last or before an assistant message"),
        ("claude-opus-5", [SAID, REPLIED, SYSTEM], "must follow a user message"),
    ],
)
def test_the_service_refuses_messages_of_the_system_out_of_place(
    model: str, messages: list[dict[str, Any]], expected: str | None
) -> None:
    sent = body(RequestBodies(), Conversation([User(text="Hi.")]), model)
    refusal = verdict(json.dumps({**sent, "messages": messages}).encode())
    assert (refusal is None) if expected is None else (refusal is not None and expected in refusal.message)


# Any conversation is accepted ----------------------------------------------------------------------------

TEXTS = st.one_of(st.sampled_from(["", " ", "\n", "\ud800", "x", "{", "ü"]), st.text(max_size=5))
ARGUMENTS: st.SearchStrategy[Any] = st.one_of(
    TEXTS, st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.integers(), st.booleans(), TEXTS), max_size=2)
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Whatever a loop may hand over: replies of any model, cut ones, odd ids and texts."""
    messages: list[Message] = [User(text=draw(TEXTS))]
    for at in range(draw(st.integers(0, 4))):
        calls = [
            Call(call_id=f"{draw(TEXTS)}{at}.{number}", tool=draw(TEXTS) or "t", arguments=draw(ARGUMENTS))
            for number in range(draw(st.integers(0, 3)))
        ]
        said = draw(st.lists(st.one_of(TEXTS.map(lambda t: Text(text=t)), TEXTS.map(lambda t: Thinking(text=t)))))
        messages.append(Assistant(parts=(*said, *calls)))
        answers = tuple(
            Result(call_id=c.call_id, tool=c.tool, text=draw(TEXTS), is_error=draw(st.booleans())) for c in calls
        )
        notes = tuple(draw(st.lists(TEXTS, max_size=2)))
        messages.append(Results(results=answers, notes=notes) if calls else User(text=draw(TEXTS)))
    return messages


@settings(max_examples=examples(150, 40), deadline=None)
@given(messages=conversations(), model=st.sampled_from(["claude-opus-5-5", "claude-sonnet-4-6", "claude-haiku-4-5"]))
def test_any_conversation_makes_a_body_the_service_takes(messages: list[Message], model: str) -> None:
    body(RequestBodies(), Conversation(messages), model)


# The reply ---------------------------------------------------------------------------------------------


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": piece}


def stopped(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


def reply(*events: dict[str, Any]) -> ReplyCompleted:
    taker = AnthropicReply("claude-opus-5-5", "p")
    for event in events:
        taker.add(event)
    return taker.done()


BLOCKS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        "text",
        [start(0, type="text", text="", citations=None), delta(0, type="text_delta", text="Hi."), stopped(0)],
        [{"type": "text", "text": "Hi."}],
    ),
    (
        "blank text is dropped",
        [start(0, type="text", text=""), delta(0, type="text_delta", text=" \n"), stopped(0)],
        [],
    ),
    (
        "text in the start event",
        [start(0, type="text", text="H"), delta(0, type="text_delta", text="i.")],
        [{"type": "text", "text": "Hi."}],
    ),
    (
        "thinking",
        [
            start(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="Hm."),
            delta(0, type="signature_delta", signature="AB"),
        ],
        [{"type": "thinking", "thinking": "Hm.", "signature": "AB"}],
    ),
    (
        "omitted thinking keeps its signature",
        [start(0, type="thinking", thinking="", signature=""), delta(0, type="signature_delta", signature="AB")],
        [{"type": "thinking", "thinking": "", "signature": "AB"}],
    ),
    (
        "thinking cut before its signature is dropped",
        [start(0, type="thinking", thinking="", signature=""), delta(0, type="thinking_delta", thinking="Hm.")],
        [],
    ),
    (
        "redacted thinking",
        [start(0, type="redacted_thinking", data="XYZ"), stopped(0)],
        [{"type": "redacted_thinking", "data": "XYZ"}],
    ),
    (
        "cited text",
        [
            start(0, type="text", text="", citations=[]),
            delta(0, type="text_delta", text="So."),
            delta(0, type="citations_delta", citation={"type": "char_location", "cited_text": "so", "file_id": None}),
        ],
        [
            {
                "type": "text",
                "text": "So.",
                "citations": [{"type": "char_location", "cited_text": "so", "file_id": None}],
            }
        ],
    ),
    (
        "a block nobody knows",
        [start(0, type="hologram", rays=[1, 2]), delta(0, type="ray_delta", ray=3), stopped(0)],
        [{"type": "hologram", "rays": [1, 2]}],
    ),
    (
        "a call",
        [
            start(0, type="tool_use", id="toolu_1", name="grep", input={}, caller=None),
            delta(0, type="input_json_delta", partial_json=""),
            delta(0, type="input_json_delta", partial_json='{"a"'),
            delta(0, type="input_json_delta", partial_json=": 1}"),
            stopped(0),
        ],
        [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"a": 1}}],
    ),
    (
        "a call without arguments",
        [start(0, type="tool_use", id="toolu_1", name="grep", input={}), stopped(0)],
        [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {}}],
    ),
    (
        "a call with its arguments in the start event",
        [start(0, type="tool_use", id="toolu_1", name="grep", input={"a": 1}), stopped(0)],
        [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"a": 1}}],
    ),
    (
        "a call cut before its first argument",
        [start(0, type="tool_use", id="toolu_1", name="grep", input={})],
        [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"INVALID_JSON": ""}}],
    ),
    (
        "events nobody knows",
        [{"type": "ping"}, {"type": "weather", "rain": True}, start(0, type="text", text="Hi.")],
        [{"type": "text", "text": "Hi."}],
    ),
    (
        "blocks whose numbers are out of order: they stay as they were shown",
        [start(1, type="text", text="one"), start(0, type="text", text="two")],
        [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    ),
]


@pytest.mark.parametrize(("events", "content"), [each[1:] for each in BLOCKS], ids=[each[0] for each in BLOCKS])
def test_blocks_are_kept_to_be_sent_back_unchanged(events: list[Any], content: list[Any]) -> None:
    native = cast("Native", reply(*events, *ended()).message.native)
    assert cast("Any", native.blocks)["content"] == content


CITED: list[tuple[dict[str, Any], Source]] = [
    (
        {"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "so"},
        Source(title="A", url="https://a.example", quote="so"),
    ),
    (
        {"type": "web_search_result_location", "url": "https://a.example", "title": None, "cited_text": "so"},
        Source(title="https://a.example", url="https://a.example", quote="so"),
    ),
    (
        {"type": "search_result_location", "source": "notes", "title": None, "cited_text": "so"},
        Source(title="notes", quote="so"),
    ),
    (
        {"type": "char_location", "document_title": "D", "document_index": 0, "cited_text": "so"},
        Source(title="D", quote="so"),
    ),
    (
        {"type": "page_location", "document_title": None, "document_index": 1, "cited_text": "so"},
        Source(title="Document 2", quote="so"),
    ),
]


@pytest.mark.parametrize(("citation", "source"), CITED)
def test_citations_are_sources(citation: dict[str, Any], source: Source) -> None:
    text = delta(0, type="text_delta", text="So.")
    done = reply(start(0, type="text", text=""), text, delta(0, type="citations_delta", citation=citation), *ended())
    assert list(done.sources) == [source]


STOPS = [
    ("end_turn", "end", False, ""),
    ("stop_sequence", "end", False, ""),
    ("tool_use", "calls", False, ""),
    ("max_tokens", "outputLimit", True, ""),
    ("model_context_window_exceeded", "outputLimit", True, "model_context_window_exceeded"),
    ("refusal", "refused", False, ""),
    ("pause_turn", "paused", False, ""),
    ("something_new", "end", False, "something_new"),
]


@pytest.mark.parametrize(("reason", "stop", "cut", "detail"), STOPS)
def test_stop_reasons(reason: str, stop: str, cut: bool, detail: str) -> None:
    done = reply(*ended(reason))
    assert (done.stop, done.message.cut, done.detail) == (stop, cut, detail)


@pytest.mark.parametrize("reason", ["something_new", "end_turn"])
def test_calls_count_whatever_the_reason_says(reason: str) -> None:
    done = reply(start(0, type="tool_use", id="t1", name="grep", input={}), stopped(0), *ended(reason))
    assert done.stop == "calls"


RECOMMENDED: dict[str, tuple[str, dict[str, str], str]] = {
    # the model, what its refusal says besides → the model that the user is told of
    "another": ("anthropic:claude-opus-5-5", {"recommended_model": "claude-sonnet-5"}, "anthropic:claude-sonnet-5"),
    "in words": (
        "anthropic:claude-opus-5-5",
        {"recommended_model": "claude-sonnet-5", "explanation": "Not this."},
        "anthropic:claude-sonnet-5",
    ),
    "by Bedrock's name": (
        "bedrock:anthropic.claude-opus-5-5",
        {"recommended_model": "claude-sonnet-5"},
        "bedrock:anthropic.claude-sonnet-5",
    ),
    "none": ("anthropic:claude-opus-5-5", {"category": "cyber"}, ""),
}


@pytest.mark.parametrize("case", RECOMMENDED)
async def test_the_model_that_a_refusal_recommends_is_named_as_it_is_chosen(case: str) -> None:
    model_id, details, told = RECOMMENDED[case]
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    harness = LoopHarness([[reply(end, {"type": "message_stop"})]])
    info = harness.turn.info.model_copy(update={"model_id": model_id})
    harness.turn.candidate = replace(harness.turn.candidate, info=info)
    ending = await run_turn(harness.turn)
    assert ending.reason == "refused"
    assert ending.message.endswith(f"`/model {told}`, then send it again.") == bool(told)
    assert ("/model" in ending.message) == bool(told)


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
    end = {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}
    assert reply(end, {"type": "message_stop"}).detail == "Not this."


@pytest.mark.parametrize(
    "events",
    [[], [{"type": "message_stop"}], ended(None), ended()[:1], [start(0, type="text", text="Hi."), stopped(0)]],
    ids=["nothing", "only stop", "no reason", "no stop", "no end"],
)
def test_without_its_finish_marker_a_reply_is_broken(events: list[dict[str, Any]]) -> None:
    with pytest.raises(StreamBroken):
        reply(*events)


def test_usage_is_cumulative_and_null_changes_nothing() -> None:
    first = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}
    done = reply(
        {"type": "message_start", "message": {"usage": first}},
        *ended("end_turn", input_tokens=None, output_tokens=7)[:1],
        *ended("end_turn", output_tokens=30, output_tokens_details={"thinking_tokens": 20}),
    )
    usage = done.usage
    assert usage.searches == 0
    counts = (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.thoughts, usage.context)
    assert counts == (10, 5, 3, 10, 20, 48)


@pytest.mark.parametrize(
    ("told", "searches"),
    [({"web_search_requests": 3, "web_fetch_requests": 1}, 3), ({"web_search_requests": None}, 0), (None, 0)],
)
def test_searches_are_counted(told: dict[str, Any] | None, searches: int) -> None:
    start: dict[str, Any] = {"type": "message_start", "message": {"usage": {"input_tokens": 1}}}
    assert reply(start, *ended("end_turn", server_tool_use=told)).usage.searches == searches


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=4,
)
SOUND = [
    start(0, type="text", text=""),
    delta(0, type="text_delta", text="x"),
    start(1, type="tool_use", id="t", name="n", input={}),
    delta(1, type="input_json_delta", partial_json="{}"),
    stopped(1),
    start(2, type="thinking", thinking="", signature=""),
    delta(2, type="signature_delta", signature="AB"),
    delta(0, type="citations_delta", citation={"type": "char_location", "cited_text": "so"}),
    {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
]


@st.composite
def broken_streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events in order, some left out or doubled, one of them with a field replaced by anything."""
    chosen = [event for event in [*SOUND, *ended()] for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2])))]
    events: list[dict[str, Any]] = json.loads(json.dumps(chosen))
    if events:
        event = draw(st.sampled_from(events))
        inner = [cast("dict[str, Any]", each) for each in event.values() if isinstance(each, dict)]
        where = draw(st.sampled_from([event, *inner]))
        if where:
            where[draw(st.sampled_from(sorted(where)))] = draw(JSON)
    return events


@pytest.mark.parametrize(
    "event",
    [
        start(0, type="tool_use", id="t", name=5, input={}),
        start(0, type="tool_use", id=None, name="n", input={}),
        start(0, type="text", text=5),
        start(0),
        delta(7, type="text_delta", text="x"),
        {"type": "message_start", "message": None},
        {"index": 0},
        [],
        7,
    ],
)
async def test_an_event_of_the_wrong_form_breaks_the_reply(event: Any) -> None:
    frames = [f"event: x\ndata: {json.dumps(each)}\n\n".encode() for each in [event, *ended()]]
    async with running(BOUND, [Raw(frames)]) as (_, model):
        with pytest.raises(StreamBroken):
            await answer(model, request(BOUND))


async def test_no_stream_fails_in_another_way_than_broken() -> None:
    script: list[Step] = []
    async with running(BOUND, lambda _: script.pop()) as (_, model):
        for events in _examples(broken_streams(), examples(60, 20)):
            frames = [f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
            script.append(Raw(frames))
            try:
                done = await answer(model, request(BOUND))
            except StreamBroken:
                continue
            assert done.message.model_dump_json()


def _examples(strategy: st.SearchStrategy[list[dict[str, Any]]], count: int) -> list[list[dict[str, Any]]]:
    """The same examples each time."""
    found: list[list[dict[str, Any]]] = []

    @seed(1)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def collect(example: list[dict[str, Any]]) -> None:
        found.append(example)

    collect()
    return found


# The wire ----------------------------------------------------------------------------------------------


async def test_a_stream_cut_at_any_byte_is_broken() -> None:
    service = Anthropic()
    body = b'{"model": "claude-opus-5-5", "messages": [], "stream": true}'
    asked = Received("POST", "/v1/messages", "", {}, body, 0.0)
    stream = b"".join(service.events(Say(thought="Hm.", text="ü\u2028", calls=[READ]), asked))
    last = stream.rindex(b"event: message_stop")
    cuts = [*range(1, last, 41), last, len(stream) - 4]
    async with running(BOUND, [Raw([stream[:cut]]) for cut in cuts] + [Raw([stream])]) as (_, model):
        for _cut in cuts:
            with pytest.raises(StreamBroken):
                await answer(model, request(BOUND))
        assert (await answer(model, request(BOUND))).message.text == "ü\u2028"


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("overloaded_error", "Overloaded", Overloaded),
        ("api_error", "Internal server error", Overloaded),
        ("timeout_error", "Timed out", Overloaded),
        ("rate_limit_error", "Too many tokens per minute", RateLimited),
        ("authentication_error", "Expired", AuthFailed),
        ("permission_error", "No", AuthFailed),
        ("invalid_request_error", "Bad", RequestRefused),
        ("invalid_request_error", "prompt is too long: 9 > 8", ContextTooLong),
        ("billing_error", "Your credit balance is too low", QuotaExhausted),
        ("invalid_request_error", "Your credit balance is too low to access the API", QuotaExhausted),
        ("brand_new_error", "Something", Overloaded),
    ],
)
async def test_an_error_event_is_told_by_its_type(kind: str, message: str, error: type[ModelError]) -> None:
    async with running(BOUND, [Fault("errorEvent", after=3, code=kind, message=message)]) as (_, model):
        with pytest.raises(ModelError) as caught:
            await answer(model, request(BOUND))
    assert type(caught.value) is error


async def test_the_service_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    call = {"tool": "grep", "arguments": {"pattern": "x"}}
    script.write_text(json.dumps([{"text": "Hi.", "calls": [call], "times": 2}, {"fault": {"kind": "empty"}}]))
    log = tmp_path / "log.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.strict_services.anthropic", "--script", str(script), "--log", str(log)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    model = AnthropicModel(KEY, f"http://127.0.0.1:{int(await process.stdout.readline())}")
    for _ in range(2):
        assert [call.tool for call in (await answer(model, request(BOUND))).message.calls] == ["grep"]
    with pytest.raises(StreamBroken):
        await answer(model, request(BOUND))
    await model.close()
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["path"], line["refused"], line["lint"]) for line in lines] == [("/v1/messages", None, [])] * 3


# What is said between calls ----------------------------------------------------------------------------

NOTED = Say(thought="I should look.", progress="Reading a.py first.", calls=[ToolUse("read", {"path": "a.py"})])
PROGRESS: dict[str, tuple[str, bool, list[str], list[str]]] = {
    # the model, whether thoughts are shown to nobody → the answers and the thoughts that the user gets
    "a run nobody watches": ("anthropic:claude-sonnet-5-5", True, ["Reading a.py first.", "Done."], []),
    "somebody watches": (
        "anthropic:claude-sonnet-5-5", False, ["Done."], ["I should look.Reading a.py first.", "Hm."],
    ),
    "a model that does not tell them apart": (
        "anthropic:claude-haiku-5-5", True, ["Done."], ["I should look.Reading a.py first.", "Hm."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROGRESS)
async def test_what_is_said_between_calls_is_an_answer_where_it_can_be_told_from_thoughts(case: str) -> None:
    model_id, progress, answers, thoughts = PROGRESS[case]
    vendor = replace(next(each for each in VENDORS if each.name == "anthropic"), model_id=model_id)
    async with running(vendor, [NOTED, Say(thought="Hm.", text="Done.")]) as (service, model):
        harness = LoopHarness([], info=model_info(model_id))
        harness.turn.candidate = replace(harness.turn.candidate, model=model)
        harness.turn.progress = progress
        assert (await run_turn(harness.turn)).reason == "completed"
        assert (harness.shown("answer"), harness.shown("thought")) == (answers, thoughts)
        assert len(service.requests) == 2


async def test_a_gateway_that_does_not_know_progress_gets_summaries() -> None:
    class Gateway(Anthropic):
        def check(self, request: Received) -> Refusal | None:
            if "anthropic-beta" in request.headers:
                return Refusal(
                    400, "Unexpected value(s) `thinking-display-updates-2026-08-18` for the `anthropic-beta` header."
                )
            return super().check(request)

    service = Gateway([Say(thought="Hm.", text="Done.")])
    model = AnthropicModel(KEY, await service.start())
    try:
        asked = request(next(each for each in VENDORS if each.name == "anthropic"), progress=True)
        done = await answer(model, asked)
    finally:
        await model.close()
        await service.stop()
    assert done.message.parts == (Thinking(text="Hm."), Text(text="Done."))
    assert [received.json["thinking"]["display"] for received in service.requests] == ["updates", "summarized"]


async def test_progress_without_a_call_is_no_answer() -> None:
    vendor = next(each for each in VENDORS if each.name == "anthropic")
    async with running(vendor, [Say(progress="Looking.")]) as (_, model):
        done = await answer(model, request(vendor, progress=True))
    assert (done.message.text, done.message.parts) == ("", (Thinking(text="Looking."),))
