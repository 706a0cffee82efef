"""Five sessions in three editors that all call a server: one process; none when the daemon is killed."""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from amanu_protocol.items import ToolCall
from amanu_protocol.state import SessionState
from e2e.test_prompt_to_edit import Editor, editor
from support.running_daemon import signal_daemon

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "support" / "mcp_server.py"
WHO: list[dict[str, Any]] = [{"calls": [{"tool": "mcp__sample__whoami", "arguments": {}}]}, {"text": "Done."}]


def configure(tmp_path: Path) -> None:
    """A server of the user's whose processes are marked, and a rule that allows its tools."""
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    table = {"command": sys.executable, "args": [str(SERVER)]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    (config / "mcp.toml").write_text("\n".join(["[servers.sample]", *lines, f'env = {{ MARK = "{tmp_path}" }}\n']))
    read = json.dumps([str(ROOT), sys.prefix, sys.base_prefix])
    rule = '[[rule]]\ndecision = "allow"\nserver = "sample"\n'
    (config / "config.toml").write_text(f"[sandbox]\nread = {read}\n{rule}")
    (tmp_path / "script.json").write_text(json.dumps(WHO))


def marked(tmp_path: Path) -> list[str]:
    """The processes of the server."""
    needle, pids = f"MARK={tmp_path}".encode(), list[str]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                pids.append(entry.name)
        except OSError:
            continue
    return pids


async def approve(client: Editor) -> None:
    async def server() -> Any:
        return (await client.ask("mcp/list", sessionId="s1"))["servers"][0]

    await client.ask("mcp/approve", sessionId="s1", name="sample", digest=(await server())["digest"])
    async with asyncio.timeout(50):
        while not (await server())["tools"]:
            await asyncio.sleep(0.1)


async def answer(client: Editor, session_id: str) -> str:
    """What the server says in that session of who it is."""
    await client.ask("prompt/send", sessionId=session_id, promptId="p1", text="who is it?")
    async with asyncio.timeout(50):
        while True:
            seen = await client.ask("session/attach", sessionId=session_id)
            state = SessionState.model_validate(seen["state"])
            if state.last_turn is not None:
                (call,) = [item for item in state.items if isinstance(item, ToolCall)]
                assert call.state == "succeeded", call.error
                return call.output
            await asyncio.sleep(0.1)


async def answers(client: Editor, index: int) -> list[str]:
    """The same in each session of that editor."""
    return [await answer(client, f"s{number}") for number in range(1, 6) if number % 3 == index]


async def test_five_sessions_in_three_editors_share_one_process(tmp_path: Path) -> None:
    configure(tmp_path)
    async with AsyncExitStack() as stack:
        editors = [await stack.enter_async_context(editor({})) for _ in range(3)]
        try:
            for number in range(1, 6):
                await editors[number % 3].ask(
                    "session/create",
                    sessionId=f"s{number}",
                    roots=[str(tmp_path)],
                    modelId=f"scripted:{tmp_path / 'script.json'}",
                )
            await approve(editors[1])
            told = await asyncio.gather(*(answers(client, index) for index, client in enumerate(editors)))
            assert len([one for of_editor in told for one in of_editor]) == 5
            assert len({one for of_editor in told for one in of_editor}) == 1
            assert marked(tmp_path)
        finally:
            signal_daemon(signal.SIGKILL)
        async with asyncio.timeout(50):
            while marked(tmp_path):
                await asyncio.sleep(0.05)
