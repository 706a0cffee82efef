"""Results that are more than a text, over all vendors: fields by name, pictures and documents."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from amanu.core.conversation import Conversation, Masked, Message, Picture, Result, Results, User
from support.sample_images import base64_of, gif, jpeg, png
from support.sample_pdf import pdf
from support.strict_services.http import Say, ToolUse
from support.vendor_sweeps import over_handovers, over_vendors
from support.vendors import Vendor, answer, request, running
from wire.test_behaviours import _history  # pyright: ignore[reportPrivateUsage]

READ = ToolUse("read_file", {"path": "a.py"})
GREP = ToolUse("grep", {"pattern": "x"})
FIELDS: dict[str, Any] = {
    "exit_code": 1,
    "stdout": 'two\nlines "quoted" ü',
    "stderr": "",
    "duration_s": 0.5,
    "truncated": False,
    "job": None,
}
FILES = {
    "p": ("image/png", png()),
    "j": ("image/jpeg", jpeg()),
    "g": ("image/gif", gif()),
    "d": ("application/pdf", pdf("One.")),
}


def shown(*blob_ids: str) -> tuple[Picture, ...]:
    return tuple(
        Picture(name=f"{blob_id}.file", media_type=FILES[blob_id][0], blob_id=blob_id, size=len(FILES[blob_id][1]))
        for blob_id in blob_ids
    )


def having(*messages: Message, lost: str = "") -> Conversation:
    conversation = Conversation(messages)
    conversation.pictures = {blob_id: base64_of(data) for blob_id, (_, data) in FILES.items() if blob_id not in lost}
    return conversation


async def asked(vendor: Vendor, *given: Mapping[str, Any], lost: str = "") -> tuple[list[Any], dict[str, Any]]:
    """What a result of each kind is to the vendor, and the whole body; `given` is what is set of each result."""
    calls = [READ, GREP][: len(given)]
    async with running(vendor, [Say(text="Look.", calls=calls), Say(text="Fine.")]) as (service, model):
        conversation = having(User(text="Hello."), lost=lost)
        reply = (await answer(model, request(vendor, conversation=conversation))).message
        conversation.append(reply)
        made = [
            Result.model_validate({"call_id": call.call_id, "tool": call.tool, "text": "The text.", **each})
            for call, each in zip(reply.calls, given, strict=True)
        ]
        conversation.append(Results(results=tuple(made)))
        await answer(model, request(vendor, conversation=conversation))
        body = service.requests[1].json
        again = Conversation([type(each).model_validate_json(each.model_dump_json()) for each in conversation])
        again.pictures = conversation.pictures
        service.script([Say(text="Fine.")])
        await answer(model, request(vendor, conversation=again))
        assert service.requests[1].body == service.requests[2].body, "the journal changes nothing"
    return results_of(body), body


def results_of(body: dict[str, Any]) -> list[Any]:
    """The results in a body, each as the vendor has it."""
    if "contents" in body:
        parts = [part for content in body["contents"] for part in content["parts"]]
        return [part["functionResponse"] for part in parts if "functionResponse" in part]
    if "input" in body:
        return [item["output"] for item in body["input"] if item["type"].endswith("_output")]
    if "parts" in body["messages"][0]:
        parts = [part for message in body["messages"] for part in message["parts"]]
        return [part["text"] for part in parts if part["kind"] == "result"]
    tools = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [*tools, *(block["content"] for block in blocks if block["type"] == "tool_result")]


def fields_of(sent: Any) -> dict[str, Any]:
    """The fields in a result as the vendor has it."""
    return cast("dict[str, Any]", sent["response"] if isinstance(sent, dict) else json.loads(sent))


@over_vendors()
@pytest.mark.parametrize("is_error", [False, True])
async def test_fields_go_as_an_object_in_their_order(vendor: Vendor, is_error: bool) -> None:
    (first, second), _ = await asked(vendor, {"fields": FIELDS, "is_error": is_error}, {"is_error": is_error})
    sent = fields_of(first)
    assert list(sent.items()) == list(FIELDS.items())
    assert "The text." in json.dumps(second)


@over_vendors()
async def test_a_masked_result_is_its_new_text_alone(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Look.", calls=[READ]), Say(text="Fine.")]) as (service, model):
        conversation = having(User(text="Hello."))
        reply = (await answer(model, request(vendor, conversation=conversation))).message
        call = reply.calls[0]
        result = Result(call_id=call.call_id, tool=call.tool, text="Text.", fields=FIELDS, pictures=shown("p"))
        conversation.append(reply)
        conversation.append(Results(results=(result,)))
        conversation.mask(Masked(texts={call.call_id: "[gone]"}))
        await answer(model, request(vendor, conversation=conversation))
        body = service.requests[1].json
    (sent,) = results_of(body)
    assert (sent["response"] if isinstance(sent, dict) else sent) in ("[gone]", {"output": "[gone]"})
    assert base64_of(png()) not in json.dumps(body)


@over_vendors("eyes")
async def test_a_result_shows_pictures(vendor: Vendor) -> None:
    (first, second), body = await asked(vendor, {"pictures": shown("p", "j")}, {})
    everything = json.dumps(body)
    assert [everything.count(base64_of(FILES[blob_id][1])) for blob_id in "pj"] == [1, 1]
    inside = base64_of(png()) in json.dumps(first)
    assert inside == (vendor.name not in ("gemini-2.5", "google-openai"))
    if not inside:  # right after the results, under their names
        last = _history(body)[-1]
        assert last.index("p.file") < last.index(base64_of(png())) < last.index("j.file")
    assert "The text." in json.dumps(first)
    assert "The text." in json.dumps(second)


@over_vendors("eyes")
async def test_a_failed_result_shows_pictures_too(vendor: Vendor) -> None:
    _, body = await asked(vendor, {"pictures": shown("p"), "is_error": True})
    assert json.dumps(body).count(base64_of(png())) == 1


@over_vendors("eyes")
async def test_a_result_shows_a_document_to_a_model_that_reads_it(vendor: Vendor) -> None:
    (first, *_), body = await asked(vendor, {"pictures": shown("d")})
    reads = base64_of(FILES["d"][1]) in json.dumps(body)
    assert reads == (vendor.name != "google-openai")
    assert ("this model cannot read PDF" in json.dumps(first)) != reads


@over_vendors()
async def test_what_a_model_cannot_be_shown_is_told_in_the_result(vendor: Vendor) -> None:
    (first, *_), _ = await asked(vendor, {"pictures": shown("p", "g"), "fields": FIELDS}, lost="pg")
    sent = fields_of(first)
    assert sent["stdout"] == FIELDS["stdout"]
    assert [name in sent["notes"] for name in ("p.file", "g.file", "image is lost", "cannot see")].count(True) >= 3


@over_handovers()
async def test_a_result_with_a_picture_goes_along_to_another_vendor(first: Vendor, vendor: Vendor) -> None:
    conversation = having(User(text="Hello."))
    async with running(first, [Say(text="Look.", calls=[READ, GREP]), Say(text="Seen.")]) as (_, model):
        reply = (await answer(model, request(first, conversation=conversation))).message
        conversation.append(reply)
        one, two = (Result(call_id=call.call_id, tool=call.tool, text="Text.") for call in reply.calls)
        one = one.model_copy(update={"pictures": shown("p", "d")})
        conversation.append(Results(results=(one, two.model_copy(update={"fields": FIELDS}))))
        conversation.append((await answer(model, request(first, conversation=conversation))).message)
    conversation.append(User(text="And now?"))
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, request(vendor, conversation=conversation))
    sent = service.requests[0].body.decode()
    assert (base64_of(png()) in sent) == ("eyes" not in vendor.lacks)
