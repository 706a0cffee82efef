"""What other programs have configured, as our tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.config_files import read_file
from amanu.mcp.imports import find_files
from amanu.mcp.user_file import add_server, remove_server
from amanu_protocol.errors import AmanuError


@pytest.mark.parametrize(
    ("program", "path", "text", "table", "notes"),
    [
        (
            "claude",
            "work/.mcp.json",
            {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "ghp_" + "a1B2" * 9}},
            {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "ghp_" + "a1B2" * 9}},
            ["The value of GITHUB_TOKEN was copied as it is: it looks like a secret."],
        ),
        (
            "claude",
            "work/.mcp.json",
            {"type": "http", "url": "https://x/mcp", "headers": {"A": "Bearer ${T}"}, "oauth": {}},
            {"url": "https://x/mcp", "headers": {"A": "Bearer ${T}"}},
            ["oauth was left out: it has no meaning here."],
        ),
        ("claude", "work/.mcp.json", {"type": "sse", "url": "https://x"}, {"url": "https://x", "type": "sse"}, []),
        (
            "claude",
            "work/.mcp.json",
            {"type": "http", "url": "https://x/sse"},
            {"url": "https://x/sse", "type": "http"},
            [],
        ),
        ("cursor", "work/.cursor/mcp.json", {"url": "https://x/sse"}, {"url": "https://x/sse"}, []),
        ("claude", "work/.mcp.json", {"type": "ws", "url": "wss://x"}, {}, ["of type ws, which is not supported"]),
        (
            "vscode",
            "work/.vscode/mcp.json",
            {"command": "${workspaceFolder}/s", "env": {"A": "${input:my key}", "B": "${env:HOME}"}, "envFile": "x"},
            {"command": "${workspaceFolder}/s", "env": {"A": "${MY_KEY}", "B": "${HOME}"}},
            [
                "envFile x was left out: write its variables into env.",
                "Set the variable MY_KEY",
            ],
        ),
        (
            "cursor",
            "home/.cursor/mcp.json",
            {"command": "a", "alwaysAllow": ["x"], "disabled": True},
            {"command": "a", "enabled": False},
            ["alwaysAllow was left out: Amanu asks until one of your rules allows a tool."],
        ),
        (
            "claude",
            "home/.config/Claude/claude_desktop_config.json",
            {"command": "a", "args": ["--port", 8080], "env": {"PORT": 8080, "DEBUG": True}, "timeout": 60},
            {"command": "a", "args": ["--port", "8080"], "env": {"PORT": "8080", "DEBUG": "true"}},
            ["timeout was left out: set call_seconds."],
        ),
        (
            "vscode",
            "home/.config/Code/User/mcp.json",
            {"command": "${userHome}/s", "args": ["${config:my.port}", "${workspaceFolder:api}/x", "${A:-b}"]},
            {"command": "${HOME}/s", "args": ["${config:my.port}", "${workspaceFolder:api}/x", "${A:-b}"]},
            [
                "${config:my.port} means nothing here: write its value instead.",
                "${workspaceFolder:api} means nothing here: write its value instead.",
            ],
        ),
        (
            "gemini",
            "home/.gemini/settings.json",
            {"command": "a", "timeout": 5000, "trust": True, "includeTools": ["x"], "env": {"A": "$B"}},
            {"call_seconds": 5.0, "tools": {"include": ["x"]}, "command": "a", "env": {"A": "${B}"}},
            ["trust was left out"],
        ),
        ("gemini", "home/.gemini/settings.json", {"httpUrl": "https://x"}, {"url": "https://x"}, []),
        ("gemini", "home/.gemini/settings.json", {"url": "https://x"}, {"url": "https://x", "type": "sse"}, []),
        ("gemini", "home/.gemini/settings.json", {"url": "https://x", "type": "http"}, {"url": "https://x"}, []),
    ],
)
def test_json_files(tmp_path: Path, program: str, path: str, text: Any, table: Any, notes: list[str]) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    key = "servers" if program == "vscode" else "mcpServers"
    file.write_text("// mine\n" + json.dumps({key: {"my server": text}})[:-1] + ",}")
    (found,) = find_files(program, tmp_path / "work", tmp_path / "home")
    assert found.problem == ""
    (server,) = found.servers
    assert server.table == table
    for note in notes:
        assert any(note in each for each in server.notes), server.notes
    if table:
        assert server.name == "my-server"
        add_server(tmp_path / "mcp.toml", server.name, server.table)
        assert read_file(tmp_path / "mcp.toml", None).servers["my-server"].fault == ""


def test_what_is_no_server_is_named(tmp_path: Path) -> None:
    text = "\ufeff" + json.dumps({"mcpServers": {"a": {"command": "x"}, "b": "npx y"}})
    (tmp_path / ".mcp.json").write_text(text, encoding="utf-8")
    (found,) = find_files("claude", tmp_path, tmp_path / "none")
    assert [(server.name, bool(server.table), server.notes) for server in found.servers] == [
        ("a", True, ()),
        ("b", False, ("It is not a table.",)),
    ]


def test_codex(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(
        """
        model = "x"
        [mcp_servers.one]
        url = "https://x"
        bearer_token_env_var = "T"
        env_http_headers = {X = "Y"}
        startup_timeout_sec = 5
        tool_timeout_sec = 9
        enabled_tools = ["a"]
        enabled = false
        """
    )
    (found,) = find_files("codex", tmp_path / "none", tmp_path)
    assert found.servers[0].table == {
        "url": "https://x",
        "headers": {"X": "${Y}", "Authorization": "Bearer ${T}"},
        "start_seconds": 5,
        "call_seconds": 9,
        "tools": {"include": ["a"]},
        "enabled": False,
    }


def test_claude_has_servers_for_one_folder_alone(tmp_path: Path) -> None:
    here = {"mcpServers": {"one": {"command": "here"}}}
    tree = {"mcpServers": {"one": {"command": "all"}, "two": {"command": "b"}}, "projects": {str(tmp_path / "w"): here}}
    (tmp_path / ".claude.json").write_text(json.dumps(tree))
    (found,) = find_files("claude", tmp_path / "w", tmp_path)
    assert [(server.name, server.table["command"]) for server in found.servers] == [("one", "here"), ("two", "b")]


def test_a_broken_file_says_so(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{")
    (found,) = find_files("claude", tmp_path, tmp_path / "none")
    assert "is not valid" in found.problem


def test_the_rest_of_our_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "mcp.toml"
    path.write_text('# mine\n[servers.one]\ncommand = "a" # why\n')
    add_server(path, "two", {"command": "b", "env": {"A": "1"}, "args": ["x"]})
    with pytest.raises(AmanuError, match="There is a server 'two'"):
        add_server(path, "two", {"command": "c"})
    assert '# mine\n[servers.one]\ncommand = "a" # why\n' in path.read_text()
    assert read_file(path, None).servers["two"].table.env == {"A": "1"}
    remove_server(path, "one")
    assert list(read_file(path, None).servers) == ["two"]
    with pytest.raises(AmanuError, match="no server 'one'"):
        remove_server(path, "one")
    path.write_text("[servers")
    with pytest.raises(AmanuError, match="is not valid TOML"):
        add_server(path, "three", {"command": "c"})
    assert path.read_text() == "[servers"
