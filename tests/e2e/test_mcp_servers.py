"""Servers as others publish them: the reference servers of the protocol's authors."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.mcp.model import CallClient
from amanu_protocol.items import Question
from support.free_port import free_port
from support.mcp_harness import Harness, harness, processes
from support.required_programs import needs_mcp_server


def stdio(name: str, *args: str, **table: Any) -> dict[str, Any]:
    node, program = needs_mcp_server(name)
    return {"command": node, "args": [program, *args], **table}


async def answer(server: str, message: str, fields: object) -> Question:
    del message, fields
    question: dict[str, Any] = {"itemId": "1", "turnId": "1", "asker": server, "title": "", "fields": []}
    return Question.model_validate({**question, "state": "answered", "answers": {"name": "Ada"}})


async def look(it: Harness) -> None:
    """What server-everything has."""
    server = it.server("all")
    tools = {tool.name: tool for tool in server.view.tools}
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= set(tools)
    assert await it.text("all", "echo", message="häß") == "Echo: häß"
    assert "5" in await it.text("all", "get-sum", a=2, b=3)
    structured = await it.call("all", "get-structured-content", location="New York")
    assert isinstance(structured.structured, dict)
    assert "temperature" in structured.structured
    picture = await it.call("all", "get-tiny-image")
    assert any(part.kind == "image" and part.data.startswith(b"\x89PNG") for part in picture.content)
    lines: list[str] = []
    client = CallClient(progress=lines.append, ask=answer)
    await it.call("all", "trigger-long-running-operation", client, duration=1, steps=4)
    assert any("4" in line for line in lines)
    assert (await it.call("all", "get-sum", a="x")).is_error
    resources = await server.list_resources()
    assert resources
    assert (await server.read_resource(resources[0].uri))[0].uri == resources[0].uri
    prompts = {prompt.name: prompt for prompt in await server.list_prompts()}
    assert await server.get_prompt("simple-prompt", {}) if "simple-prompt" in prompts else prompts


@pytest.mark.timeout(180)
async def test_everything_over_stdio(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.configure(all=stdio("server-everything"))
        await it.approved("all")
        assert (it.view("all").state, it.view("all").changed_tools) == ("ready", [])
        await look(it)
        asked = CallClient(ask=answer)
        if any(tool.name == "trigger-elicitation-request" for tool in it.view("all").tools):
            reply = await it.call("all", "trigger-elicitation-request", asked)
            assert "Ada" in "".join(part.text for part in reply.content)
    assert processes(tmp_path) == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("transport", "path"), [("streamableHttp", "mcp"), ("sse", "sse")])
async def test_everything_over_http(tmp_path: Path, transport: str, path: str) -> None:
    node, program = needs_mcp_server("server-everything")
    port = free_port()
    command = [node, program, transport]
    variables = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        async with harness(tmp_path) as it:
            it.configure(all={"url": f"http://127.0.0.1:{port}/{path}"})
            await it.servers.sandbox.proved()
            await it.servers.approve(it.workspace, "all", it.view("all").digest)
            async with asyncio.timeout(60):
                while it.view("all").state != "ready":
                    if it.view("all").state == "failed":  # it does not listen yet
                        await it.servers.restart(it.workspace, "all")
                    await asyncio.sleep(0.2)
            await look(it)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # `node` may be a program that starts another
        process.wait()


@pytest.mark.timeout(180)
async def test_the_filesystem_server_reads_the_workspace_and_changes_nothing(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        root = it.workspace.roots[0]
        (root / "a.txt").write_text("hello")
        it.configure(files=stdio("server-filesystem", "${workspaceFolder}"))
        await it.approved("files")
        assert it.view("files").state == "ready"
        assert "hello" in await it.text("files", "read_text_file", path=str(root / "a.txt"))
        reads = next(tool for tool in it.view("files").tools if tool.name == "read_text_file")
        assert reads.read_only
        outside = await it.call("files", "read_text_file", path="/etc/passwd")
        assert outside.is_error
        if it.servers.sandbox.tier != "none":
            refused = await it.call("files", "write_file", path=str(root / "a.txt"), content="changed")
            assert refused.is_error
            assert (root / "a.txt").read_text() == "hello"
        with pytest.raises(ToolError, match="has no tool"):
            await it.call("files", "nope")
    assert processes(tmp_path) == []


@pytest.mark.timeout(180)
async def test_five_sessions_share_one_process(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.configure(all=stdio("server-everything"))
        await it.approved("all")
        sessions = [it.servers.servers(it.workspace)[0] for _ in range(5)]
        calls = (session.call_tool("echo", {"message": "x"}, CallClient()) for session in sessions)
        assert {reply.content[0].text for reply in await asyncio.gather(*calls)} == {"Echo: x"}
        assert len([line for line in processes(tmp_path) if line.split()[0].endswith("node")]) == 1
    assert processes(tmp_path) == []
