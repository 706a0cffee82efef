"""Thoughts and what comes with them: kept, sent back as they came, left out where they mean nothing. And what a text
rests on."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from amanu.core.conversation import Conversation, User
from amanu.core.model import RequestRefused
from amanu.core.model_families import EFFORTS
from amanu_protocol.items import Source
from support.strict_services.http import Cite, Say, ToolUse
from support.vendor_sweeps import over_cases, over_vendors
from support.vendors import VENDORS, Vendor, answer, request, results, running

READ = ToolUse("read_file", {"path": "a.py"})
GREP = ToolUse("grep", {"pattern": "x"})


async def conversed(vendor: Vendor, script: Sequence[Say], **changed: Any) -> tuple[Conversation, list[dict[str, Any]]]:
    """Play the script to its end, results for calls, "Go on." for an answer; the bodies of the requests."""
    conversation = Conversation([User(text="Hello.")])
    async with running(vendor, script) as (service, model):
        for _each in script:
            done = await answer(model, request(vendor, conversation=conversation, **changed))
            conversation.append(done.message)
            conversation.append(results(done.message, "ok") if done.message.calls else User(text="Go on."))
        return conversation, [each.json for each in service.requests]


def sent_back(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the model's own messages, in order."""
    messages: list[dict[str, Any]] = body.get("messages") or body["contents"]
    replies = [each for each in messages if each["role"] in ("assistant", "model")]
    return [part for reply in replies for part in _parts(reply)]


def _parts(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a reply on the third wire, which has none: the whole."""
    parts: Any = reply.get("parts") or reply.get("content")
    return cast("list[dict[str, Any]]", parts) if isinstance(parts, list) else [reply]


@over_vendors("thoughts")
async def test_thoughts_go_back_as_the_service_wants_them(vendor: Vendor) -> None:
    """The strict services refuse or lint what was changed, moved or left out."""
    await conversed(
        vendor,
        [
            Say(thought=["Hm, ", "so."], text="I look.", calls=[READ, GREP]),
            Say(thought="Aha.", calls=[GREP]),
            Say(calls=[READ]),
            Say(thought="Well.", text="Done."),
            Say(thought="Again.", calls=[READ, READ]),
            Say(text="Done again."),
            Say(text="Yes."),
        ],
    )


@over_cases("effort", {effort: effort for effort in EFFORTS}, "thoughts")
async def test_every_effort_is_one_the_model_knows(vendor: Vendor, effort: str) -> None:
    await conversed(vendor, [Say(thought="Hm.", calls=[READ]), Say(text="Done.")], effort=effort)


@over_vendors("thoughts")
async def test_a_reply_cut_while_it_still_thought_can_be_gone_on_from(vendor: Vendor) -> None:
    script = [Say(thought="Hm, hm,", stop="outputLimit"), Say(thought="Hm.", calls=[READ]), Say(text="Done.")]
    await conversed(vendor, script)


@over_vendors("redaction")
@pytest.mark.parametrize("thought", ["", "Hm."], ids=["alone", "after readable ones"])
async def test_thoughts_nobody_may_read_go_back_untouched(vendor: Vendor, thought: str) -> None:
    script = [
        Say(thought=thought, redacted=["SECRET", "MORE"], text="I look.", calls=[READ]),
        Say(redacted=["SECRET"], calls=[READ]),
        Say(text="Done."),
    ]
    _, bodies = await conversed(vendor, script)
    kinds = [part["type"] for part in sent_back(bodies[-1])]
    readable = ["thinking"] if thought else []
    first = [*readable, "redacted_thinking", "redacted_thinking", "text", "tool_use"]
    assert kinds == [*first, "redacted_thinking", "tool_use"]


@over_vendors("signatures")
async def test_signatures_stay_on_their_part_and_stand_ins_leave_with_their_loop(vendor: Vendor) -> None:
    script = [
        Say(thought="Hm.", calls=[READ, GREP]),  # signed: on the first of two calls
        Say(calls=[GREP]),  # the service issued none: a stand-in
        Say(text="Done."),
        Say(thought="Hm.", text="So."),  # signed: on an empty text
        Say(text="End."),
    ]
    _, bodies = await conversed(vendor, script)
    stood_in = ["skip_thought_signature_validator" in str(body) for body in bodies]
    if vendor.name == "google-openai":  # that service signs every first call
        assert stood_in == [False] * 5
    else:
        assert stood_in == [False, False, True, False, False]
    signed = [_signed(part) for part in sent_back(bodies[1])]
    assert signed == ([True] if vendor.name == "google-openai" else [True, False])


def _signed(part: dict[str, Any]) -> bool:
    return "thoughtSignature" in part or "extra_content" in str(part)


@over_vendors("binding")
async def test_thinking_the_service_no_longer_takes_costs_the_thinking_only(vendor: Vendor) -> None:
    """As of another account's key: nothing we could know of."""
    conversation = Conversation([User(text="Hello.")])
    script = [Say(thought="Hm.", calls=[READ]), Say(thought="Aha.", calls=[READ]), Say(text="Fine.")]
    async with running(vendor, script) as (service, model):
        for at in range(3):
            if at == 1:
                service.distrust()  # type: ignore[attr-defined]
            done = await answer(model, request(vendor, conversation=conversation))
            conversation.append(done.message)
            if done.message.calls:
                conversation.append(results(done.message, "ok"))
        kinds = [[part["type"] for part in sent_back(each.json)] for each in service.requests]
        assert len(service.refused) == 1
        assert "Invalid `signature`" in service.refused.pop()
    assert kinds == [
        [],
        ["thinking", "tool_use"],
        ["tool_use"],
        ["tool_use", "thinking", "tool_use"],
    ]


async def test_another_refusal_is_not_tried_again() -> None:
    service = VENDORS[0].service([])
    model = VENDORS[0].model("sk-test", await service.start())
    with pytest.raises(RequestRefused):
        await answer(model, request(VENDORS[0]))
    assert len(service.requests) == 1
    await model.close()
    await service.stop()


CITES = [Cite("Zebra", "https://z.example/"), Cite("Aardvark", "https://a.example/", "It digs.")]


@over_vendors("sources")
async def test_what_a_text_rests_on_is_told_and_goes_back_as_it_came(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="So it is.", cites=CITES), Say(text="Yes.")]) as (_, model):
        conversation = Conversation([User(text="Why?")])
        done = await answer(model, request(vendor, conversation=conversation))
        conversation.append(done.message)
        conversation.append(User(text="Really?"))
        assert not (await answer(model, request(vendor, conversation=conversation))).sources
    quotes = vendor.column not in ("OpenAI Responses", "ChatGPT plan")  # that wire says where, not what
    assert list(done.sources) == [
        Source(title=each.title, url=each.url, quote=each.quote if quotes else "") for each in CITES
    ]
    assert done.message.text == "So it is."
