"""An editor hands its MCP servers over to a session, through the connection."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.connection import connect_in_process
from amanu.session.sessions import open_sessions
from support.raw_client import RawClient

SERVER = Path(__file__).parents[2] / "support" / "mcp_server.py"
VALUE = "plain-words-of-the-user"
OFFERED = {
    "name": "My server",
    "kind": "stdio",
    "command": sys.executable,
    "args": [str(SERVER)],
    "env": {"SETTING": VALUE},
}


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RawClient]:
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    script = tmp_path / "script.json"
    script.write_text("[]")
    sessions = open_sessions()
    client = RawClient(*await connect_in_process(sessions, {}))
    await client.initialize(clientInfo={"name": "Zed"})
    for session_id in ("s", "t"):
        work = [str(tmp_path / "work")]
        await ask(client, "session/create", sessionId=session_id, roots=work, modelId=f"scripted:{script}")
    yield client
    client.writer.close()
    await sessions.shutdown()


async def ask(client: RawClient, method: str, **params: Any) -> Any:
    answer = await client.request(f"amanu/{method}", params)
    assert "result" in answer, answer
    return answer["result"]


async def listed(client: RawClient, session_id: str = "s") -> list[dict[str, Any]]:
    return (await ask(client, "mcp/list", sessionId=session_id))["servers"]


async def test_they_are_those_of_one_session(client: RawClient) -> None:
    assert await ask(client, "mcp/offer", sessionId="s", servers=[OFFERED]) == {}
    await client.notification("amanu/mcp/changed")
    (server,) = await listed(client)
    assert (server["name"], server["source"]) == ("My_server", "Zed")
    assert server["state"] in ("configured", "starting")
    assert server["target"].endswith(f" {SERVER}")
    assert await listed(client, "t") == []
    off = await ask(client, "mcp/turnOff", sessionId="s", name="My_server")
    assert off["server"]["state"] == "off"
    await ask(client, "mcp/offer", sessionId="s", servers=[])
    assert await listed(client) == []


async def test_their_values_are_nowhere_to_be_read(client: RawClient, tmp_path: Path) -> None:
    await ask(client, "mcp/offer", sessionId="s", servers=[OFFERED])
    refused = await client.request("amanu/mcp/offer", {"sessionId": "s", "servers": [{**OFFERED, "kind": VALUE}]})
    assert refused["error"]["data"]["kind"] == "invalidParams"
    assert VALUE not in json.dumps([refused, await listed(client), client.heard])
    await ask(client, "session/close", sessionId="s")
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if VALUE.encode() in path.read_bytes()]


async def test_they_end_with_the_session(client: RawClient) -> None:
    await ask(client, "mcp/offer", sessionId="s", servers=[OFFERED])
    await ask(client, "session/close", sessionId="s")
    await ask(client, "session/attach", sessionId="s")
    assert await listed(client) == []
