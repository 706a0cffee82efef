"""Hooks and vendors: what a hook changed or replaced is still a conversation that each service takes. Real SDKs, strict
services, whole sessions."""

from pathlib import Path

import pytest

from amanu_protocol.items import Answer, Notice, Thought, ToolCall
from support.hook_files import answer, configure_user, handler
from support.strict_services.http import Say, ToolUse
from support.three_vendors import MODELS
from support.vendor_session import vendor_session

WRITES = [ToolUse("write_file", {"path": "new.txt", "content": "x"}), ToolUse("read_file", {"path": "a.txt"})]


READS_B = (
    """sed -E 's|.*"file_path": "([^"]*)a(.txt)".*|"""
    """{"hookSpecificOutput": {"updatedInput": {"file_path": "\\1b\\2"}}}|'"""
)
"""A hook that has b.txt read instead of a.txt."""


@pytest.mark.parametrize("vendor", MODELS)
async def test_of_a_replaced_reply_nothing_is_shown_run_or_sent_again(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        secret = Say(thought="**Secret** SECRET-THOUGHT", text="hi SECRET-TEXT", calls=WRITES)
        d.services[vendor].script([secret, Say(text="Nothing more.")])
        replaces = answer({"hookEventName": "AfterModel", "llm_response": {"text": "It is REPLACED."}})
        configure_user(AfterModel=[handler(f"grep SECRET-TEXT > /dev/null || exit 0; {replaces}")])
        await d.turn("p1")
        items = d.session.state.items
        assert [item.text for item in items if isinstance(item, Answer)] == ["It is REPLACED."]
        assert not [item for item in items if isinstance(item, Thought | ToolCall)]
        assert not (d.root / "new.txt").exists()
        assert "A hook replaced the model's reply." in [item.text for item in items if isinstance(item, Notice)]
        configure_user()
        await d.turn("p2")
        sent = d.services[vendor].requests[-1].body.decode()
        assert "REPLACED" in sent and "SECRET" not in sent


@pytest.mark.parametrize(("one", "other"), [("gemini", "anthropic"), ("anthropic", "openai"), ("openai", "gemini")])
async def test_calls_that_hooks_changed_are_handed_over_between_vendors_and_efforts(
    tmp_path: Path, one: str, other: str
) -> None:
    async with vendor_session(tmp_path, one) as d:
        (d.root / "b.txt").write_text("xyzzy\n")
        reads = Say(thought="**Looking**", text="I look.", calls=[ToolUse("read_file", {"path": "a.txt"})])
        d.services[one].script([reads, Say(text="Seen."), Say(text="Back.")])
        d.services[other].script([reads, Say(text="Seen, too.")])
        replaces = answer({"hookEventName": "PostToolUse", "updatedToolOutput": "REDACTED"})
        configure_user(PreToolUse=[handler(READS_B)], PostToolUse=[handler(replaces)])
        await d.turn("p1")
        await d.session.set_model(MODELS[other], d.client)
        await d.session.set_effort("high")
        await d.turn("p2")
        await d.session.set_model(MODELS[one], d.client)
        await d.session.set_effort("low")
        await d.turn("p3")
        sent = d.services[one].requests[-1].body.decode()
        assert sent.count("REDACTED") == 2 and "xyzzy" not in sent
        assert await d.events() == ["PreToolUse", "PostToolUse"] * 2


@pytest.mark.parametrize("vendor", MODELS)
async def test_a_hook_hears_of_a_search_of_the_web_before_a_service_does(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        search = Say(calls=[ToolUse("web_search", {"query": "mango"})])
        d.services[vendor].script([search, Say(text="A pity.")])
        denies = "grep -q mango && { echo 'no fruit' >&2; exit 2; }; exit 0"
        configure_user(PreToolUse=[handler(denies, matcher="WebSearch")], PostToolUse=[handler("cat > /dev/null")])
        await d.turn("p1")
        assert len(d.services[vendor].requests) == 2
        assert "no fruit" in d.services[vendor].requests[-1].body.decode()
        assert await d.events() == ["PreToolUse"]


REDACTS = """sed -E 's/^.*"llm_request": (.*)\\}$/{"hookSpecificOutput": {"llm_request": \\1}}/; s/xyzzy/REDACTED/g'"""


@pytest.mark.parametrize("vendor", MODELS)
async def test_what_a_hook_takes_out_of_requests_reaches_no_service(tmp_path: Path, vendor: str) -> None:
    """A reply that was changed goes back without what its service would check."""
    async with vendor_session(tmp_path, vendor) as d:
        (d.root / "a.txt").write_text("xyzzy\n")
        reads = Say(thought="**Looking**", text="I look.", calls=[ToolUse("read_file", {"path": "a.txt"})])
        tells = Say(thought="**Telling**", text="It says xyzzy, and more.", calls=[ToolUse("glob", {"pattern": "*"})])
        d.services[vendor].script([reads, tells, reads, Say(text="Done."), Say(text="Hello.")])
        configure_user(BeforeModel=[handler(REDACTS)])
        await d.turn("p1", "Is there a xyzzy?")
        await d.turn("p2")
        bodies = [request.body.decode() for request in d.services[vendor].requests]
        assert len(bodies) == 5
        assert not [body for body in bodies if "xyzzy" in body]
        assert [body.count("REDACTED") for body in bodies] == [1, 2, 3, 4, 4]
        assert "xyzzy" in "".join(message.model_dump_json() for message in d.session.core.conversation)


@pytest.mark.parametrize("vendor", MODELS)
async def test_tools_that_a_hook_leaves_for_one_request(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        reads = Say(thought="**Looking**", text="I look.", calls=[ToolUse("read_file", {"path": "a.txt"})])
        d.services[vendor].script([reads, reads, Say(text="Done."), Say(text="Hello.")])
        some = answer({"toolConfig": {"allowedFunctionNames": ["read_file"]}}).removeprefix("cat > /dev/null; ")
        none = answer({"toolConfig": {"mode": "NONE"}}).removeprefix("cat > /dev/null; ")
        counts = f"case $(grep -o 'I look' | wc -l) in 0) {some};; 1) true;; 2) {none};; esac"
        configure_user(BeforeToolSelection=[handler(counts)])
        await d.turn("p1")
        assert len(d.services[vendor].requests) == 3
        assert await d.events() == ["BeforeToolSelection"] * 3
        await d.turn("p2")
