"""Models that call tools by the names they were trained on: each service takes the conversation afterwards, whichever
model goes on with it. Real SDKs, strict services, whole sessions."""

from pathlib import Path

import pytest

from amanu.core.conversation import Assistant, Call, Conversation, Result, Results, User
from amanu_protocol.items import ToolCall
from support.strict_services.http import Say, ToolUse
from support.three_vendors import MODELS
from support.vendor_session import vendor_session
from support.vendors import VENDORS, Vendor, answer, request, running

READS = [ToolUse("Read", {"file_path": "a.txt"}), ToolUse("list_dir", {"dir_path": "."})]
EDITS = [ToolUse("replace", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})]


@pytest.mark.parametrize("vendor", MODELS)
async def test_a_foreign_name_runs_our_tool_and_is_told_once(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        d.services[vendor].script([Say(calls=READS), Say(calls=READS[:1]), Say(calls=EDITS), Say(text="It is done.")])
        await d.turn("p1")
        calls = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        assert [(call.tool, call.state) for call in calls] == [
            ("read_file", "succeeded"),
            ("list_directory", "succeeded"),
            ("read_file", "succeeded"),
            ("edit_file", "succeeded"),
        ]
        assert (d.root / "a.txt").read_text() == "two\n"
        sent = d.services[vendor].requests[-1].body.decode()
        assert sent.count("Read is read_file here") == sent.count("list_dir is list_directory here") == 1


@pytest.mark.parametrize("vendor", MODELS)
async def test_gpt_is_offered_apply_patch_alone_for_edits(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        d.services[vendor].script([Say(calls=EDITS), Say(text="It is done.")])
        await d.turn("p1")
        body = d.services[vendor].requests[0].body.decode()
        offered = {
            name for name in ("edit_file", "write_file", "apply_patch") if f'"name":"{name}"' in body.replace(" ", "")
        }
        assert offered == ({"apply_patch"} if vendor == "openai" else {"edit_file", "write_file", "apply_patch"})
        assert (d.root / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(("one", "other"), [("gemini", "anthropic"), ("anthropic", "openai"), ("openai", "gemini")])
async def test_another_vendor_goes_on_with_it(tmp_path: Path, one: str, other: str) -> None:
    async with vendor_session(tmp_path, one) as d:
        d.services[one].script([Say(thought="**Looking**", calls=READS), Say(text="Seen."), Say(text="Back.")])
        d.services[other].script([Say(calls=EDITS), Say(text="It is done.")])
        await d.turn("p1")
        await d.session.set_model(MODELS[other], d.client)
        await d.turn("p2")
        await d.session.set_model(MODELS[one], d.client)
        await d.turn("p3")
        assert (d.root / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
async def test_every_service_takes_a_call_of_a_name_that_no_declared_tool_has(vendor: Vendor) -> None:
    conversation = Conversation(
        [
            User(text="Look."),
            Assistant(parts=(Call(call_id="call_1", tool="Bash", arguments={"command": "ls"}),)),
            Results(results=(Result(call_id="call_1", tool="Bash", text="a.txt"),)),
        ]
    )
    async with running(vendor, [Say(text="Yes.")]) as (_, model):
        done = await answer(model, request(vendor, conversation=conversation))
    assert done.message.text == "Yes."
