"""Combinations that the table of places (`places.tsv`) made visible, each tried for real."""

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amanu.core.rules import RuleTable
from amanu.home import find_home
from amanu.permissions import approvals
from amanu.sandbox.self_test import Tier
from amanu.tools import environment
from amanu.tools.limits import ToolLimits
from amanu_protocol.items import CommandPlace, Mode, ToolCall
from amanu_protocol.requests import AuditQueryParams
from support.agent_session import ask_agent, complete, nested, session_with_agents
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step

pytestmark = pytest.mark.layers

DONE = step("Done.")
GIT = "git -c user.name=A -c user.email=a@b.example"


@pytest.fixture(autouse=True)
def bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


def shell(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, **more)


def commands(d: ScriptedSession) -> list[ToolCall]:
    return [item for item in d.session.state.items if isinstance(item, ToolCall)]


def place(item: ToolCall) -> CommandPlace:
    assert item.decision is not None and item.decision.place is not None
    return item.decision.place


async def only(d: ScriptedSession, tier: Tier) -> bool:
    """Have commands run in that tier. False if it does not work here."""
    sandbox = d.sessions.services.sandbox
    await sandbox.proved()  # else what is being proved now would be taken for that tier's
    sandbox._best = tier  # pyright: ignore[reportPrivateUsage]
    return (await sandbox.proved()).tier == tier


def keep_conf(d: ScriptedSession) -> Path:
    """A file that a rule of the user's guards."""
    conf = d.root / "keep" / "conf"
    conf.parent.mkdir()
    conf.write_text("precious\n")
    rule = RuleTable(decision="deny", tool="@write", path="keep/**").rule("the user's")
    d.session.approvals.allow_in_session(rule)
    return conf


@pytest.mark.parametrize("who", ["a rule", "the user"])
async def test_what_only_looks_can_be_let_out_of_the_sandbox_while_the_copy_shows_more(
    who: str, tmp_path: Path
) -> None:
    steps = [step("", shell("mkdir out; echo built > out/x")), step("", shell("cat out/x", outside=True)), DONE]
    async with scripted_session(tmp_path, *steps) as d:
        (d.root / ".gitignore").write_text("out/\n")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        if who == "a rule":
            d.session.allow("@run+unsandboxed(cat *)")
        await d.prompt("go")
        if who == "the user":
            state = await d.until(lambda state: state.approvals)
            assert any("are moved into the workspace, too: out" in line.text for line in state.approvals[0].lines)
            await d.answer("allow", grants=["unsandboxed"])
        await d.ended()
        _, looked = commands(d)
        assert (looked.state, looked.output) == ("succeeded", "built\nExit code: 0")
        assert (place(looked).base, place(looked).writes) == ("machine", False)


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "draft", "auto"])
@pytest.mark.parametrize("background", [False, True])
async def test_a_rule_that_allows_all_commands_does_not_override_rules_about_files(
    mode: Mode, background: bool, tmp_path: Path
) -> None:
    line = "python3 -c \"open('keep/conf', 'w').write('x')\"; touch other"
    steps = [step("", shell(line, background=background, wait_s=2)), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        conf = keep_conf(d)
        d.session.allow("@run")
        await d.prompt("go")
        if (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer("reject")
        await d.over("p1")
        assert conf.read_text() == "precious\n"


async def test_a_mode_that_allows_commands_leaves_open_one_that_no_copy_holds(tmp_path: Path) -> None:
    line = "echo x > keep/conf; sleep 1"
    async with scripted_session(tmp_path, step("", shell(line, background=True)), DONE) as d:
        conf = keep_conf(d)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.session.set_mode("auto")
        assert "do not hold" in d.session.state.approvals[0].rule
        await d.answer("reject")
        await d.over("p1")
        assert conf.read_text() == "precious\n"


async def test_the_users_own_line_in_auto_on_landlock_runs_in_the_workspace(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("touch two", network=True)), DONE, mode="auto") as d:
        if not await only(d, "landlock"):
            pytest.skip("Landlock does not work here")
        await d.prompt("go")
        await d.answer("allow", command="touch made")
        await d.ended()
        (item,) = commands(d)
        assert (place(item).base, place(item).writes, place(item).tried) == ("workspace", True, False)
        assert (d.root / "made").exists() and not (d.root / "two").exists()


async def test_a_sub_agents_background_command_in_a_draft_finds_it_and_leaves_nothing(tmp_path: Path) -> None:
    edit = call("write_file", path="notes.txt", content="drafted\n")
    look = shell("cat notes.txt; echo x > made.txt; echo ready; sleep 60", background=True, until="ready")
    later = shell("cat notes.txt; ls")
    worker = [step("", look), step("", later), step("", complete())]
    async with session_with_agents(
        tmp_path, {"worker": worker}, step("", edit), step("", ask_agent("worker")), DONE, mode="draft"
    ) as d:
        await d.prompt("go")
        await d.until(lambda state: len(nested(d)) >= 2 and nested(d)[1].state == "succeeded")
        job, after = nested(d)[:2]
        assert "drafted\nready" in job.output and "drafted\n" in after.output and "made.txt" not in after.output
        assert (place(job).base, place(job).then) == ("fork", "dropped")
        assert d.file.read_text() == TWELVE and not (d.root / "made.txt").exists()
        await d.session.prompts.cancel("turn-p1")
        await d.until(lambda state: state.turn is None)


async def test_a_commit_in_the_background_of_plan_mode_writes_nothing(tmp_path: Path) -> None:
    steps = [step("", shell(f"{GIT} commit -qam two", background=True, wait_s=5)), DONE]
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        subprocess.run(f"git init -q; git add .; {GIT} commit -qm one", shell=True, cwd=d.root, check=True)
        d.file.write_text("changed\n")
        await d.prompt("go")
        await d.ended()
        (item,) = commands(d)
        assert (place(item).base, place(item).writes) == ("workspace", False)
        count = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=d.root, capture_output=True, check=True)
        assert count.stdout == b"1\n"


async def test_the_audit_log_says_where_each_command_ran(tmp_path: Path) -> None:
    steps = [step("", shell("touch made")), step("", shell("touch two", network=True)), DONE]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        await d.prompt("go")
        await d.answer("allow")
        await d.ended()
        found = await d.sessions.audit_query(AuditQueryParams(session_id="s", limit=100))
        told = [entry.data["place"]["words"] for entry in found.entries if entry.kind == "decided"]  # type: ignore[index]
        copy = "on a private copy of the workspace; what it changes is proposed"
        assert told == [copy, "in the workspace"]


async def test_the_secrets_that_a_rule_showed_are_hidden_once_it_is_gone(tmp_path: Path) -> None:
    waits, reads = (
        shell("until grep -q yes go; do sleep 0.05; done"),
        shell("python3 -c \"print(open('.env').read())\""),
    )
    async with scripted_session(tmp_path, step("", waits, reads), DONE, mode="auto") as d:
        (d.root / ".env").write_text("KEY=hello\n")
        (d.root / "go").write_text("not yet")
        d.session.allow("@run(python3 *)")
        await d.prompt("go")
        await d.until(lambda _: len(commands(d)) == 2 and commands(d)[1].state == "scheduled")
        d.session.approvals._session_rules.clear()  # pyright: ignore[reportPrivateUsage]
        (d.root / "go").write_text("yes")
        if (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer("reject")
        await d.over("p1")
        assert "hello" not in d.told()


async def test_without_a_sandbox_a_variable_that_leads_elsewhere_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/etc/kube")
    (find_home(os.environ).make().config / "config.toml").write_text('[sandbox]\nwithout = "accept"\n')
    line = "KUBECONFIG=/tmp/evil; python3 show.py"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        await only(d, "none")
        (d.root / "show.py").write_text("")
        d.session.allow("@run(python3 *)")
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert [part.text for part in state.approvals[0].parts if part.decision == "ask"] == ["KUBECONFIG=/tmp/evil"]
        await d.answer("reject")
        await d.over("p1")


async def test_a_background_command_of_a_draft_that_nobody_was_asked_about_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ToolLimits", partial(ToolLimits, shell_read_only=0.3))
    steps = [step("", shell("sleep 60", background=True, wait_s=0.1)), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.jobs and state.jobs[0].state != "running" and state.last_turn)
        assert "time limit" in state.jobs[0].summary
