"""A conversation goes on with another vendor or model, in the middle of a tool loop, and comes back. The strict
services refuse what is missing and lint what came from elsewhere."""

import itertools
from typing import Any

import pytest

from amanu.core.conversation import Assistant, Conversation, Message, Picture, Results, SystemText, User
from amanu.core.model import Model
from support.sample_images import base64_of, png
from support.strict_services.http import Say, Service, ToolUse
from support.vendor_sweeps import over_handovers
from support.vendors import KEY, VENDORS, Vendor, answer, request, results, running
from wire.test_behaviours import _history  # pyright: ignore[reportPrivateUsage]

CALLS = [
    ToolUse("read_file", {"path": "a.py"}),
    ToolUse("grep", {"pattern": "x"}),
    ToolUse("read_file", {"path": "a.py"}),  # the same again, beside the first
]
PICTURE = Picture(name="shot.png", media_type="image/png", blob_id="p", size=len(png()))


async def said(vendor: Vendor, service: Service, model: Model, conversation: Conversation, say: Say) -> dict[str, Any]:
    """The vendor's model says it, at the end of the conversation. The body of the request."""
    service.script([say])
    conversation.append((await answer(model, request(vendor, conversation=conversation))).message)
    return service.requests[-1].json


def answered(conversation: Conversation, *, cut: bool = False) -> None:
    """Results of all kinds for the last calls: one well, one in error, the rest well or not run; then a picture."""
    reply = conversation.last
    assert isinstance(reply, Assistant)
    if cut:
        conversation.append(reply.model_copy(update={"cut": True}))
        del conversation._messages[-2]  # pyright: ignore[reportPrivateUsage]
        conversation.rewrites += 1
        conversation.close_calls("Not run: the reply was cut.")
    else:
        made = results(reply, "text", "No such file.", "")
        second = made.results[1].model_copy(update={"is_error": True})
        conversation.append(Results(results=(made.results[0], second, *made.results[2:])))
    conversation.add_notes(PICTURE, "Like this.", SystemText(text="Mode: plan.", status=True))
    conversation.check()


def having(*messages: Message) -> Conversation:
    conversation = Conversation(messages)
    conversation.pictures = {"p": base64_of(png())}
    return conversation


async def back_and_forth(
    first: tuple[Vendor, Service, Model], second: tuple[Vendor, Service, Model]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two steps of one and three of the other in one loop, then a turn each. What the first got of its own reply
    before it was left, and after it was come back to."""
    conversation = having(User(text="Hello.", pictures=(PICTURE,), status="Mode: ask."))
    await said(*first, conversation, Say(thought="Hm.", text="I look.", calls=CALLS))
    answered(conversation)
    before = await said(*first, having(*conversation), Say(text="Aside."))
    await said(*second, conversation, Say(thought="I, too.", calls=CALLS))
    answered(conversation, cut=True)
    await said(*second, conversation, Say(calls=CALLS[:2]))
    answered(conversation)
    after = await said(*first, conversation, Say(thought="Back.", calls=CALLS[:2]))
    answered(conversation)
    await said(*second, conversation, Say(thought="So.", text="Done."))
    conversation.append(User(text="And now?", status="Mode: auto."))
    await said(*first, conversation, Say(thought="Now.", text="That."))
    conversation.append(User(text="Thanks."))
    await said(*second, conversation, Say(text="Bye."))
    return before, after


@over_handovers()
async def test_a_tool_loop_goes_on_with_another_vendor_and_comes_back(first: Vendor, vendor: Vendor) -> None:
    async with running(first, []) as here, running(vendor, []) as there:
        before, after = await back_and_forth((first, *here), (vendor, *there))
    # What it said, thoughts and signatures and all, is to the one who said it what it was.
    assert _history(after)[: len(_history(before))] == _history(before)


SWITCHES = [pair for pair in itertools.permutations(VENDORS, 2) if pair[0].service is pair[1].service]


@pytest.mark.behaviour("sibling")
@pytest.mark.parametrize(
    ("first", "vendor"), SWITCHES, ids=[f"{first.name}-{vendor.name}" for first, vendor in SWITCHES]
)
async def test_a_tool_loop_goes_on_with_another_model_of_the_vendor(first: Vendor, vendor: Vendor) -> None:
    async with running(first, []) as (service, model):
        other = vendor.model(KEY, f"http://127.0.0.1:{service.port}")
        before, after = await back_and_forth((first, service, model), (vendor, service, other))
        await other.close()
    assert _history(after)[: len(_history(before))] == _history(before)
