"""Thoughts, calls and broken JSON that the model behind a service writes as text: read, run, and given back in a form
that the service takes."""

import json

from amanu.agent.loop import run_turn
from amanu.agent.markup.templates import TEMPLATES
from amanu.core.conversation import Assistant, User
from amanu.core.model_families import model_info
from support.loop_harness import LoopHarness
from support.strict_services.http import Say, ToolUse
from support.vendor_sweeps import over_cases, over_vendors
from support.vendors import Vendor, answer, request, running

FINE = Say(text="Fine, it is done.")


async def played(vendor: Vendor, *says: Say) -> tuple[LoopHarness, list[str]]:
    """A turn of these replies, after which the conversation goes on; and the requests."""
    async with running(vendor, [*says, Say(text="Yes.")]) as (service, model):
        harness = LoopHarness((), info=model_info(vendor.model_id))
        harness.turn.candidate = type(harness.turn.candidate)(model, harness.turn.info)
        assert (await run_turn(harness.turn)).reason == "completed"
        harness.conversation.append(User(text="And?"))
        done = await answer(model, request(vendor, conversation=harness.conversation, tools=harness.turn.specs))
        assert done.message.text == "Yes."
        return harness, [json.dumps(each.json, ensure_ascii=False) for each in service.requests]


def results(harness: LoopHarness) -> list[str]:
    return [each.text for each in harness.conversation.results()]


@over_cases("example", {template.family: template.example for template in TEMPLATES})
async def test_a_call_written_as_text_is_run_and_goes_back_as_a_call(vendor: Vendor, example: str) -> None:
    text = example.replace("read_file", "read")
    harness, requests = await played(vendor, Say(text=text), Say(text=text), FINE)
    assert results(harness) == ["read a.txt for the model"] * 2
    assert harness.shown("answer") == ["Fine, it is done."]
    replies = [each for each in harness.conversation if isinstance(each, Assistant)]
    assert all(each.native is None for each in replies if each.calls)
    assert (
        harness.told() == []
        and text not in requests[-1]
        and json.dumps(text, ensure_ascii=False)[1:-1] not in requests[-1]
    )


@over_vendors()
async def test_thoughts_in_the_text_are_shown_as_thoughts(vendor: Vendor) -> None:
    marked = Say(text=["<thi", "nk>\nI need it.\n</thi", "nk>\n\nI look.\n<tool", '_call>{"name": "read"}</tool_call>'])
    harness, _ = await played(vendor, marked, Say(text=["It is easy.\n</think>", "\n\nGood."]))
    assert harness.shown("thought") == ["I need it.", "It is easy."]
    assert harness.shown("answer") == ["I look.\n", "Good."]
    last = [each for each in harness.conversation if isinstance(each, Assistant)][-1]
    assert last.native is not None or vendor.column == "VS Code"  # the vendor gets back what it sent


BROKEN: dict[str, str] = {
    "a line break": '{"path": "a\nb.txt"}',
    "a comma": '{"path": "a\\nb.txt",}',
    "single quotes": "{'path': 'a\\nb.txt'}",
    "a name without quotes": '{path: "a\\nb.txt"}',
    "a word of Python": '{"path": "a\\nb.txt", "fails": False}',
    "a tag": '{"path": "a\\nb.txt"}</tool_call>',
    "twice": '{"path": "a\\nb.txt"}{"path": "a\\nb.txt"}',
    "in a string": '"{\\"path\\": \\"a\\\\nb.txt\\"}"',
    "a fence": '```json\n{"path": "a\\nb.txt"}\n```',
}


@over_cases("broken", BROKEN, "rawArguments")
async def test_broken_arguments_are_read_where_they_can_mean_one_thing(vendor: Vendor, broken: str) -> None:
    call = Say(calls=[ToolUse("read", broken)])
    harness, requests = await played(vendor, call, call, FINE)
    assert results(harness) == ["read a\nb.txt for the model"] * 2
    assert all('"stream": false' not in each for each in requests)  # nothing is wrong with the stream


@over_vendors("rawArguments")
async def test_the_model_is_told_where_its_arguments_stop_being_json(vendor: Vendor) -> None:
    harness, _ = await played(vendor, Say(calls=[ToolUse("read", '{"path": "say "a" now"}')]), FINE)
    (told,) = results(harness)
    where = "At line 1, column 16: expected ',' or '}', but found 'a\" now\"}'."
    assert told.startswith(f"The arguments of read are not a JSON object. {where}")
