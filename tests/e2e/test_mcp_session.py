"""An MCP server through the real process: agreed to by the protocol, told to each vendor, called, asked about."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from e2e.test_prompt_to_edit import VENDORS, editor, service, start
from support.strict_services.http import Say, ToolUse

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "support" / "mcp_server.py"


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_server_is_agreed_to_and_called(vendor: str, tmp_path: Path) -> None:
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    table = f"[servers.sample]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
    (config / "mcp.toml").write_text(table)
    read = json.dumps([str(ROOT), sys.prefix, sys.base_prefix])
    (config / "config.toml").write_text(f"[sandbox]\nread = {read}\n")
    script = [
        Say(text="Hello."),
        Say(text="I ask the server.", calls=[ToolUse("mcp__sample__echo", {"text": "bread and butter"})]),
        Say(text="It said so."),
    ]
    async with service(vendor, script) as (served, model_id, keys), editor(keys, "--alone") as client:
        await start(client, tmp_path, model_id, "hello")
        await client.until(lambda state: state.last_turn)
        assert b"mcp__sample__echo" not in served.requests[0].body
        (server,) = (await client.ask("mcp/list", sessionId="s1"))["servers"]
        assert server["state"] == "unapproved"
        assert str(SERVER) in server["target"]
        await client.ask("mcp/approve", sessionId="s1", name="sample", digest=server["digest"])
        async with asyncio.timeout(50):
            while not (await client.ask("mcp/list", sessionId="s1"))["servers"][0]["tools"]:
                await asyncio.sleep(0.1)
        await client.ask("prompt/send", sessionId="s1", promptId="p2", text="ask it")
        asked = (await client.until(lambda state: state.approvals)).approvals[0]
        assert "bread and butter" in asked.detail
        await asyncio.sleep(0.55)
        await client.ask(
            "approval/resolve", sessionId="s1", toolCallId=asked.tool_call_id, decision="allow", digest=asked.digest
        )
        await client.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        assert b"bread and butter\\n</mcp_result>" in served.requests[2].body
        assert not served.refused
        assert not served.lint
        assert await client.raw.leave() == 0
