"""The report of a sub-agent in the background reaches the model once, whatever happens in between."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol.requests import AgentParams, CheckpointRestoreParams, PromptSendParams
from support.agent_session import ask_agent, complete, session_with_agents
from support.scripted_session import ScriptedSession, call, conversation, step
from support.session_agents import agents_of
from support.session_client import Client, until


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


REPORT = "worker (agent-1) completed its task (1 step).\n\nLine 2 says so."
UNTRUE = ("lost", "restarted", "with the daemon", "daemon stopped", "by the user")
STEPS = [step("", ask_agent("worker", background=True)), step("Started."), step("I see."), step("Nothing new.")]
AGENTS: dict[str, list[dict[str, Any]]] = {
    "completed": [step("", complete("Line 2 says so."))],
    "at work": [step("x", delay_ms=60_000)],
    "waiting for the user": [step("", call("write_file", path="a.txt", content="a\n"))],
}


async def work_in_background(d: ScriptedSession, doing: str = "completed") -> None:
    await d.prompt("go", "p1")
    await d.over("p1")
    if doing == "waiting for the user":
        await d.until(lambda state: state.approvals)
    state = "running" if doing == "at work" else "waiting" if doing == "waiting for the user" else doing
    await d.until(lambda each: each.agents[0].state == state)


async def ask_again(session: Session, client: Client) -> str:
    """All the model was told, after two more prompts."""
    for prompt in ("p3", "p4"):
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id=prompt, text="and?"), client)
        await until(session, lambda state, turn=f"turn-{prompt}": state.last_turn and state.last_turn.turn_id == turn)
    (shown,) = session.state.agents
    assert shown.told and shown.report == ""
    return "\n".join(str(message) for message in conversation(session)).replace("\\n", "\n")


async def told_by_the_next_daemon() -> str:
    sessions = open_sessions()
    try:
        return await ask_again(await sessions.get("s"), Client(os.environ))
    finally:
        await sessions.shutdown()


@pytest.mark.parametrize("how", ["closed", "restarted"])
@pytest.mark.parametrize(
    ("doing", "expected"),
    [
        ("completed", REPORT),
        ("at work", "was stopped because its session was closed; its task is not completed"),
        ("waiting for the user", "was stopped because its session was closed; its task is not completed"),
    ],
)
async def test_how_one_ended_is_told_after_its_session_or_the_daemon_was_closed(
    tmp_path: Path, doing: str, expected: str, how: str
) -> None:
    async with session_with_agents(tmp_path, {"worker": AGENTS[doing]}, *STEPS) as d:
        await work_in_background(d, doing)
        told = ""
        if how == "closed":
            await d.reopen()
            told = await ask_again(d.session, d.client)
    told = told or await told_by_the_next_daemon()
    assert told.count(expected) == 1 and not any(word in told for word in UNTRUE)


async def test_what_the_user_stopped_is_told_as_that_after_a_close(tmp_path: Path) -> None:
    async with session_with_agents(tmp_path, {"worker": AGENTS["at work"]}, *STEPS) as d:
        await work_in_background(d, "at work")
        await agents_of(d.session).stop(AgentParams(session_id="s", agent_id="agent-1"))
        await d.reopen()
        assert (await ask_again(d.session, d.client)).count(
            "worker (agent-1) was stopped by the user; its task is not completed"
        ) == 1


async def test_a_report_is_told_again_when_the_turn_that_heard_it_is_rewound(tmp_path: Path) -> None:
    async with session_with_agents(tmp_path, {"worker": AGENTS["completed"]}, *STEPS, step("Again.")) as d:
        await work_in_background(d)
        await d.prompt("and?", "p2")
        await d.over("p2")
        assert d.told().count("Line 2 says so.") == 1
        await d.session.checkpoints.restore(
            CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=False, conversation=True)
        )
        assert d.told().count("Line 2 says so.") == 0
        assert (await ask_again(d.session, d.client)).count("Line 2 says so.") == 1


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from support.agent_session import session_with_agents
from unit.agents.test_agent_reports import AGENTS, STEPS, work_in_background

async def main():
    doing = sys.argv[2]
    async with session_with_agents(Path(sys.argv[1]), {"worker": AGENTS[doing]}, *STEPS) as d:
        await work_in_background(d, doing)
        if doing != "completed":
            await d.session.emit.durable()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("doing", "expected"),
    [
        ("completed", REPORT),
        ("at work", "worker (agent-1) was interrupted when the daemon stopped, without a report"),
    ],
)
def test_how_one_ended_is_told_after_a_kill_in_the_instant_in_which_it_is_seen(
    tmp_path: Path, doing: str, expected: str
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path), doing], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    told = asyncio.run(told_by_the_next_daemon())
    assert told.count(expected) == 1
    assert doing != "completed" or not any(word in told for word in UNTRUE)
