"""Hooks and prompts: the calls that a prompt stands for are calls like any other, and what is said with it is heard
before any of them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import User
from amanu.mcp.model import PromptArgument, ServerPrompt
from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Attachment, FileAttachment
from amanu_protocol.requests import PromptSendParams, PromptSteerParams
from support.hook_files import TELLS, answer, configure_user, handler, hook_entries, notices, tool_calls
from support.mcp_in_memory import Server, ServersInMemory
from support.sample_images import png
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step

DONE = step("Done.")
DENIES = "cat > /dev/null; echo 'not that one' >&2; exit 2"
REDACTS = answer({"hookEventName": "PostToolUse", "updatedToolOutput": "REDACTED"})
HOLD = step("", call("run_shell_command", command="touch held"))


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def prepare(d: ScriptedSession) -> None:
    """Commands, and files that they and prompts mention."""
    texts = {
        "hi.md": "It says: !{echo spoken}",
        "rules.md": "Follow @{docs/rules.md}.",
        "plain.md": "Peel the mango. $ARGUMENTS",
        "touch.md": "A mango: !{touch made}",
    }
    folder = d.root / ".claude/commands"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    (d.root / "docs").mkdir()
    (d.root / "docs/rules.md").write_text("Be kind.\n")
    (d.root / "shot.png").write_bytes(png())
    await d.trust()


async def send(d: ScriptedSession, text: str, *attachments: Attachment, prompt_id: str = "p1") -> None:
    params = PromptSendParams(session_id="s", prompt_id=prompt_id, text=text, attachments=[*attachments])
    await d.session.prompts.send(params, d.client)
    await d.over(prompt_id)


def heard(d: ScriptedSession) -> User:
    """The last prompt as the model got it."""
    return [message for message in conversation(d.session) if isinstance(message, User)][-1]


@pytest.mark.parametrize(
    ("matcher", "prompt", "absent"),
    [
        ("Bash", "/hi", "spoken\n"),
        ("Read", "/rules", "Be kind."),
        ("Read", "see @docs/rules.md", "Be kind."),
        ("read_file", "see @docs/rules.md", "Be kind."),
        ("LS", "see @docs", "rules.md\n"),
        ("Bash", "see @diff", "+changed"),
        ("ReadMcpResourceTool", "see @demo:note://one", "the note"),
        ("read_mcp_resource", "see @demo:note://one", "the note"),
        ("Grep", "see @symbol:line", "line 2"),
    ],
)
async def test_a_hook_denies_what_a_prompt_runs_or_reads(
    tmp_path: Path, matcher: str, prompt: str, absent: str
) -> None:
    servers = ServersInMemory(Server("demo", resources={"note://one": "the note"}))
    async with scripted_session(tmp_path, DONE, mcp=servers) as d:
        await prepare(d)
        configure_user(PreToolUse=[handler(DENIES, matcher=matcher)], PostToolUse=[handler(TELLS)])
        await send(d, prompt)
        assert absent not in heard(d).text
        assert "not that one" in heard(d).text
        assert "not that one" in notices(d, "attachmentNotSent")
        assert [item for item in tool_calls(d) if item.state == "succeeded"] == []
        assert {entry["event"] for entry in await hook_entries(d)} == {"PreToolUse"}


async def test_an_attached_file_is_a_read_too(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await prepare(d)
        denies_rules = "grep -q '/docs/rules.md\"' && { echo 'not that one' >&2; exit 2; }; exit 0"
        configure_user(PreToolUse=[handler(denies_rules, matcher="Read")])
        await send(d, "see", FileAttachment(path="docs/rules.md"), FileAttachment(path="notes.txt"))
        assert "Be kind." not in heard(d).text
        assert "line 12" in heard(d).text


@pytest.mark.parametrize("prompt", ["/hi", "see @docs/rules.md", "see @shot.png", "see @docs", "see @demo:note://one"])
async def test_a_hook_replaces_what_a_prompt_shows(tmp_path: Path, prompt: str) -> None:
    servers = ServersInMemory(Server("demo", resources={"note://one": "the note"}))
    async with scripted_session(tmp_path, DONE, mcp=servers) as d:
        await prepare(d)
        configure_user(PostToolUse=[handler(REDACTS)])
        await send(d, prompt)
        assert "REDACTED" in heard(d).text
        assert [word for word in ("spoken\n", "Be kind.", "the note") if word in heard(d).text] == []
        assert heard(d).pictures == ()
        events = [(entry["event"], entry["call"]) for entry in await hook_entries(d)]
        assert [event for event, _ in events] == ["PostToolUse"]
        assert prompt != "/hi" or [item.item_id for item in tool_calls(d)] == [events[0][1]]


async def test_what_hooks_add_to_a_line_or_a_picture_is_told(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await prepare(d)
        configure_user(PostToolUse=[handler(answer({"additionalContext": "mind the gap"}))])
        await send(d, "/hi")
        assert "spoken" in heard(d).text and "mind the gap" in heard(d).text
        await send(d, "see @shot.png", prompt_id="p2")
        assert len(heard(d).pictures) == 1 and "mind the gap" in heard(d).text


async def test_a_hook_changes_the_command_of_a_line_and_the_record_says_what_ran(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await prepare(d)
        configure_user(PreToolUse=[handler(answer({"updatedInput": {"command": "echo changed"}}), matcher="Bash")])
        await send(d, "/hi")
        assert "It says: changed" in heard(d).text
        [item] = tool_calls(d)
        assert (item.title, item.arguments) == ("Run echo changed", {"command": "echo changed"})


async def test_a_line_that_a_hook_wants_asked_about_or_sends_elsewhere_is_not_run(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await prepare(d)
        for number, says in enumerate(({"permissionDecision": "ask"}, {"updatedInput": {"command": "touch made"}})):
            configure_user(PreToolUse=[handler(answer({"hookEventName": "PreToolUse", **says}), matcher="Bash")])
            await send(d, "/hi", prompt_id=f"p{number}")
            assert "needs the user's approval" in heard(d).text
        assert not (d.root / "made").exists() and tool_calls(d) == []


async def test_a_message_to_the_running_turn_reads_past_no_hook(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, HOLD, DONE) as d:
        await prepare(d)
        configure_user(PreToolUse=[handler(DENIES, matcher="Read")])
        turn_id = await d.prompt("hold") or ""
        await d.until(lambda state: state.approvals)
        params = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="see @docs/rules.md")
        await d.session.prompts.steer(params, d.client)
        await d.answer("reject")
        await d.ended()
        assert "Be kind." not in d.told() and "not that one" in d.told()


def prompts_heard(d: ScriptedSession) -> list[dict[str, Any]]:
    """The events that `TELLS` was told of."""
    lines = [line for line in notices(d).splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("/plain quickly", "Peel the mango. quickly"),
        ("/hi", "It says: !{echo spoken}"),
        ("/rules", 'Follow @"docs/rules.md".'),
        ("as it is", None),
    ],
)
async def test_hooks_hear_once_what_the_model_is_told(tmp_path: Path, prompt: str, words: str | None) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await prepare(d)
        configure_user(UserPromptSubmit=[handler(TELLS)])
        await send(d, prompt)
        [told] = prompts_heard(d)
        assert told["prompt"] == (words or prompt)
        assert told.get("typed_prompt") == (prompt if words else None)


@pytest.mark.parametrize("prompt", ["/plain", "/touch"])
async def test_a_filter_sees_a_command_s_text_and_what_it_refuses_runs_nothing(tmp_path: Path, prompt: str) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await prepare(d)
        d.session.allow("run_shell_command(touch made)")
        configure_user(UserPromptSubmit=[handler("grep -q mango && { echo 'no fruit' >&2; exit 2; }; exit 0")])
        with pytest.raises(AmanuError, match="no fruit"):
            await d.prompt(prompt)
        assert not d.session.state.items and not (d.root / "made").exists()


async def test_a_hook_that_hears_a_line_can_end_the_turn(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await prepare(d)
        configure_user(PostToolUse=[handler(answer(**{"continue": False, "stopReason": "out of hours"}))])
        await d.prompt("/hi")
        await d.until(lambda state: state.last_turn)
        assert "out of hours" in notices(d)
        assert "Done." not in d.told()
        assert [item.state for item in tool_calls(d)] == ["succeeded"]
        await send(d, "again", prompt_id="p2")
        assert "Done." in d.told()


@pytest.mark.parametrize("first", ["mango", "! touch held", "/hi"])
async def test_what_is_said_at_the_start_reaches_the_model_with_the_first_prompt_that_does(
    tmp_path: Path, first: str
) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await prepare(d)
        filters = "grep -q mango && { echo 'no fruit' >&2; exit 2; }; exit 0"
        configure_user(SessionStart=[handler("echo begun")], UserPromptSubmit=[handler(filters)])
        if first == "mango":
            with pytest.raises(AmanuError, match="no fruit"):
                await d.prompt(first)
        else:
            await d.prompt(first)
            state = await d.until(lambda state: state.approvals or state.last_turn)
            if state.approvals:
                await d.answer("reject")
            await d.over("p1")
            assert "begun" in d.told()
        await send(d, "an apple", prompt_id="p2")
        assert d.told().count("begun") == 1


class TellingServer(Server):
    """Remembers what it was asked for."""

    told: tuple[Mapping[str, str], ...] = ()

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        self.told = (*self.told, arguments)
        return "Review the kiwi."


@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "PostToolUse"])
async def test_a_prompt_of_a_server_is_a_call_of_it_too(tmp_path: Path, event: str) -> None:
    server = TellingServer("demo", prompts={"review": ServerPrompt("review", "", [PromptArgument("file", "", True)])})
    async with scripted_session(tmp_path, DONE, mcp=ServersInMemory(server)) as d:
        filters = "grep -qE 'mango|kiwi' && { echo 'no fruit' >&2; exit 2; }; exit 0"
        says = {"hookEventName": "PostToolUse", "updatedToolOutput": "REDACTED"}
        matcher = "" if event == "UserPromptSubmit" else "mcp__demo__.*"
        configure_user(**{event: [handler(answer(says) if event == "PostToolUse" else filters, matcher=matcher)]})
        prompt = "/mcp__demo__review mango"
        if event == "PostToolUse":
            await send(d, prompt)
            assert "REDACTED" in heard(d).text and "kiwi" not in d.told()
            return
        with pytest.raises(AmanuError, match="no fruit"):
            await d.prompt(prompt)
        assert server.told == (() if event == "PreToolUse" else ({"file": "mango"},))
        assert "kiwi" not in d.told()
