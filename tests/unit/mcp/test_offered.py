"""Servers that a client offers to one session: used there without a question, and nowhere else."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.mcp.offered import read_offer
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import OfferedServer
from support.mcp_harness import SUPPORT, Folder, Harness, harness, plain_server, processes
from support.mcp_web_server import web_server

VALUE = "plain-words-of-the-user"


def stdio(name: str = "sample", **more: Any) -> OfferedServer:
    return OfferedServer(
        name=name, kind="stdio", command=sys.executable, args=[str(SUPPORT / "plain_mcp_server.py")]
    ).model_copy(update=more)


def offer(it: Harness, *servers: OfferedServer, folder: Folder | None = None) -> None:
    it.servers.offer(folder or it.workspace, "Zed", servers)


def names(it: Harness, folder: Folder | None = None) -> list[str]:
    return [server.name for server in it.servers.servers(folder or it.workspace)]


async def test_it_is_used_in_a_folder_nobody_trusts_and_without_a_question(tmp_path: Path) -> None:
    async with harness(tmp_path, {"PLAIN": "word"}) as it:
        it.workspace.trusted = False
        offer(it, stdio(env={"PLAIN_VALUE": VALUE, "LITERAL": "${PLAIN} ${NONE}"}))
        view = it.view("sample")
        assert (view.state, view.reason, view.source, view.is_offered) == ("configured", "", "Zed", True)
        await it.until(lambda: bool(it.view("sample").tools))
        assert view.access.startswith("Sandboxed: it can read the workspace and change nothing")
        assert view.access.endswith("It gets the variables LITERAL and PLAIN_VALUE as you set them.")
        assert await it.text("sample", "echo", text="x") == "x"
        environment = await it.text("sample", "environment")
        assert VALUE in environment
        assert "${PLAIN} ${NONE}" in environment
        assert VALUE not in repr(it.view("sample"))
        assert not (it.home.state / "mcp" / "pins.json").exists()
        written = [path for path in (tmp_path / "ours").rglob("*") if path.is_file()]
        assert not [path for path in written if VALUE.encode() in path.read_bytes()]


async def test_another_session_of_the_folder_has_none_and_ends_none(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        other = replace(it.workspace, session_id="t")
        offer(it, stdio())
        who = await it.text("sample", "whoami")
        assert names(it, other) == []
        assert await it.text("sample", "whoami") == who
        offer(it, stdio(), folder=other)
        (server,) = it.servers.servers(other)
        await it.servers.turn_off(other, "sample")
        assert server.view.state == "off"
        assert await it.text("sample", "whoami") == who, "off in one session, it goes on in the other"


async def test_a_list_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        offer(it, stdio("one"), stdio("two"))
        first = await it.text("one", "whoami")
        await it.text("two", "whoami")
        old = it.server("two")
        count, changes = len(processes(tmp_path)), it.changes
        offer(it, stdio("one"), stdio("two", env={"A": "b"}))
        assert it.changes > changes
        assert await it.text("one", "whoami") == first, "what is offered again goes on"
        assert '"A": "b"' in await it.text("two", "environment")
        await it.until(lambda: len(processes(tmp_path)) == count)
        with pytest.raises(ToolError, match=r"two is turned off\. Zed has taken it back"):
            await old.call_tool("echo", {"text": "x"}, None)  # type: ignore[arg-type]  # pyright: ignore
        offer(it)
        assert names(it) == []
        await it.until(lambda: not processes(tmp_path))


async def test_a_name_that_is_configured_is_left_out(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=plain_server())
        offer(it, stdio(), stdio("other"))
        assert names(it) == ["sample", "other"]
        await it.until(lambda: it.view("other").state == "ready")
        assert it.view("sample").source == "your mcp.toml"
        assert it.servers.problems(it.workspace) == ["sample of Zed is left out: your mcp.toml has that name."]
        count = len(processes(tmp_path))
        it.configure()
        assert it.view("sample").state == "configured"
        await it.text("sample", "echo", text="x")
        it.configure(sample=plain_server())
        assert it.view("sample").state == "unapproved"
        await it.until(lambda: len(processes(tmp_path)) == count)


@pytest.mark.parametrize(
    ("offered", "known", "problems"),
    [
        (["My server 2.0"], ["My_server_2_0"], []),
        (["a.b", "a_b"], ["a_b"], ["The server 'a.b' of Zed is left out: another server is already named a_b."]),
        (["a", "a"], ["a"], ["The server 'a' of Zed is left out: another server is already named a."]),
        (["é", "x" * 40], ["x" * 40, "_"], []),
        (
            ["x" * 41],
            [],
            [f"The server '{'x' * 41}' of Zed is left out: a name is at most 40 letters, digits, _ and -."],
        ),
    ],
)
def test_odd_names(offered: list[str], known: list[str], problems: list[str]) -> None:
    file = read_offer("s", "Zed", [stdio(name) for name in offered])
    assert ([*file.servers], [*file.problems]) == (known, problems)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"command": ""}, "it needs either a command or a url."),
        ({"command": "bin/x"}, "its command must be an absolute path, or a name on PATH."),
        ({"args": ["\0"]}, "a command cannot contain a NUL character."),
        ({"kind": "http"}, "it needs either a command or a url."),
        ({"kind": "http", "url": "ftp://x"}, "its url must begin with https:// or http://."),
    ],
)
def test_what_is_wrong_with_one(more: Mapping[str, Any], fault: str) -> None:
    (config,) = read_offer("s", "", [stdio("a", **more)]).servers.values()
    assert config.fault == f"a in the editor: {fault}"


async def test_one_that_is_reached_by_http(tmp_path: Path) -> None:
    with web_server() as (address, _):
        async with harness(tmp_path) as it:
            offer(it, OfferedServer(name="web", kind="http", url=address, headers={"X-Key": VALUE}, command="unused"))
            assert it.view("web").target == address
            assert await it.text("web", "echo", text="x") == "x"
            assert await it.text("web", "header", name="X-Key") == VALUE
            offer(it, OfferedServer(name="web", kind="http", url=address, headers={"X-Key": f"{VALUE}\n"}))
            with pytest.raises(ToolError, match="The header 'X-Key' of Zed cannot be sent") as caught:
                await it.text("web", "echo", text="x")
            assert VALUE not in str(caught.value) + repr(it.view("web"))


async def test_what_the_user_decides_about_it_is_kept_as_long_as_it_is_offered(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        offer(it, stdio())
        first = await it.text("sample", "whoami")
        await it.servers.restart(it.workspace, "sample")
        assert await it.text("sample", "whoami") != first
        with pytest.raises(AmanuError) as caught:
            await it.servers.sign_in(it.workspace, "sample", lambda page: None)
        assert caught.value.kind == "authRequired"
        await it.servers.turn_off(it.workspace, "sample")
        assert not processes(tmp_path)
        offer(it, stdio(), stdio("other"))
        await it.until(lambda: it.view("other").state == "ready")
        assert it.view("sample").state == "off"
        await it.approved("sample")
        assert it.view("sample").state == "ready"
        await it.servers.turn_off(it.workspace, "sample")
        offer(it, stdio(env={"A": "b"}))
        await it.until(lambda: it.view("sample").state == "ready")  # it is another one


async def test_its_changed_tools_wait_for_the_user(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        offer(it, stdio())
        await it.text("sample", "grow")
        await it.until(lambda: bool(it.view("sample").changed_tools))
        with pytest.raises(ToolError, match="its description changed"):
            await it.text("sample", "echo", text="x")
        await it.servers.approve_tools(it.workspace, "sample", it.view("sample").tools_digest)
        assert await it.text("sample", "echo", text="x") == "x"
