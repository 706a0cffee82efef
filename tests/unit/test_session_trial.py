"""Sandbox first: a command runs unasked where it can change nothing, and what blocks it becomes one question."""

import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Mode, ToolCall
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample_pairs

DONE = step("Done.")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def shell(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, **more)


def only_call(d: ScriptedSession) -> ToolCall:
    (item,) = [item for item in d.session.state.items if item.kind == "toolCall"]
    return item


MODES: list[Mode] = ["ask", "acceptEdits"]
TIERS = ["bubblewrap", "landlock"]
LACK_NOTHING = [
    ("python3 -c 'print(6 * 7)'", 0),
    ("./check.sh", 3),
    ("f() { echo 42; }; f", 0),  # not understood
    ("make -s test", 0),
    ("git -c core.fsmonitor=true status --short", 0),
    ("python3 -c 'import tempfile; tempfile.TemporaryFile(); print(42)'", 0),
]
WRITE = ["echo ran > it", 'eval "echo ran > it"', "./it.sh; true"]


@pytest.mark.parametrize(
    ("tier", "line", "code", "mode"),
    [(tier, *line, mode) for (tier, line), mode in sample_pairs([*itertools.product(TIERS, LACK_NOTHING)], MODES)],
    indirect=["tier"],
)
async def test_a_command_that_lacks_nothing_asks_nothing(
    tmp_path: Path, tier: Tier, mode: Mode, line: str, code: int
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        (d.root / "check.sh").write_text("#!/bin/sh\necho 42\nexit 3\n")
        (d.root / "check.sh").chmod(0o755)
        (d.root / "Makefile").write_text("test:\n\t@echo 42\n")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        item = only_call(d)
        assert item.output.endswith(f"Exit code: {code}") and ("git" in line or "42" in item.output)
        assert item.decision is not None and item.decision.by == "rule" and item.decision.trial
        assert item.sandbox is not None and item.sandbox.writes == "nothing" and not item.sandbox.network


@pytest.mark.parametrize(
    ("tier", "line", "mode"),
    [(*each, mode) for each, mode in sample_pairs([*itertools.product(TIERS, WRITE)], MODES)],
    indirect=["tier"],
)
async def test_what_cannot_be_written_is_one_question(tmp_path: Path, tier: Tier, mode: Mode, line: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        (d.root / "it.sh").write_text("#!/bin/sh\necho ran > it\n")
        (d.root / "it.sh").chmod(0o755)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.blocked.startswith("needs to run on the workspace itself (")
        assert f"It has run, and {asked.blocked}" in [line.text for line in asked.lines]
        assert asked.sandbox is not None and asked.sandbox.writes == "workspace"
        assert not (d.root / "it").exists()
        await d.answer("allow")
        await d.over("p1")
        item = only_call(d)
        assert (d.root / "it").read_text() == "ran\n"
        assert item.state == "succeeded" and item.decision is not None and item.decision.by == "user"
        assert "denied" not in d.told().casefold() and "Read-only" not in d.told()


async def test_a_rule_that_was_kept_runs_it_at_once(tmp_path: Path, tier: Tier) -> None:
    async with scripted_session(tmp_path, step("", shell("touch one")), DONE, step("", shell("touch two")), DONE) as d:
        await d.prompt("go")
        await d.answer("allow", scope="session")
        await d.over("p1")
        await d.prompt("again", "p2")
        state = await d.over("p2")
        assert not state.approvals and (d.root / "two").exists()


async def test_refused_it_fails_with_what_it_printed(tmp_path: Path, tier: Tier) -> None:
    async with scripted_session(tmp_path, step("", shell("echo before; touch one")), DONE) as d:
        await d.prompt("go")
        await d.answer("reject", reason="leave it")
        await d.over("p1")
        item = only_call(d)
        assert (item.state, item.error) == ("rejected", "leave it")
        assert "before" in item.output and "leave it" in d.told() and "cannot touch" in d.told()
        assert not (d.root / "one").exists()


async def test_where_nobody_is_there_it_is_denied_and_names_the_flag(tmp_path: Path, tier: Tier) -> None:
    async with scripted_session(tmp_path, step("", shell("touch one")), DONE, headless=True) as d:
        await d.prompt("go")
        await d.over("p1")
        assert "--allow 'run_shell_command(touch *)'" in d.told() and "cannot touch" in d.told()
        decision = only_call(d).decision
        assert decision is not None and decision.permitted_by == "run_shell_command(touch *)"


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("rm -rf src", {}),
        ("cat .env", {}),
        ("npm install", {}),
        ("python3 -m http.server 0", {"background": True}),
        ("true; ls *", {"network": True}),
        ("git push -f", {}),
    ],
    ids=["destroys", "secret", "network", "background", "asks for more", "destroys what is elsewhere"],
)
async def test_what_is_asked_about_before_it_runs(tmp_path: Path, line: str, more: dict[str, Any]) -> None:
    needs("bwrap")
    async with scripted_session(tmp_path, step("", shell(line, **more)), DONE) as d:
        (d.root / ".env").write_text("KEY=1\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.blocked == "" and only_call(d).decision is None
        await d.answer("reject")
        await d.over("p1")


async def test_where_a_rule_forbids_commands_what_is_not_understood_is_asked_about(tmp_path: Path) -> None:
    needs("bwrap")
    (Path(os.environ["AMANU_HOME"]) / "config").mkdir(parents=True, exist_ok=True)
    rule = '[[rule]]\ndecision = "deny"\ncommand = "date *"\n'
    (Path(os.environ["AMANU_HOME"]) / "config" / "config.toml").write_text(rule)
    async with scripted_session(tmp_path, step("", shell("f() { echo 1; }; f")), DONE) as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.blocked == ""
        await d.answer("reject")
        await d.over("p1")


async def test_a_trial_takes_no_secret_out(tmp_path: Path, tier: Tier) -> None:
    line = "python3 -c 'print(open(\".env\").read())'"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / ".env").write_text("canary\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "needs files that hold secrets" in asked.blocked
        await d.answer("reject")
        await d.over("p1")
        assert "canary" not in d.told()
