"""Lines rewritten at the cursor, by every vendor: one request without tools, whose whole reply becomes a call."""

import json
from contextlib import aclosing
from typing import Any, cast

from amanu.agent.replies_as_calls import ReplyAsCall, ReplyCall
from amanu.core.conversation import Assistant, Conversation, User
from amanu.core.model import CallDelta, CallStarted, ReplyCompleted, TextDelta
from support.strict_services.http import Say
from support.vendor_sweeps import over_vendors
from support.vendors import TOOLS, Vendor, request, running

REPLY = '<rewrite>\n    return "ä\\n"\n</rewrite>'


@over_vendors()
async def test_a_reply_becomes_a_call_and_is_heard_again(vendor: Vendor) -> None:
    script = [Say(text=[REPLY[:5], REPLY[5:20], REPLY[20:]]), Say(text="<rewrite>\nb\n</rewrite>")]
    async with running(vendor, script) as (service, model):
        conversation = Conversation([User(text="Rewrite it.")])
        as_call = ReplyAsCall(model, ReplyCall("rewrite_lines", "a.py", conversation))
        first = await _deltas(as_call, vendor)
        conversation.append(User(text="Shorter."))
        second = await _deltas(as_call, vendor)
        assert not any(json.loads(received.body).get("tools") for received in service.requests)
    assert not any(isinstance(delta, TextDelta) for delta in first)
    (started,) = [delta for delta in first if isinstance(delta, CallStarted)]
    written = "".join(delta.text for delta in first if isinstance(delta, CallDelta))
    done = first[-1]
    assert isinstance(done, ReplyCompleted) and done.stop == "calls"
    (call,) = done.message.calls
    assert (call.call_id, call.tool) == (started.call_id, "rewrite_lines")
    assert call.arguments == {"path": "a.py", "reply": REPLY} == json.loads(f'{written}"}}')
    assert second[-1].message.calls[0].arguments["reply"] == "<rewrite>\nb\n</rewrite>"
    roles = [(type(message), message.text) for message in conversation if isinstance(message, User | Assistant)]
    assert roles[1] == (Assistant, REPLY) and len(roles) == 4


@over_vendors("stop")
async def test_a_reply_that_was_refused_stays_refused(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="I can not.", stop="refused")]) as (_, model):
        as_call = ReplyAsCall(model, ReplyCall("rewrite_lines", "a.py", Conversation([User(text="Rewrite it.")])))
        done = (await _deltas(as_call, vendor))[-1]
    assert isinstance(done, ReplyCompleted) and done.stop == "refused"


async def _deltas(model: ReplyAsCall, vendor: Vendor) -> list[Any]:
    asked = request(vendor, User(text="What the session's own conversation says."), tools=TOOLS)
    async with aclosing(cast("Any", model.stream(asked))) as stream:
        return [delta async for delta in stream]
