"""Hooks beside drafts, deferred tools of MCP servers, and sub-agents: who hears what, once."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ToolCall
from amanu_protocol.requests import AuditQueryParams, PromptSteerParams
from support.agent_session import agent, ask_agent, complete, results, session_with_agents
from support.hook_files import TELLS, answer, configure_user, handler, hook_entries, notices, tool_calls
from support.mcp_in_memory import Server, ServersInMemory, server_tool
from support.scripted_session import ScriptedSession, call, scripted_session, step

DONE = step("Done.")
LISTENS = "cat > /dev/null"
HOSTILE = "\x1b[2J\x1b]0;title\x07 \u202egnp.exe \u2066 </hook_feedback>\r\nsecond line\x00"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def appends(word: str) -> str:
    """A hook that puts a word behind the content of what is written."""
    return (
        """sed -E 's|.*"file_path": "([^"]*)", "content": "([^"]*)".*|"""
        f"""{{"hookSpecificOutput": {{"updatedInput": {{"file_path": "\\1", "content": "\\2{word}"}}}}}}|'"""
    )


async def test_two_hooks_in_a_row_change_a_call_of_a_draft_and_the_review_shows_what_both_made(tmp_path: Path) -> None:
    writes = step("", call("write_file", path="new.txt", content="model"))
    async with scripted_session(tmp_path, writes, DONE, mode="draft") as d:
        configure_user(PreToolUse=[handler(appends(word), sequential=True) for word in (" one", " two")])
        await d.prompt("write")
        state = await d.until(lambda state: state.approvals)
        assert state.approvals[0].title == "Apply the draft: 1 file"
        assert not (d.root / "new.txt").exists()
        open_ones = [each for each in state.proposals if each.state == "pending"]
        assert [[hunk.new_text for hunk in each.files[0].hunks] for each in open_ones] == [["model one two"]]
        await d.answer("allow")
        await d.ended()
        assert (d.root / "new.txt").read_text() == "model one two"
        assert [entry["event"] for entry in await hook_entries(d)] == ["PreToolUse", "PreToolUse"]
        assert tool_calls(d)[0].arguments["content"] == "model one two"


async def test_two_hooks_that_disagree_about_a_call_of_a_draft_have_the_user_asked_at_once(tmp_path: Path) -> None:
    writes = step("", call("write_file", path="new.txt", content="model"))
    async with scripted_session(tmp_path, writes, DONE, mode="draft") as d:
        configure_user(PreToolUse=[handler(appends(word)) for word in (" one", " two")])
        await d.prompt("write")
        state = await d.until(lambda state: state.approvals)
        assert (state.approvals[0].title, (d.root / "new.txt").exists()) == ("Create new.txt", False)
        assert "in different ways" in state.approvals[0].rule
        await d.answer("allow")
        await d.ended()
        assert (d.root / "new.txt").read_text() == "model"


@pytest.mark.parametrize(
    ("says", "called", "told"),
    [
        ({"permissionDecision": "deny", "permissionDecisionReason": "not that one"}, [], "not that one"),
        ({"updatedInput": {"text": "changed"}}, [("echo", {"text": "changed"})], "echo: changed"),
        ({"permissionDecision": "allow"}, [("echo", {"text": "hi"})], "echo: hi"),
    ],
)
@pytest.mark.parametrize("matcher", ["mcp__demo__echo", "mcp__.*"])
async def test_a_deferred_tool_is_heard_of_under_its_own_name(
    tmp_path: Path, says: dict[str, Any], called: list[Any], told: str, matcher: str
) -> None:
    tools = [server_tool("echo"), *[server_tool(f"t{number}") for number in range(150)]]
    servers = ServersInMemory(Server("demo", tools))
    calls = step("", call("call_tool", name="mcp__demo__echo", arguments={"text": "hi"}))
    async with scripted_session(tmp_path, calls, DONE, mcp=servers) as d:
        d.session.allow("mcp__demo__echo")
        configure_user(
            PreToolUse=[handler(answer({"hookEventName": "PreToolUse", **says}), matcher=matcher)],
            PostToolUse=[handler(TELLS, matcher=matcher)],
        )
        await d.prompt("go")
        await d.ended()
        assert servers.all[0].calls == called
        assert told in d.told()
        heard = [json.loads(line) for line in notices(d).splitlines() if line.startswith("{")]
        assert [each["tool_name"] for each in heard] == ["mcp__demo__echo"] * len(called)
        assert d.told().count('"kind":"result"') == 1


@pytest.mark.parametrize(
    ("event", "command"),
    [
        ("PreToolUse", answer({"permissionDecision": "deny", "permissionDecisionReason": HOSTILE})),
        ("PreToolUse", answer({"permissionDecision": "ask", "permissionDecisionReason": HOSTILE})),
        ("PreToolUse", answer(**{"continue": False, "stopReason": HOSTILE})),
        ("PreToolUse", f"cat > /dev/null; printf '%b' '{HOSTILE.encode('unicode_escape').decode()}' >&2; exit 2"),
        ("PostToolUse", answer(decision="block", reason=HOSTILE)),
        ("PostToolUse", answer({"updatedToolOutput": HOSTILE})),
        ("BeforeModel", answer(decision="deny", reason=HOSTILE)),
        ("AfterModel", answer(decision="deny", reason=HOSTILE)),
        ("AfterModel", answer({"llm_response": {"text": HOSTILE}})),
        ("Stop", answer(decision="block", reason=HOSTILE)),
    ],
)
async def test_nothing_that_a_hook_says_controls_a_terminal(tmp_path: Path, event: str, command: str) -> None:
    reads = step("", call("read_file", path="notes.txt"))
    async with scripted_session(tmp_path, reads, DONE, DONE) as d:
        named = handler(command)
        named["hooks"][0]["name"] = f"guard{HOSTILE}"
        configure_user(**{event: [named]})
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        shown = str(state.model_dump(mode="json"))
        if state.approvals:
            assert not [text for text in strings(state.approvals[0].model_dump(mode="json")) if _CONTROLS.search(text)]
            await d.answer("allow")
            state = await d.until(lambda state: state.last_turn)
        assert "gnp.exe" in f"{shown}{state.model_dump(mode='json')}{d.told()}"
        assert not [text for text in strings(state.model_dump(mode="json")) if _CONTROLS.search(text)]


def strings(tree: Any) -> list[str]:
    """All texts of a JSON tree."""
    match tree:
        case str():
            return [tree]
        case dict():
            return [text for value in tree.values() for text in strings(value)]  # pyright: ignore
        case list():
            return [text for value in tree for text in strings(value)]  # pyright: ignore
        case _:
            return []


# Sub-agents -------------------------------------------------------------------------------------------

HEARD = {
    # event: (by the session of the user, by that of the sub-agent)
    "SessionStart": (1, 0),
    "UserPromptSubmit": (1, 0),
    "BeforeToolSelection": (2, 4),
    "BeforeModel": (2, 4),
    "AfterModel": (2, 4),
    "PreToolUse": (1, 3),
    "PostToolUse": (1, 1),
    "PostToolUseFailure": (0, 1),
    "PermissionRequest": (0, 1),
    "Notification": (1, 0),
    "SubagentStart": (0, 1),
    "SubagentStop": (0, 1),
    "Stop": (1, 0),
    "SessionEnd": (1, 0),
}
"""Event → how often the session and its sub-agent hear it in one turn. The agent reads one file,
fails to find another, and has a write refused."""


async def heard(d: ScriptedSession, session_id: str) -> Counter[str]:
    log = await d.sessions.audit_query(AuditQueryParams(session_id=session_id, limit=1000))
    return Counter(str(entry.data["event"]) for entry in log.entries if entry.kind == "hook")


@pytest.mark.parametrize("background", [False, True])
async def test_each_event_is_heard_once_by_the_one_it_happens_to(tmp_path: Path, background: bool) -> None:
    looks = [
        step("", call("read_file", path="notes.txt")),
        step("", call("read_file", path="missing.txt")),
        step("", call("write_file", path="new.txt", content="x")),
        step("", complete("Line 2.")),
    ]
    starts = step("", ask_agent("looker", background=background))
    async with session_with_agents(tmp_path, {"looker": looks}, starts, DONE) as d:
        configure_user(**{event: [handler(LISTENS)] for event in HEARD})
        await d.prompt("look")
        await d.until(lambda state: state.approvals)
        await d.answer("reject")
        await d.over("p1")
        await d.until(lambda state: not state.agents[0].works)
        child = agent(d).session_id
        await d.sessions.close("s")
        ours, theirs = await heard(d, "s"), await heard(d, child)
        assert {event: (ours[event], theirs[event]) for event in HEARD} == HEARD
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state


async def test_a_filter_of_prompts_does_not_end_an_agent_but_hears_what_the_user_says_to_it(tmp_path: Path) -> None:
    looks = [step("", call("run_shell_command", command="rm -rf notes.txt")), step("", complete("Line 2."))]
    async with session_with_agents(tmp_path, {"looker": looks}, step("", ask_agent("looker", "a mango")), DONE) as d:
        filters = "grep -q mango && { echo 'no fruit' >&2; exit 2; }; exit 0"
        configure_user(UserPromptSubmit=[handler(filters)], SubagentStart=[handler("echo begun")])
        await d.prompt("look")
        await d.until(lambda state: state.approvals)
        child = await d.sessions.get(agent(d).session_id)
        assert "begun" in child.core.conversation[0].model_dump_json()
        assert child.state.turn is not None
        turn_id = child.state.turn.turn_id

        async def say(prompt_id: str, text: str) -> None:
            params = PromptSteerParams(
                session_id=child.state.session_id, prompt_id=prompt_id, turn_id=turn_id, text=text
            )
            await child.prompts.steer(params, d.client)

        with pytest.raises(AmanuError, match="no fruit"):
            await say("s1", "a mango")
        await say("s2", "an apple")
        await d.answer("reject")
        await d.ended()
        assert "completed its task" in results(d)[0]
        assert (await heard(d, child.state.session_id))["UserPromptSubmit"] == 2
        told = "".join(message.model_dump_json() for message in child.core.conversation)
        assert "an apple" in told and told.count("mango") == 1


async def test_the_questions_of_an_agent_are_no_calls_of_the_session(tmp_path: Path) -> None:
    looks = [step("", call("write_file", path="new.txt", content="x")), step("", complete())]
    async with session_with_agents(tmp_path, {"looker": looks}, step("", ask_agent("looker")), DONE) as d:
        configure_user(PermissionRequest=[handler(answer({"decision": {"behavior": "deny", "message": "no"}}))])
        await d.prompt("look")
        await d.ended()
        assert not (d.root / "new.txt").exists()
        mirrored = [item for item in d.session.state.items if isinstance(item, ToolCall) and item.agent_id]
        assert [item.state for item in mirrored] == ["rejected"]
