"""`amanu mcp`, with a real server."""

import json
import os
import sys
from pathlib import Path

import pytest

from amanu.cli import exits, mcp
from support.cli_in_process import InProcessCli, fails
from support.mcp_harness import SUPPORT


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcessCli:
    home = Path(os.environ["AMANU_HOME"])
    (home / "config").mkdir(parents=True, mode=0o700)
    read = json.dumps([str(SUPPORT.parents[1]), sys.prefix, sys.base_prefix])
    (home / "config" / "config.toml").write_text(f"[sandbox]\nread = {read}\n")
    return InProcessCli(monkeypatch, capsys)


def test_from_adding_to_removing(cli: InProcessCli, tmp_path: Path) -> None:
    program = str(SUPPORT / "mcp_server.py")
    assert "No MCP servers are configured here" in cli.run(mcp.main, "list", cwd=tmp_path).stderr
    added = cli.run(mcp.main, "add", "sample", "--env", "A=1", "--", sys.executable, program, cwd=tmp_path)
    assert added.returncode == exits.OK, added
    assert "sample: ready" in added.stdout
    assert "echo: Repeat a text." in added.stdout
    assert "It gets the variables A as you set them." in added.stdout
    listed = json.loads(cli.run(mcp.main, "list", "--json", cwd=tmp_path).stdout)
    assert (listed["servers"][0]["state"], "echo" in listed["servers"][0]["tools"]) == ("configured", True)
    fails(cli.run(mcp.main, "add", "sample", "--", "x", cwd=tmp_path), exits.USAGE, "There is a server 'sample'")
    assert cli.run(mcp.main, "off", "sample", cwd=tmp_path).returncode == exits.OK
    assert "sample: off" in cli.run(mcp.main, cwd=tmp_path).stdout
    refused = cli.run(mcp.main, "approve", "sample", cwd=tmp_path)
    assert (refused.returncode, "use --yes" in refused.stderr) == (exits.DENIED, True)
    assert "sample: ready" in cli.run(mcp.main, "approve", "sample", "--yes", cwd=tmp_path).stdout
    assert cli.run(mcp.main, "remove", "sample", cwd=tmp_path).returncode == exits.OK
    fails(cli.run(mcp.main, "off", "sample", cwd=tmp_path), exits.USAGE, "There is no MCP server 'sample' here")


def test_one_that_runs_files_of_an_untrusted_folder_says_what_to_do(cli: InProcessCli, tmp_path: Path) -> None:
    (tmp_path / "stock.py").write_text("")
    refused = cli.run(mcp.main, "add", "stock", "--", sys.executable, "stock.py", cwd=tmp_path)
    fails(refused, exits.FAILED, "not trusted. Trust it, then approve: amanu trust add; amanu mcp approve stock")


def test_one_that_does_not_start_says_why_and_its_log_is_printed(
    cli: InProcessCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amanu.mcp import connection

    monkeypatch.setattr(connection, "BACK_OFF", (0.01,))
    program = str(SUPPORT / "hostile_mcp_server.py")
    added = cli.run(mcp.main, "add", "bad", "--", sys.executable, program, "exits", cwd=tmp_path)
    assert added.returncode == exits.FAILED
    assert "bad: failed — It ended with code 1: Error: the key is missing." in added.stdout
    assert "the key is missing" in cli.run(mcp.main, "logs", "bad", cwd=tmp_path).stdout
    assert "has written nothing" in cli.run(mcp.main, "logs", "other", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "a b", "--", "x"], "A name may have up to 40 characters"),
        (["add", "a"], "Give either --url URL, or the command after `--`."),
        (["add", "a", "--env", "A", "--", "x"], "'A' is not NAME=VALUE."),
        (["add", "a", "--url", "ftp://x"], "its url must begin with https:// or http://."),
        (["approve", "a"], "There is no MCP server 'a' here. Available: none."),
        (["import", "emacs"], "Unknown program 'emacs'. Available: claude, vscode, cursor, gemini, codex."),
        (["logs", "../x"], "A name may have up to 40 characters"),
    ],
)
def test_wrong_usage(cli: InProcessCli, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    fails(cli.run(mcp.main, *arguments, cwd=tmp_path), exits.USAGE, sentence)
    assert (
        not (Path(os.environ["AMANU_HOME"]) / "config" / "mcp.toml").exists()
        or "ftp" not in (Path(os.environ["AMANU_HOME"]) / "config" / "mcp.toml").read_text()
    )


def test_import(cli: InProcessCli, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "x"}, "two": {"type": "ws", "url": "y"}}}')
    shown = cli.run(mcp.main, "import", cwd=tmp_path)
    assert "  one: can be imported" in shown.stdout
    assert "  two: left out\n    It is a server of type ws" in shown.stdout
    assert (
        "one: imported; to approve it: amanu mcp approve one"
        in cli.run(mcp.main, "import", "claude", cwd=tmp_path).stdout
    )
    assert "one: needs your approval\n  your mcp.toml: x\n" in cli.run(mcp.main, "list", cwd=tmp_path).stdout
