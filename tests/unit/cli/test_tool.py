"""`amanu tool`: one tool through guard and policy."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.tool import main
from support.cli_in_process import InProcessCli, fails
from support.hook_files import answer, configure_user, handler


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "shop"


READ = ["read_file", '{"path": "a.txt"}']
EDIT = ["edit_file", '{"path": "a.txt", "old_text": "two", "new_text": "zwei"}']
RUN = ["run_shell_command", '{"command": "touch hi"}']
TRY = ["run_shell_command", '{"command": "touch -c hi"}']
LOOK = ["run_shell_command", '{"command": "echo hi"}']


@pytest.mark.parametrize(
    ("arguments", "code", "found"),
    [
        (READ, 0, {"state": "succeeded", "output": "one\ntwo\n", "error": None, "diff": ""}),
        (["read_file", '{"path": "../secret.txt"}'], 1, {"state": "failed", "decision": None}),
        (["read_file", '{"path": 7}'], 1, {"state": "failed"}),
        (["nope"], 1, {"state": "failed"}),
        (EDIT, 3, {"state": "rejected"}),
        ([*EDIT, "--mode", "plan", "--yes"], 3, {"state": "rejected"}),
        ([*EDIT, "--mode", "acceptEdits"], 0, {"state": "succeeded"}),
        ([*EDIT, "--yes"], 0, {"state": "succeeded"}),
        ([*EDIT, "--allow", "@write(*.txt)"], 0, {"state": "succeeded"}),
        (RUN, 3, {"state": "rejected"}),
        (LOOK, 0, {"state": "succeeded"}),
        (TRY, 0, {"state": "succeeded"}),  # where it can change nothing
        ([*TRY, "--mode", "plan"], 0, {"state": "succeeded"}),
        ([*RUN, "--allow", "run_shell_command(touch *)"], 0, {"state": "succeeded"}),
    ],
)
def test_one_tool(shop: Path, inside: InProcessCli, arguments: list[str], code: int, found: dict[str, Any]) -> None:
    done = inside.run(main, *arguments, "--workspace", str(shop), cwd=shop.parent)
    assert done.returncode == code, done.stderr
    answer = json.loads(done.stdout)
    assert {key: answer[key] for key in found} == found
    assert "secret" not in answer["output"]
    changed = (shop / "a.txt").read_text() == "one\nzwei\n"
    assert changed == (arguments[0] == "edit_file" and code == 0)
    assert ("+zwei" in answer["diff"]) == changed or code == 3
    if code == 3:
        assert answer["decision"]["outcome"] == "denied"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "amanu tool --list"),
        (["read_file", "{"], "not JSON"),
        (["read_file", "[]"], "must be a JSON object"),
        ([*READ, "--workspace", "nowhere"], "is not a folder"),
        ([*READ, "--mode", "wild"], "invalid choice"),
    ],
)
def test_wrong_usage(shop: Path, inside: InProcessCli, arguments: list[str], said: str) -> None:
    done = inside.run(main, *arguments, cwd=shop)
    fails(done, 2, said)


def test_arguments_from_a_pipe(shop: Path, inside: InProcessCli) -> None:
    done = inside.run(main, "read_file", "-", cwd=shop, typed='{"path": "a.txt"}')
    assert json.loads(done.stdout)["output"] == "one\ntwo\n"


def test_a_bad_rule(shop: Path, inside: InProcessCli) -> None:
    done = inside.run(main, *READ, "--allow", "(((", cwd=shop)
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "invalidRule")


def test_the_list(shop: Path, inside: InProcessCli) -> None:
    tools = json.loads(inside.run(main, "--list", cwd=shop).stdout)["tools"]
    assert {"read_file", "edit_file", "run_shell_command"} <= {tool["name"] for tool in tools}
    assert all(tool["parameters"]["type"] == "object" and tool["description"] for tool in tools)


def test_the_preimage_of_an_edit_is_kept_and_nothing_else(shop: Path, inside: InProcessCli) -> None:
    kept = Path(os.environ["AMANU_HOME"]) / "state" / "tool"
    inside.run(main, *READ, cwd=shop)
    inside.run(main, *EDIT, cwd=shop)
    assert list(kept.iterdir()) == []
    inside.run(main, *EDIT, "--yes", cwd=shop)
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["read_file", '{"path": "ok.txt"}'], "No rule can allow it"),
        (["read_many_files", '{"paths": ["a.py", ".env"]}'], "No rule can allow it"),
        (["read_file", '{"path": "ok.txt"}', "--allow", "@read(.env)", "--mode", "auto"], "No rule can allow it"),
        (["write_file", '{"path": "x", "content": ""}'], "--allow '@write(x)'"),
        (["run_shell_command", '{"command": "rm -rf a.py"}'], "--allow 'run_shell_command(rm -rf a.py)'"),
    ],
)
def test_no_allow_is_promised_that_would_not_help(
    tmp_path: Path, inside: InProcessCli, arguments: list[str], said: str
) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "a.py").write_text("")
    (tmp_path / "ok.txt").symlink_to(".env")
    done = inside.run(main, *arguments, "--workspace", str(tmp_path), cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["decision"]["outcome"] == "denied" and said in answer["error"]
    assert (answer["decision"]["allow"] is None) == (said == "No rule can allow it")


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
def test_hooks_hear_of_the_call(shop: Path, inside: InProcessCli, event: str) -> None:
    replaced = answer({"hookEventName": "PostToolUse", "updatedToolOutput": "REDACTED"})
    denied = answer({"permissionDecision": "deny", "permissionDecisionReason": "not that one"})
    configure_user(**{event: [handler(denied if event == "PreToolUse" else replaced, matcher="LS")]})
    done = inside.run(main, "list_directory", '{"path": "."}', cwd=shop)
    found = json.loads(done.stdout)
    if event == "PreToolUse":
        assert (done.returncode, found["state"]) == (3, "rejected") and "not that one" in found["error"]
    else:
        assert (done.returncode, found["output"]) == (0, "REDACTED")
