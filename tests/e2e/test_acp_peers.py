"""`amanu acp` with clients that are not ours, each with its own reading of the protocol: the official SDKs for
TypeScript and Python, and acpx, which drives agents from a shell."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.test_acp import ASK, COMMAND, EDIT, READ
from e2e.test_prompt_to_edit import TWELVE, TWO_HUNKS, service, stop_daemon
from support import acp_client
from support.required_programs import needs, needs_acp, needs_acp_python
from support.strict_services.http import Say, Script, Service
from support.warm_process import warm

SUPPORT = Path(acp_client.__file__).parent
EVERYTHING = [READ, EDIT, COMMAND, ASK, Say(text="Done.")]
SLOW = Say(text=[f"{number} " for number in range(600)], delay=0.05)
TOUCH = "`touch made.txt` (and 1 more line)"
KINDS = {"agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "usage_update"}
REPLAYED = KINDS - {"tool_call_update"} | {"user_message_chunk"}
CHOSEN = {"mode": "plan", "effort": "high", "service_tier": "standard"}

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def scripted(script: Script, root: Path) -> AsyncGenerator[tuple[Service, dict[str, str]]]:
    """A service that plays the script, and the environment of an agent that asks it about notes.txt in `root`."""
    (root / "notes.txt").write_text(TWELVE)
    async with service("anthropic", script) as (served, model_id, keys):
        try:
            yield served, {**keys, "AMANU_MODEL": model_id}
        finally:
            stop_daemon()


async def run(command: list[str], root: Path, environment: Mapping[str, str]) -> tuple[int | None, list[Any]]:
    """The exit code, and the lines of JSON on standard output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environment},
        cwd=root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 90)
    finally:
        with contextlib.suppress(ProcessLookupError):  # `node` is a program that starts the real one
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, [json.loads(line) for line in output.splitlines()]


# The official SDKs -----------------------------------------------------------------------------------


async def test_the_typescript_sdk_finds_nothing_wrong(tmp_path: Path) -> None:
    command = [needs("node"), str(SUPPORT / "acp_peer.mjs"), str(needs_acp()), str(tmp_path)]
    async with scripted([*EVERYTHING, SLOW, COMMAND], tmp_path) as (served, environment):
        code, (report,) = await run([*command, *warm(acp_client.COMMAND)], tmp_path, environment)
    assert (code, report["problems"], report["codes"]) == (0, [], [0, 0])
    assert report["agent"] == "amanu"
    assert [prompt["stopReason"] for prompt in report["prompts"]] == ["end_turn", "cancelled", "cancelled"]
    asked = [f"Do you trust the files in {tmp_path}?", "Edit notes.txt", TOUCH]
    assert report["permissions"] == [*asked, TOUCH]
    assert report["withdrawn"] == [TOUCH]
    assert report["forms"] == ["Which database?"]
    assert "Answer: SQLite" in served.requests[4].body.decode()
    first = report["prompts"][0]["updates"]
    assert set(first) == {*KINDS, "available_commands_update", "session_info_update"}
    assert first["tool_call"] == 5, "read_file, write_file, run_shell_command, ask_user, and the question of trust"
    assert set(report["prompts"][1]["updates"]) >= {"agent_message_chunk"}
    _check_files(report, tmp_path)

    assert report["listed"] == [True]
    assert set(report["replayed"]) == REPLAYED
    assert (report["replayed"]["user_message_chunk"], report["replayed"]["tool_call"]) == (3, 5)
    assert (report["loadedMode"], set(report["modes"])) == ("ask", {"plan", "ask", "acceptEdits", "draft", "auto"})
    assert set(report["options"]) == {"mode", "model", "effort", "service_tier"}
    assert report["values"] == CHOSEN | {"model": environment["AMANU_MODEL"]}
    assert report["left"] == 0, "closed and deleted"
    assert not served.refused and not served.lint


async def test_the_python_sdk_finds_nothing_wrong(tmp_path: Path) -> None:
    program = [sys.executable, "-P", str(SUPPORT / "acp_python_peer.py"), str(needs_acp_python()), str(tmp_path)]
    async with scripted(EVERYTHING, tmp_path) as (served, environment):
        code, (report,) = await run([*program, *acp_client.COMMAND], tmp_path, environment)
    assert (code, report["problems"], report["code"]) == (0, [], 0)
    assert (report["agent"], report["stopReason"]) == ("amanu", "end_turn")
    assert report["permissions"] == [f"Do you trust the files in {tmp_path}?", "Edit notes.txt", TOUCH]
    assert report["forms"] == ["Which database?"]
    assert "Answer: SQLite" in served.requests[4].body.decode()
    assert set(report["updates"]) == {*KINDS, "available_commands_update", "session_info_update"}
    assert report["text"].startswith("I read it.Two changes.") and report["text"].endswith("Done.")
    _check_files(report, tmp_path)

    assert report["listed"] == [True]
    assert set(report["replayed"]) == REPLAYED
    assert report["values"] == CHOSEN | {"model": environment["AMANU_MODEL"]}
    assert not served.refused and not served.lint


def _check_files(report: Mapping[str, Any], root: Path) -> None:
    """What was approved is done, the edit through the client."""
    assert (root / "notes.txt").read_text() == TWO_HUNKS
    assert (root / "made.txt").exists()
    assert set(report["read"]) == {str(root / "notes.txt")}
    assert report["written"] == [str(root / "notes.txt")]


# acpx ------------------------------------------------------------------------------------------------


async def acpx(root: Path, environment: Mapping[str, str], policy: str) -> tuple[int | None, list[Any]]:
    """What it makes of one prompt: its exit code, and the messages that went either way."""
    needs("node")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    agent = ["--agent", shlex.join(warm(acp_client.COMMAND)), "--format", "json", "--json-strict", policy]
    command = [str(needs_acp() / ".bin/acpx"), *agent, "exec", "change it"]
    return await run(command, root, {**environment, "PATH": path})


def permissions(messages: list[Any]) -> list[tuple[str, str]]:
    """What was asked for, each with the id of the option that was chosen."""
    answers = {message["id"]: message["result"] for message in messages if "outcome" in message.get("result", {})}
    return [
        (message["params"]["toolCall"]["title"], answers[message["id"]]["outcome"]["optionId"])
        for message in messages
        if message.get("method") == "session/request_permission"
    ]


def ends(messages: list[Any]) -> dict[str, str]:
    """The last status of each call, by its title."""
    updates = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    calls = [update for update in updates if update["sessionUpdate"] in ("tool_call", "tool_call_update")]
    titles = {call["toolCallId"]: call["title"] for call in calls if "title" in call}
    return {titles[call["toolCallId"]]: call["status"] for call in calls if "status" in call}


async def test_acpx_approves_all(tmp_path: Path) -> None:
    async with scripted([READ, EDIT, COMMAND, Say(text="Done.")], tmp_path) as (served, environment):
        code, messages = await acpx(tmp_path, environment, "--approve-all")
    assert code == 0
    trust = f"Do you trust the files in {tmp_path}?"
    assert permissions(messages) == [(trust, "trust"), ("Edit notes.txt", "allow-0"), (TOUCH, "allow-0")]
    assert ends(messages) == dict.fromkeys((trust, "Read notes.txt", "Edit notes.txt", TOUCH), "completed")
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    assert (tmp_path / "notes.txt").read_text() == TWO_HUNKS
    assert (tmp_path / "made.txt").exists()
    assert not served.refused and not served.lint


async def test_acpx_denies_all(tmp_path: Path) -> None:
    async with scripted([READ, EDIT, COMMAND, Say(text="Pity.")], tmp_path) as (served, environment):
        code, messages = await acpx(tmp_path, environment, "--deny-all")
    assert code == 5, "its code for a prompt of which every permission was denied"
    trust = f"Do you trust the files in {tmp_path}?"
    assert permissions(messages) == [(trust, "later"), ("Edit notes.txt", "reject"), (TOUCH, "reject")]
    statuses = ends(messages)
    assert (statuses[trust], statuses["Edit notes.txt"], statuses[TOUCH]) == ("failed",) * 3
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    assert (tmp_path / "notes.txt").read_text() == TWELVE
    assert not (tmp_path / "made.txt").exists()
    assert not served.refused and not served.lint
