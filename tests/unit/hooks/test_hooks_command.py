"""`amanu hooks`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amanu.hooks import verb as hooks
from support.cli_in_process import InProcessCli, fails
from support.hook_files import answer, configure, configure_user, handler, script


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcessCli:
    return InProcessCli(monkeypatch, capsys)


def trusted(root: Path) -> None:
    from amanu.home import find_home
    from amanu.permissions.policy import unasked
    from amanu.permissions.trust_store import TrustStore

    home = find_home(os.environ).make()
    TrustStore(home.config / "trust.json", home.state / "trust", unasked, home.private).set(str(root), True)


def test_listed_agreed_to_and_changed(tmp_path: Path, inside: InProcessCli) -> None:
    line = script(tmp_path, "x.sh", "echo hello")
    configure(tmp_path, UserPromptSubmit=[handler(line)])
    shown = inside.run(hooks.main, cwd=tmp_path).stdout
    assert "Not read, because the folder is not trusted: .amanu/hooks.json." in shown
    trusted(tmp_path)
    shown = inside.run(hooks.main, "list", cwd=tmp_path).stdout
    assert "off: needs your approval" in shown and "hooks/x.sh (sha256 " in shown
    digest = next(line for line in shown.splitlines() if "amanu hooks approve" in line).split()[3]
    assert "Not run" in inside.run(hooks.main, "test", "UserPromptSubmit", cwd=tmp_path).stdout
    assert "Approved UserPromptSubmit" in inside.run(hooks.main, "approve", digest, cwd=tmp_path).stdout
    assert "hello" in inside.run(hooks.main, "test", "UserPromptSubmit", cwd=tmp_path).stdout
    [view] = [json.loads(text) for text in inside.run(hooks.main, "list", "--json", cwd=tmp_path).stdout.splitlines()]
    assert (view["state"], view["owner"]) == ("on", "workspace")
    script(tmp_path, "x.sh", "echo swapped")
    assert "changed since you approved" in inside.run(hooks.main, "list", cwd=tmp_path).stdout
    fails(inside.run(hooks.main, "approve", digest, cwd=tmp_path), 2, "No hook with the digest")
    assert "Approved" in inside.run(hooks.main, "approve", "--all", cwd=tmp_path).stdout
    assert "swapped" in inside.run(hooks.main, "test", "UserPromptSubmit", cwd=tmp_path).stdout


def test_tried_for_a_call(tmp_path: Path, inside: InProcessCli) -> None:
    denies = answer({"permissionDecision": "deny", "permissionDecisionReason": "no\x1b[2J writing"})
    configure_user(PreToolUse=[handler(denies, matcher="Write"), handler("true", matcher="Nothing")])
    arguments = ("--tool", "write_file", "--input", '{"path": "a", "content": "b"}')
    shown = inside.run(hooks.main, "test", "BeforeTool", *arguments, cwd=tmp_path).stdout
    assert "Result: deny." in shown and "\x1b" not in shown
    wants: dict[str, Any] = {"tailToolCallRequest": {"name": "read_file", "args": {}}, "unheardOf": 1}
    configure_user(PostToolUse=[handler(answer(wants))])
    shown = inside.run(hooks.main, "test", "AfterTool", *arguments, cwd=tmp_path).stdout
    assert "next call: read_file" in shown and "not supported: PostToolUse does nothing with 'unheardOf'." in shown
    configure_user(PreToolUse=[handler(denies, matcher="Write"), handler("true", matcher="Nothing")])
    assert "No hook ran" in inside.run(hooks.main, "test", "PreToolUse", cwd=tmp_path).stdout
    assert "matches no known tool" in inside.run(hooks.main, "list", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("approve",), "Give the digest of a hook"),
        (("approve", "0123"), "needs your approval"),
        (("test", "Never"), "There is no event"),
        (("test", "PreToolUse", "--input", "{"), "--input is not JSON"),
        (("test", "PreToolUse", "--input", "[]"), "--input is not a JSON object"),
        (("list", "--workspace", "/nowhere/at/all"), "is not a folder"),
    ],
)
def test_wrong_usage(tmp_path: Path, inside: InProcessCli, arguments: tuple[str, ...], sentence: str) -> None:
    fails(inside.run(hooks.main, *arguments, cwd=tmp_path), 2, sentence)
