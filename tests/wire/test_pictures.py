"""Pictures with what the user says, over all vendors; and that the strict services refuse bad ones as the real do."""

import itertools
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from amanu.core.conversation import Conversation, Message, Picture, Results, User
from amanu.core.model import ModelError, Request, RequestRefused
from amanu.core.model_families import model_info
from support.sample_images import base64_of, gif, jpeg, png, webp
from support.strict_services.http import Say, ToolUse
from support.vendor_sweeps import over_handovers, over_vendors
from support.vendors import KEY, VENDORS, Vendor, answer, request, results, running
from wire.test_behaviours import _history  # pyright: ignore[reportPrivateUsage]

READ = ToolUse("read_file", {"path": "a.py"})
SEEING = [vendor for vendor in VENDORS if model_info(vendor.model_id).images]
over_seeing = over_vendors("eyes")

FILES = {"p": ("image/png", png()), "j": ("image/jpeg", jpeg()), "w": ("image/webp", webp()), "g": ("image/gif", gif())}


def picture(blob_id: str = "p") -> Picture:
    media_type, data = FILES[blob_id]
    return Picture(name=f"{blob_id}.file", media_type=media_type, blob_id=blob_id, size=len(data))


def having(*messages: Message) -> Conversation:
    """A conversation with the bytes of all pictures at hand."""
    conversation = Conversation(messages)
    conversation.pictures = {blob_id: base64_of(data) for blob_id, (_, data) in FILES.items()}
    return conversation


def said(body: dict[str, Any], at: int = -1) -> list[str]:
    """The last message of a body, part by part: text as it is, a picture by its blob id here, anything else as it
    is called."""
    messages: list[dict[str, Any]] = body.get("messages") or body.get("input") or body["contents"]
    parts: str | list[dict[str, Any]] = messages[at].get("content") or messages[at]["parts"]
    return [parts] if isinstance(parts, str) else [_part(part) for part in parts]


def _part(part: dict[str, Any]) -> str:
    if "text" in part:
        return part["text"]
    for blob_id, (media_type, data) in FILES.items():
        if base64_of(data) in json.dumps(part):
            assert media_type in json.dumps(part)
            return blob_id
    return part.get("type") or next(iter(part))


async def asked(vendor: Vendor, conversation: Conversation, **changed: Any) -> list[str]:
    """What the service gets as the last message."""
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, request(vendor, conversation=conversation, **changed))
    return said(service.requests[0].json)


@over_seeing
async def test_a_picture_is_seen_before_the_text_and_under_its_name(vendor: Vendor) -> None:
    conversation = having(User(text="What is this?", pictures=(picture("p"), picture("j"), picture("w"))))
    assert await asked(vendor, conversation) == [
        *('<image name="p.file">', "p", "</image>"),
        *('<image name="j.file">', "j", "</image>"),
        *('<image name="w.file">', "w", "</image>"),
        "What is this?",
    ]


@over_seeing
async def test_a_picture_needs_no_words(vendor: Vendor) -> None:
    assert await asked(vendor, having(User(text=" ", pictures=(picture(),)))) == [
        '<image name="p.file">',
        "p",
        "</image>",
    ]


@over_vendors()
async def test_a_model_without_eyes_is_told(vendor: Vendor) -> None:
    conversation = having(User(text="What is this?", pictures=(picture(),)))
    blind = request(vendor, conversation=conversation)
    blind = replace(blind, model=blind.model.model_copy(update={"images": False}))
    async with running(vendor, [Say(text="I hear.")]) as (service, model):
        await answer(model, blind)
    told = "\n\n".join(said(service.requests[0].json))
    assert told == '<image name="p.file">(this model cannot see images)</image>\n\nWhat is this?'


@over_seeing
async def test_a_kind_of_picture_the_model_cannot_see_is_told(vendor: Vendor) -> None:
    parts = await asked(vendor, having(User(text="Look.", pictures=(picture("g"),))))
    if vendor.name.startswith("anthropic"):
        assert parts == ['<image name="g.file">', "g", "</image>", "Look."]
    else:
        assert "\n\n".join(parts) == '<image name="g.file">(this model cannot see GIF images)</image>\n\nLook.'


@over_seeing
async def test_a_picture_that_was_lost_is_told(vendor: Vendor) -> None:
    conversation = Conversation([User(text="Look.", pictures=(picture(),))])
    parts = await asked(vendor, conversation)
    assert "\n\n".join(parts) == '<image name="p.file">(this image is lost)</image>\n\nLook.'


@over_seeing
async def test_a_picture_said_into_a_running_turn_comes_after_the_results(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Look.", calls=[READ]), Say(text="Fine.")]) as (service, model):
        conversation = having(User(text="Hello."))
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        conversation.append(results(first.message, "text"))
        conversation.add_notes("First this.")
        conversation.add_notes(picture(), "Like this.")
        await answer(model, request(vendor, conversation=conversation))
    parts = said(service.requests[1].json)
    assert parts[-5:] == ["First this.", '<image name="p.file">', "p", "</image>", "Like this."]


@over_seeing
async def test_a_loop_with_pictures_is_append_only(vendor: Vendor) -> None:
    script = [Say(text="Next.", calls=[READ]) for _ in range(4)]
    async with running(vendor, [*script, Say(text="End.")]) as (service, model):
        conversation = having(User(text="Hello.", pictures=(picture(),)))
        while (done := await answer(model, request(vendor, conversation=conversation))).message.calls:
            conversation.append(done.message)
            conversation.append(results(done.message, "text"))
            conversation.add_notes(picture("j"), "Like this.")
        bodies = [_history(each.json) for each in service.requests]
    for before, after in itertools.pairwise(bodies):
        assert after[: len(before)] == before


@over_seeing
async def test_a_picture_survives_resume_to_the_byte(vendor: Vendor) -> None:
    thought = "" if "thoughts" in vendor.lacks else "Hm."
    script = [Say(thought=thought, text="Look.", calls=[READ]), Say(text="Fine."), Say(text="Fine.")]
    async with running(vendor, script) as (service, model):
        conversation = having(User(text="Hello.", pictures=(picture(),)))
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        conversation.append(results(first.message, "text"))
        conversation.add_notes(picture("j"), "Like this.")
        await answer(model, request(vendor, conversation=conversation))
        records = [message.model_dump_json() for message in conversation]
        again = Conversation(
            [type(each).model_validate_json(record) for each, record in zip(conversation, records, strict=True)]
        )
        again.pictures = dict(conversation.pictures)
        await answer(model, request(vendor, conversation=again))
    assert service.requests[1].body == service.requests[2].body
    assert not any(base64_of(data) in record for record in records for _, data in FILES.values())


@over_handovers()
async def test_a_picture_goes_along_to_another_vendor(first: Vendor, vendor: Vendor) -> None:
    conversation = having(User(text="Hello.", pictures=(picture(),)))
    async with running(first, [Say(text="Look.", calls=[READ])]) as (_, model):
        done = await answer(model, request(first, conversation=conversation))
    conversation.append(done.message)
    conversation.append(results(done.message, "text"))
    conversation.add_notes(picture("j"), "Like this.")
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, request(vendor, conversation=conversation))
    sent = service.requests[0].body.decode()
    seen = [base64_of(FILES[blob_id][1]) in sent for blob_id in "pj"]
    assert seen == [vendor in SEEING] * 2


# What the services refuse ------------------------------------------------------------------------------

BAD = {
    "no base64": ("image/png", "not base64 at all!"),
    "empty": ("image/png", ""),
    "cut off": ("image/png", base64_of(png()[:-8])),
    "no picture": ("image/png", base64_of(b"plain text")),
    "another type": ("image/png", base64_of(jpeg())),
    "a type nobody takes": ("image/tiff", base64_of(b"II*\0" + bytes(20))),
}


@over_seeing
@pytest.mark.parametrize(("media_type", "data"), list(BAD.values()), ids=list(BAD))
async def test_a_bad_picture_is_refused(vendor: Vendor, media_type: str, data: str) -> None:
    conversation = having(User(text="Look.", pictures=(picture(),)))
    if media_type != "image/png" and vendor.name != "anthropic":
        media_type, data = "image/png", BAD["no picture"][1]
    conversation.pictures["p"] = data
    service = vendor.service([Say(text="I see.")])
    model = vendor.model(KEY, await service.start())
    with pytest.raises(RequestRefused):
        await answer(model, request(vendor, conversation=conversation))
    await model.close()
    await service.stop()
    assert len(service.refused) == 1


async def _refusal(vendor: Vendor, made: Request, change: Any) -> str:
    """What the service says to the body of a request when it was changed."""
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, made)
        body = service.requests[0].json
        change(body)
        changed = replace(service.requests[0], body=json.dumps(body).encode())
        refusal = service.check(changed)
    return "" if refusal is None else refusal.message


def _to_the_model(body: dict[str, Any]) -> None:
    """The picture stands in a message of the model."""
    messages: list[dict[str, Any]] = body.get("messages") or body["contents"]
    model = {"role": "assistant" if "messages" in body else "model"}
    messages[-1:] = [
        {"role": "user", **_only("hi", body)},
        {**messages[-1], **model},
        {"role": "user", **_only("?", body)},
    ]


def _only(text: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"content": text} if "messages" in body else {"parts": [{"text": text}]}


@pytest.mark.parametrize(
    ("vendor_name", "says"),
    [("anthropic", "only in user messages"), ("google-openai", "only allowed for messages with role 'user'")],
)
async def test_a_picture_in_a_reply_is_refused(vendor_name: str, says: str) -> None:
    (vendor,) = [vendor for vendor in VENDORS if vendor.name == vendor_name]
    made = request(vendor, conversation=having(User(text="Look.", pictures=(picture(),))))
    assert re.search(says, await _refusal(vendor, made, _to_the_model))


async def test_a_picture_before_results_is_refused() -> None:
    vendor = VENDORS[0]
    async with running(vendor, [Say(calls=[READ]), Say(text="I see.")]) as (service, model):
        conversation = having(User(text="Hello."))
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        made = results(first.message, "text")
        conversation.append(Results(results=made.results, notes=(picture(), "Like this.")))
        await answer(model, request(vendor, conversation=conversation))
        body = service.requests[1].json
        body["messages"][-1]["content"].reverse()
        refusal = service.check(replace(service.requests[1], body=json.dumps(body).encode()))
    assert refusal is not None
    assert "before tool_result" in refusal.message


@pytest.mark.parametrize(
    ("vendor", "data", "count", "says"),
    [
        (VENDORS[0], png(bytes_at_least=3_932_161), 1, "image exceeds 5 MB maximum"),
        (VENDORS[0], png(bytes_at_least=3_932_160), 1, ""),
        (VENDORS[0], png(8_001, 1), 1, "image dimensions exceed max allowed size: 8000"),
        (VENDORS[0], png(2_001, 1), 20, ""),
        (VENDORS[0], png(2_001, 1), 21, "image dimensions exceed max allowed size: 2000"),
        (VENDORS[0], png(2_000, 1), 100, ""),
        (VENDORS[0], png(2_000, 1), 101, "too many images"),
        (VENDORS[3], png(bytes_at_least=3_932_160), 3, ""),
        (VENDORS[3], png(bytes_at_least=3_932_160), 4, "payload size exceeds the limit"),
    ],
)
async def test_too_big_too_many(vendor: Vendor, data: bytes, count: int, says: str) -> None:
    conversation = having(User(text="Look.", pictures=(picture(),) * count))
    conversation.pictures["p"] = base64_of(data)
    service = vendor.service([Say(text="I see.")])
    model = vendor.model("sk-test", await service.start())
    if says:
        with pytest.raises(ModelError, match=says):
            await answer(model, request(vendor, conversation=conversation))
    else:
        await answer(model, request(vendor, conversation=conversation))
    await model.close()
    await service.stop()
