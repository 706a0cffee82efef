"""The daemon on another machine: its clients reach it through a real ssh server, which here is on loopback."""

import asyncio
import os
import platform
import shlex
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from e2e.test_cli_chat import Screen
from e2e.test_prompt_to_edit import SERVE, Editor, create
from support.cli_process import AMANU, call, script
from support.raw_client import RawClient
from support.required_programs import needs
from support.running_daemon import daemon_pid, signal_daemon
from support.ssh_server import ssh_server

Login = Callable[..., list[str]]

ELSEWHERE = 2**31 - 2
"""A process of the machine where the editor runs; here there is none."""


@pytest_asyncio.fixture
async def login(tmp_path: Path) -> AsyncIterator[Login]:
    """A function that runs a command on the other machine. Whatever daemon it started is ended."""
    async with ssh_server(tmp_path / "ssh") as server:
        port = server.address.rpartition(":")[2]
        line = [needs("ssh"), "-F", str(server.settings), "-i", str(server.key), "-p", port]

        def run(command: Sequence[str], *options: str) -> list[str]:
            there = ["env", f"HOME={os.environ['HOME']}", f"AMANU_HOME={os.environ['AMANU_HOME']}", *command]
            return [*line, *options, "127.0.0.1", shlex.join(there)]

        yield run
        signal_daemon()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (shop := tmp_path / "shop").mkdir()
    return shop


def steps(folder: Path) -> str:
    write = call("write_file", path="a.txt", content="one\n")
    return script(folder, {"text": "I will write it.", "calls": [write]}, {"expect": "a.txt", "text": "Written."})


async def test_a_cut_connection_leaves_the_session_whole(login: Login, tmp_path: Path, shop: Path) -> None:
    raw = await RawClient.spawn(login(SERVE), os.environ)
    await raw.initialize(processId=ELSEWHERE)
    client = Editor(raw)
    await create(client, shop, steps(tmp_path))
    await client.ask("prompt/send", sessionId="s1", promptId="p1", text="write it")
    (asked,) = (await client.until(lambda state: state.approvals, 50)).approvals
    assert raw.process is not None
    raw.process.kill()
    await raw.stop()
    daemon = daemon_pid()
    raw = await RawClient.spawn(login(SERVE), os.environ)
    try:
        await raw.initialize(processId=ELSEWHERE)
        client = Editor(raw)
        await client.attach("s1")
        assert client.state is not None and client.state.approvals == [asked]
        assert daemon_pid() == daemon
        await asyncio.sleep(0.55)  # a question that old can be answered
        answer: dict[str, Any] = {"sessionId": "s1", "toolCallId": asked.tool_call_id, "digest": asked.digest}
        assert (await client.ask("approval/resolve", decision="allow", **answer))["status"] == "resolved"
        state = await client.until(lambda state: state.last_turn, 50)
        assert state.last_turn is not None and state.last_turn.reason == "completed"
        assert (shop / "a.txt").read_text() == "one\n"
        assert await raw.leave() == 0
    finally:
        await raw.stop()


async def test_an_editor_without_a_plugin_prompts_over_ssh(login: Login, tmp_path: Path, shop: Path) -> None:
    raw = await RawClient.spawn(login(SERVE), os.environ)
    try:
        model = script(tmp_path, {"text": "Hello from over there."})
        folder = {"uri": shop.as_uri(), "name": "shop"}
        options = {"amanu": {"model": model}}
        await raw.initialize({}, processId=ELSEWHERE, workspaceFolders=[folder], initializationOptions=options)
        await raw.request("workspace/executeCommand", {"command": "amanu.prompt", "arguments": ["hello"]})
        assert "Hello from over there." in (await raw.notification("window/showMessage"))["message"]
        assert await raw.leave() == 0
    finally:
        await raw.stop()


async def test_chat_at_a_terminal_over_ssh(login: Login, tmp_path: Path, shop: Path) -> None:
    def chat() -> None:
        screen = Screen("--model", model, str(shop), cwd=shop, command=login(AMANU, "-tt"))
        try:
            screen.sees("2. Trust this folder")
            screen.types("y\r")
            screen.takes_prompts()
            screen.types("write it\r")
            screen.sees("Accept all")
            time.sleep(0.6)  # sooner does not count
            screen.types("a\r")
            screen.sees("Written.")
            screen.takes_prompts()
            screen.types("\x04")
            assert screen.leaves() == 0
        finally:
            screen.close()

    model = steps(tmp_path)
    await asyncio.to_thread(chat)
    assert (shop / "a.txt").read_text() == "one\n"


async def test_a_folder_of_this_machine_is_not_over_there(login: Login) -> None:
    """There is no terminal needed to say so."""
    asked = login([*AMANU, "run", "--workspace", "/Users/me/shop", "hello"])
    done = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and f"/Users/me/shop is not a folder on {platform.node()}, where Amanu" in done.stderr
