"""The files that configure servers."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.config import Access, ServerConfig, ServerTable, expand
from amanu.mcp.config_files import ConfigFiles, read_file


def user_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mcp.toml"
    path.write_text(text)
    return path


def one(tmp_path: Path, text: str) -> ServerConfig:
    file = read_file(user_file(tmp_path, f"[servers.one]\n{text}"), None)
    assert file.problems == ()
    return file.servers["one"]


def test_all_keys(tmp_path: Path) -> None:
    server = one(
        tmp_path,
        """
        command = "npx"
        args = ["-y", "x"]
        cwd = "~/x"
        env = {A = "1"}
        env_pass = ["B"]
        network = false
        writes = true
        caches = ["~/.cache/x"]
        sandbox = true
        tools = {include = ["a"], exclude = ["b"]}
        start_seconds = 1
        call_seconds = 2
        idle_seconds = 3
        enabled = false
        """,
    )
    assert server.fault == ""
    assert server.access == Access(network=False, writes=True, caches=("~/.cache/x",))
    assert server.table.tools.allows("a")
    assert not server.table.tools.allows("b")
    assert not server.table.enabled


@pytest.mark.parametrize(
    ("command", "access"),
    [
        ("npx", Access(network=True, caches=("~/.npm",))),
        ("/usr/bin/uvx", Access(network=True, caches=("~/.cache/uv", "~/.local/share/uv"))),
        ("node", Access()),
    ],
)
def test_what_fetches_what_it_runs_is_proposed_what_it_needs(tmp_path: Path, command: str, access: Access) -> None:
    assert one(tmp_path, f'command = "{command}"').access == access


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it needs either a command or a url."),
        ('command = "a"\nurl = "https://b"', "it needs either a command or a url."),
        ('command = "a"\nargs = "b"', "servers.one.args in your mcp.toml: Input should be a valid tuple."),
        ('comand = "a"', "servers.one.comand in your mcp.toml: Extra inputs are not permitted."),
        ('url = "ftp://b"', "its url must begin with https:// or http://."),
        ('url = "https://u:p@b"', "its url contains a password; put it in headers."),
        ('command = "a\\u0000"', "a command cannot contain a NUL character."),
        (
            'command = "a"\nidle_seconds = 0',
            "in your mcp.toml: Input should be greater than 0.",
        ),
    ],
)
def test_a_bad_entry_says_what_is_wrong_with_it(tmp_path: Path, text: str, fault: str) -> None:
    assert one(tmp_path, text).fault.endswith(fault)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("mcp.toml", "[servers", "is not valid TOML"),
        ("mcp.toml", "servers = 5", "servers must be a table"),
        (
            "mcp.toml",
            "[mcpServers.x]",
            "mcpServers is Claude Code's key and does nothing here",
        ),
        ("mcp.toml", "sandbox = 1", "sandbox is not a known key; servers are [servers.NAME]."),
        ("mcp.toml", '[servers."a b"]\ncommand = "x"', "the server 'a b' is left out"),
        (".mcp.json", "[" * 100_000, "is not valid JSON"),
        (".mcp.json", "[]", "mcpServers must be a table"),
        (".mcp.json", '{"servers": {}}', "servers is VS Code's key"),
        (".mcp.json", "x" * 300_000, "is too big; the limit is 256 KB."),
        (".mcp.json", '{"mcpServers": {"évil": {}}}', "the server 'évil' is left out"),
    ],
)
def test_a_bad_file_says_what_is_wrong_with_it(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    file = read_file(tmp_path / name, tmp_path)
    assert not file.servers
    assert problem in file.problems[0]


def workspace(tmp_path: Path, entry: Any, name: str = ".mcp.json") -> ServerConfig:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps({"mcpServers": {"one": entry}}))
    file = ConfigFiles(tmp_path / "none.toml").workspace(tmp_path)
    return file.servers["one"]


def test_a_workspace_can_ask_for_what_runners_need_and_grant_itself_nothing(tmp_path: Path) -> None:
    server = workspace(tmp_path, {"command": "npx", "alwaysAllow": ["*"], "trust": True, "sandbox": False})
    assert (server.fault, server.access) == ("", Access(network=True, caches=("~/.npm",)))
    assert (server.source, server.root) == (".mcp.json of this workspace", tmp_path)
    assert "servers of type 'ws' are not supported" in workspace(tmp_path, {"type": "ws", "url": "x"}).fault
    (tmp_path / ".amanu").mkdir()
    for text, fault in (
        ("sandbox = false", "only your own mcp.toml can let a server run outside the sandbox."),
        ('caches = ["~"]', "only your own mcp.toml can let a server write ~."),
    ):
        (tmp_path / ".amanu" / "mcp.toml").write_text(f'[servers.one]\ncommand = "x"\n{text}')
        server = ConfigFiles(tmp_path / "none.toml").workspace(tmp_path).servers["one"]
        assert server.fault.endswith(fault)


@pytest.mark.parametrize(
    ("entry", "has_events"),
    [
        ({"url": "https://x.example/mcp"}, False),
        ({"url": "https://x.example/sse"}, True),
        ({"url": "https://x.example/v1/sse/?key=${KEY}"}, True),
        ({"url": "https://x.example/sse/mcp"}, False),
        ({"url": "https://x.example/mcp?next=/sse"}, False),
        ({"url": "https://x.example/mcp", "type": "sse"}, True),
        ({"url": "https://x.example/mcp", "transport": "sse"}, True),
        ({"url": "https://x.example/sse", "type": "http"}, False),
        ({"url": "https://x.example/sse", "type": "streamable-http"}, False),
    ],
)
def test_how_a_server_elsewhere_is_reached(tmp_path: Path, entry: dict[str, str], has_events: bool) -> None:
    config = workspace(tmp_path, entry)
    assert (config.fault, config.has_events) == ("", has_events)


def test_files_are_read_again_when_they_change_and_links_are_not_followed(tmp_path: Path) -> None:
    files = ConfigFiles(user_file(tmp_path, '[servers.a]\ncommand = "x"'))
    first = files.user()
    assert files.user() is first
    (tmp_path / "mcp.toml").write_text('[servers.bb]\ncommand = "x"')
    assert list(files.user().servers) == ["bb"]
    (tmp_path / "mcp.toml").unlink()
    assert not files.user().servers
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "other.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    (root / ".mcp.json").symlink_to(tmp_path / "other.json")
    assert not files.workspace(root).servers
    (root / ".mcp.json").unlink()
    os.mkfifo(root / ".mcp.json")
    assert "is not a file" in files.workspace(root).problems[0]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('command = "y"\nargs = ["a"]\nenv = {A = "1"}', True),
        ('command = "x"\nargs = ["b"]\nenv = {A = "1"}', True),
        ('command = "x"\nargs = ["a"]\nenv = {B = "1"}', True),
        ('command = "x"\nargs = ["a"]\nenv = {A = "1"}\nnetwork = true', True),
        ('command = "x"\nargs = ["a"]\nenv = {A = "1"}\ncwd = "/"', True),
        ('command = "x"\nargs = ["a"]\nenv = {A = "2"}', False),
        ('command = "x"\nargs = ["a"]\nenv = {A = "1"}\nidle_seconds = 5', False),
    ],
)
def test_what_a_yes_is_about(tmp_path: Path, text: str, changed: bool) -> None:
    before = one(tmp_path, 'command = "x"\nargs = ["a"]\nenv = {A = "1"}').digest
    assert (one(tmp_path, text).digest != before) == changed


def test_a_workspace_cannot_change_a_variable_either(tmp_path: Path) -> None:
    digests = {workspace(tmp_path, {"command": "x", "env": {"NODE_OPTIONS": value}}).digest for value in ("a", "b")}
    assert len(digests) == 2


def test_the_page_lists_the_keys_that_there_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(ServerTable.model_fields)


def test_variables() -> None:
    values = {"A": "1", "EMPTY": ""}
    assert expand("x${A}y${B:-two}${EMPTY:-z}$A", values) == "x1ytwoz$A"
    with pytest.raises(KeyError, match="NONE"):
        expand("${NONE}", values)
