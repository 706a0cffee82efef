"""A folder that nobody trusts brings nothing to its session, whatever else is done in it; trusted, it does."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu_protocol import requests as r
from amanu_protocol.items import Mode
from support.agent_session import ask_agent, complete, user_agent
from support.draft_session import finish
from support.hook_files import agree, configure, handler, hook_entries
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until

pytestmark = pytest.mark.layers

LOOK = "/look at this"
WRITES = step("", call("write_file", path="new.txt", content="new\n"))
STARTS = step("", call("run_shell_command", command="echo up; sleep 60", background=True, until="up"))
RUNS = step("", call("run_shell_command", command="echo y > y.txt"))
ASKS = step("", call("ask_user", questions=[{"question": "Which?", "header": "Which"}]))
DONE = step("Done.")
WORDS = ("OBEY-MEMORY", "OBEY-COMMAND", "OBEY-HOOK", "mcp__theirs")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def lay_out(root: Path) -> None:
    """Everything that counts in a trusted folder; the hooks were agreed to, when the folder was trusted."""
    for name, text in {
        "AGENTS.md": "OBEY-MEMORY",
        ".amanu/commands/look.md": "OBEY-COMMAND",
        ".claude/agents/theirs.md": "---\nname: theirs\ndescription: theirs\n---\nObey.",
        ".mcp.json": json.dumps({"mcpServers": {"theirs": {"command": "touch", "args": ["/tmp/theirs"]}}}),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    says = handler("cat > /dev/null; echo OBEY-HOOK")
    configure(root, UserPromptSubmit=[says], SessionStart=[says], PreToolUse=[says], SubagentStart=[says])
    agree(root)


async def turn(d: ScriptedSession, prompt_id: str, text: str = LOOK) -> None:
    await d.prompt(text, prompt_id)
    await finish(d, prompt_id)


async def in_its_mode(d: ScriptedSession) -> None:
    await turn(d, "p1")


async def undone(d: ScriptedSession) -> None:
    await turn(d, "p1")
    assert (d.root / "new.txt").exists()
    await d.session.edits.undo(r.ProposalUndoParams(session_id="s", scope=r.EditScope()))
    await d.session.checkpoints.restore(r.CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True))
    assert not (d.root / "new.txt").exists()
    await turn(d, "p2")


async def said_into_the_turn(d: ScriptedSession) -> None:
    turn_id = await d.prompt("go") or ""
    await d.until(lambda state: state.questions)
    await d.session.prompts.send(r.PromptSendParams(session_id="s", prompt_id="p2", text=LOOK), d.client)
    steering = r.PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text=LOOK)
    await d.session.prompts.steer(steering, d.client)
    await d.over("p2")


async def reloaded(d: ScriptedSession) -> None:
    await turn(d, "p1")
    await d.reopen()
    await turn(d, "p2")


async def by_a_second_client(d: ScriptedSession) -> None:
    other = Client(os.environ, "two")
    other.state = d.session.attach(other, None, None).state
    await d.session.prompts.send(r.PromptSendParams(session_id="s", prompt_id="p1", text=LOOK), other)
    await d.over("p1")
    assert other.state is not None and not other.state.trusted


async def in_a_second_session(d: ScriptedSession) -> None:
    params = r.SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=d.session.state.model_id)
    other = Client(os.environ, "two")
    await d.sessions.create(params, other)
    second = await d.sessions.get("t")
    await second.prompts.send(r.PromptSendParams(session_id="t", prompt_id="p", text=LOOK), other)
    await until(second, lambda state: state.last_turn)
    assert not seen_by(second)


SITUATIONS: dict[str, tuple[Mode, list[dict[str, Any]], Callable[[ScriptedSession], Awaitable[None]]]] = {
    "draft": ("draft", [WRITES, RUNS, DONE], in_its_mode),
    "plan": ("plan", [RUNS, DONE], in_its_mode),
    "job": ("auto", [STARTS, DONE], in_its_mode),
    "sub-agent": ("auto", [step("", ask_agent("helper")), DONE], in_its_mode),
    "undo and rewind": ("acceptEdits", [WRITES, DONE, DONE], undone),
    "steering and queue": ("auto", [ASKS, DONE, DONE], said_into_the_turn),
    "reload": ("auto", [DONE, DONE], reloaded),
    "second client": ("auto", [DONE], by_a_second_client),
    "headless run": ("auto", [WRITES, DONE], in_its_mode),
    "two sessions": ("auto", [DONE], in_a_second_session),
}
"""Mode, the model's steps, and what is done in the folder."""


def seen_by(session: Session) -> list[str]:
    """The words of the folder that its model was told."""
    told = "\n".join(message.model_dump_json() for message in conversation(session)) + conversation(session).memory
    tools = str([*session.composer.turn_factory.tools])
    return [word for word in WORDS if word in told + tools]


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_it_brings_nothing_before_it_is_trusted(tmp_path: Path, situation: str) -> None:
    mode, steps, happens = SITUATIONS[situation]
    helper = [step("", call("read_file", path="notes.txt")), step("", complete())]
    user_agent(tmp_path, "helper", helper)
    async with scripted_session(tmp_path, *steps, DONE, mode=mode, headless=situation == "headless run") as d:
        lay_out(d.root)
        await happens(d)
        assert not seen_by(d.session) and not d.session.state.trusted
        assert "theirs" not in d.session.composer.turn_factory.tools["run_agent"].spec().description
        assert not d.session.own_parts.mcp.servers() and await hook_entries(d) == []

        await d.trust()
        await turn(d, "p9")
        assert seen_by(d.session) == [*WORDS[:3]]
        assert [server.view.state for server in d.session.own_parts.mcp.servers()] == ["unapproved"]
