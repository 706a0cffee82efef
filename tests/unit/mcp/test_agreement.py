"""What the user is asked, and what a workspace cannot take."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.mcp import pins
from amanu.mcp.model import ServerTool
from amanu.mcp.pins import Listing, Pin, Pins, difference
from amanu_protocol.errors import AmanuError
from support.mcp_harness import Harness, harness, plain_server


def repository(it: Harness, **servers: Any) -> None:
    (it.workspace.roots[0] / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def test_a_workspace_that_is_not_trusted_has_no_servers(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.workspace.trusted = False
        repository(it, evil=plain_server())
        (it.workspace.roots[0] / ".amanu").mkdir()
        (it.workspace.roots[0] / ".amanu" / "mcp.toml").write_text('[servers.evil2]\ncommand = "x"')
        assert it.servers.servers(it.workspace) == []
        with pytest.raises(AmanuError, match="There is no MCP server 'evil' here") as caught:
            await it.servers.approve(it.workspace, "evil", "")
        assert caught.value.kind == "mcpServerNotFound"


async def test_trusted_it_still_needs_a_yes_to_exactly_what_it_starts(tmp_path: Path) -> None:
    variables = {"SERVICE_TOKEN": "secret-value-1234567890abcdef", "PLAIN": "word"}
    async with harness(tmp_path, variables) as it:
        await it.servers.sandbox.proved()
        env = {"NODE_OPTIONS": "--require ./x", "KEY": "${SERVICE_TOKEN}"}
        repository(it, local={**plain_server(), "args": ["a b", "${PLAIN}", "${SERVICE_TOKEN}"], "env": env})
        view = it.view("local")
        assert view.state == "unapproved"
        assert view.target.startswith("NODE_OPTIONS='--require ./x' KEY='${SERVICE_TOKEN}' ")
        assert view.target.endswith(" 'a b' word '${SERVICE_TOKEN}'")
        assert "It gets PLAIN and SERVICE_TOKEN from your environment." in view.access
        repository(it, local=plain_server(env={"NODE_OPTIONS": "--require ./y"}))
        with pytest.raises(AmanuError) as caught:
            await it.servers.approve(it.workspace, "local", view.digest)
        assert caught.value.kind == "mcpServerChanged"
        assert (await it.approved("local")).view.state == "ready"
        repository(it, local=plain_server(env={"NODE_OPTIONS": "--require ./z"}))
        assert it.view("local").state == "unapproved"


async def test_a_workspace_cannot_take_a_name_of_the_users(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.configure(mine=plain_server())
        repository(it, mine={"command": "evil"}, other={"command": "x"})
        views = {server.view.name: server.view for server in it.servers.servers(it.workspace)}
        assert views["mine"].source == "your mcp.toml"
        assert list(views) == ["mine", "other"]
        assert it.servers.problems(it.workspace) == [
            "mine of .mcp.json of this workspace is left out: your mcp.toml has that name."
        ]


async def test_keys_of_models_are_never_passed_on(tmp_path: Path) -> None:
    async with harness(tmp_path, {"ANTHROPIC_API_KEY": "k"}) as it:
        it.configure(bad=plain_server(env={"X": "${ANTHROPIC_API_KEY}"}), unset=plain_server(env={"X": "${NONE}"}))
        for name, sentence in (("bad", "which is never passed on"), ("unset", "the variable NONE, which is not set.")):
            await it.approved(name)
            assert it.view(name).state == "failed"
            assert sentence in it.view(name).reason


async def test_a_program_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        root = it.workspace.roots[0]
        (root / "bin").mkdir()
        (root / "bin" / "tool").write_text("#!/bin/sh\n")
        (root / "bin" / "tool").chmod(0o755)
        it.servers.variables._variables["PATH"] += f":{root / 'bin'}"  # type: ignore[index]  # pyright: ignore
        it.configure(none={"command": "no-such-program"}, planted={"command": "tool"}, path={"command": "./none"})
        for name, reason in (
            ("none", "The program no-such-program was not found on PATH; install it, or give its absolute path."),
            ("planted", "The program tool was not found on PATH; install it, or give its absolute path."),
            ("path", f"{root}/none is not a program that can be run; check the command."),
        ):
            await it.approved(name)
            assert (it.view(name).state, it.view(name).reason) == ("failed", reason)
            with pytest.raises(ToolError, match="cannot be used"):
                await it.call(name, "x")


async def test_a_damaged_record_of_what_was_agreed_starts_nothing(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=plain_server())
        await it.approved("sample")
        await it.servers.turn_off(it.workspace, "sample")
        path = it.home.state / "mcp" / "pins.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.write_text("{")
        assert it.view("sample").state == "failed"
        assert "pins.json cannot be read" in it.view("sample").reason
        assert any("pins.json" in problem for problem in it.servers.problems(it.workspace))


def tool(name: str, description: str = "") -> ServerTool:
    return ServerTool(name, "", description, {"type": "object"})


def test_pins_survive_and_do_not_mix(tmp_path: Path) -> None:
    ours, others = Pins(tmp_path / "mcp" / "pins.json"), Pins(tmp_path / "mcp" / "pins.json")
    listing = Listing((tool("a"), tool("b")), "do", True, False)
    ours.save("one", None, Pin("d").with_listing(listing))
    others.save("one", Path("/x"), Pin("e", off=True))
    assert ours.find("one", None) == Pin("d", False, listing.texts, listing)
    assert ours.find("one", Path("/x")) == Pin("e", off=True)
    ours.forget("one", None)
    assert others.find("one", None) == Pin()


def test_what_is_agreed_to() -> None:
    pin = Pin("d").with_listing(Listing((tool("a", "one"), tool("b")), "text"))
    assert ([each.name for each in pin.tools], pin.changed, pin.instructions) == (["a", "b"], [], "text")
    now = pin.with_listing(Listing((tool("a", "two"), tool("c")), "other"))
    assert ([each.name for each in now.tools], now.instructions) == ([], "")
    assert [each.name for each in now.changed] == ["a", "c", "(instructions)"]
    back = now.with_listing(Listing((tool("a", "one"),), "text"))
    assert ([each.name for each in back.tools], back.changed) == (["a"], [])


def test_a_tool_named_like_the_instructions_is_not_approved_with_them() -> None:
    pin = Pin("d").with_listing(Listing((), "text"))
    now = pin.with_listing(Listing((tool("(instructions)", "evil"),), "text"))
    assert ([each.name for each in now.tools], now.instructions) == ([], "text")
    assert [each.name for each in now.changed] == ["(instructions)"]


def test_each_tool_is_put_into_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view is read many times before a prompt goes out, and a schema is long."""
    names: list[str] = []
    monkeypatch.setattr(pins, "tool_text", lambda tool: names.append(tool.name) or tool.name)  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]
    listing = Listing((tool("a"), tool("b")))
    for _ in range(3):
        pin = Pin("d").with_listing(listing)
        assert (len(pin.tools), pin.changed, bool(listing.digest)) == (2, [], True)
    assert names == ["a", "b"]


def test_hidden_characters_show() -> None:
    assert "+a<U+200B>b" in difference("x", "ab\n", "a\u200bb\n")
    assert difference("x", None, "a\u202eb") == "a<U+202E>b\n"
    assert difference("x", "a\nb", "a\r\nb") != ""
