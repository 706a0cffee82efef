"""Combinations that the table of places (`places.tsv`) made visible, each tried for real."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from amanu.core.rules import RuleTable
from amanu.permissions import approvals
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


def keep_conf(d: ScriptedSession) -> Path:
    """A file that a rule of the user's guards."""
    conf = d.root / "keep" / "conf"
    conf.parent.mkdir()
    conf.write_text("precious\n")
    rule = RuleTable(decision="deny", tool="@write", path="keep/**").rule("the user's")
    d.session.approvals.allow_in_session(rule)
    return conf


async def test_what_only_looks_can_be_let_out_of_the_sandbox_while_the_copy_shows_more(tmp_path: Path) -> None:
    steps = [step("", shell("mkdir out; echo built > out/x")), step("", shell("cat notes.txt", outside=True)), DONE]
    async with scripted_session(tmp_path, *steps) as d:
        (d.root / ".gitignore").write_text("out/\n")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        d.session.allow("@run+unsandboxed(cat *)")
        await d.prompt("go")
        await d.ended()
        _, looked = commands(d)
        assert (looked.state, looked.output.startswith("line 1\n")) == ("succeeded", True)
        assert (place(looked).base, place(looked).writes) == ("machine", False)


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "draft", "auto"])
@pytest.mark.parametrize("background", [False, True])
async def test_a_rule_that_allows_all_commands_passes_no_rule_about_files_by(
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


async def test_a_mode_that_allows_commands_does_not_answer_for_one_that_no_copy_holds(tmp_path: Path) -> None:
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
        d.sessions.services.sandbox._best = "landlock"  # pyright: ignore[reportPrivateUsage]
        if (await d.sessions.services.sandbox.proved()).tier != "landlock":
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
