"""Background commands of a real daemon: a client comes back to them, and a killed daemon leaves no orphan."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.test_prompt_to_edit import editor, start, stop_daemon
from support.required_programs import needs
from support.running_daemon import signal_daemon
from unit.tools.test_run_shell_command import running

LEAVES = "setsid sleep 88.{n} & nohup sleep 88.{n} >/dev/null 2>&1 & (setsid -f sleep 88.{n}); echo up; sleep 88.{n}"


def script(folder: Path, command: str, **more: Any) -> str:
    call = {"tool": "run_shell_command", "arguments": {"command": command, "background": True, "until": "up", **more}}
    steps: list[dict[str, Any]] = [
        {"text": "", "calls": [call]},
        {"text": "Started.", "calls": []},
        {"text": "I see.", "calls": []},
    ]
    (folder / "script.json").write_text(json.dumps(steps))
    return f"scripted:{folder / 'script.json'}"


async def gone(number: str) -> None:
    async with asyncio.timeout(50):
        while running(number):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("outside", [False, True])
async def test_a_killed_daemon_leaves_no_orphan(tmp_path: Path, outside: bool) -> None:
    needs("bwrap")
    number = str(time.monotonic_ns())
    (root := tmp_path / "work").mkdir()
    more = {"outside": True, "reason": "to try"} if outside else {}
    model_id = script(tmp_path, LEAVES.replace("{n}", number), **more)
    async with editor({"AMANU_IDLE_SECONDS": "30"}) as client:
        await start(client, root, model_id, "start it", mode="auto")
        if outside:
            state = await client.until(lambda state: state.approvals)
            await asyncio.sleep(0.55)  # an answer this soon would not be taken
            asked = state.approvals[0]
            answer = {"toolCallId": asked.tool_call_id, "decision": "allow", "digest": asked.digest}
            await client.ask("approval/resolve", sessionId="s1", grants=["unsandboxed"], **answer)
        state = await client.until(lambda state: state.last_turn)
        assert state.jobs[0].state == "running" and len(running(number)) >= 4
        signal_daemon(signal.SIGKILL)
        await client.raw.exit_code()
    if not outside:
        await gone(number)
    async with editor({}) as client:
        await client.attach("s1")
        assert client.state is not None
        assert (client.state.jobs[0].state, client.state.jobs[0].summary) == ("ended", "Ended with the daemon")
        await gone(number)
        await client.ask("prompt/send", sessionId="s1", promptId="p2", text="and now?")
        state = await client.until(lambda state: state.jobs[0].told)
    stop_daemon()


async def test_a_client_comes_back_to_what_runs_and_stops_it(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    (root := tmp_path / "work").mkdir()
    model_id = script(tmp_path, f"echo up; sleep 88.{number}")
    async with editor({"AMANU_IDLE_SECONDS": "30"}) as client:
        await start(client, root, model_id, "start it", mode="auto")
        await client.until(lambda state: state.last_turn)
    async with editor({}) as client:
        await client.attach("s1")
        assert client.state is not None and client.state.jobs[0].state == "running"
        output = await client.ask("job/output", sessionId="s1", jobId="job-1")
        assert (output["text"], output["nextOffset"]) == ("up\n", 3)
        stopped = await client.ask("job/stop", sessionId="s1", jobId="job-1")
        assert stopped["job"]["state"] == "stopped" and running(number) == []
        await client.until(lambda state: state.jobs[0].state == "stopped")
    stop_daemon()
