"""Commands run on a private copy of the workspace, and what they change is decided on like any edit."""

import asyncio
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.items import ToolCall
from support.required_programs import needs
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step

pytestmark = pytest.mark.layers

DONE = step("Done.")
EDIT = "sed -i 's/line 2$/line two/; s/line 11$/line eleven/' notes.txt"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def shell(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, **more)


def tool_calls(d: ScriptedSession) -> list[ToolCall]:
    return [item for item in d.session.state.items if item.kind == "toolCall"]


def tree(root: Path) -> dict[str, str]:
    """Relative path → content, or "/" for an empty folder."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and not name.startswith(".git/"):
            found[name] = path.read_bytes().decode("latin-1")
        elif path.is_dir() and not any(path.iterdir()):
            found[name] = "/"
    return found


async def test_in_ask_its_changes_are_a_proposal_decided_hunk_by_hunk(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT + "; echo said")), DONE) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        (asked,) = state.approvals
        assert asked.proposal_id is not None and ": 1 file changed" in asked.title and "It ended: said" in asked.detail
        assert d.file.read_text() == TWELVE
        await d.decide("accept", "reject not this one")
        await d.over("p1")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        told = d.told()
        assert "said" in told and "not this one" in told and "1 of 2 changes applied" in told


@pytest.mark.parametrize("answer", ["allow", "reject"])
async def test_the_whole_of_it_is_taken_or_left(tmp_path: Path, answer: str) -> None:
    line = f"{EDIT}; rm old.txt; mkdir -p a/b && printf 'new\\n' > a/b/new.txt; printf 'x\\0y' > pic.bin; ln -s a link"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "old.txt").write_text("old\n")
        before = tree(d.root)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "pic.bin: new binary file, 3 bytes" in asked.detail and "link: link to a" in asked.detail
        told = [line.text for line in asked.lines if line.tone != "plain"]  # frontends show the diff and these
        assert told == ["It ended: no output", "link: link to a", "pic.bin: new binary file, 3 bytes"]
        assert tree(d.root) == before
        await d.answer(answer)
        await d.over("p1")
        after = {"notes.txt": TWO_HUNKS, "a/b/new.txt": "new\n", "pic.bin": "x\0y", "link": "-> a"}
        assert tree(d.root) == (after if answer == "allow" else before)
        (item,) = tool_calls(d)
        assert item.state == ("succeeded" if answer == "allow" else "rejected")


async def test_accept_edits_takes_it_at_once_and_it_can_be_undone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        state = await d.ended()
        assert d.file.read_text() == TWO_HUNKS
        hunks = [hunk for hunk in state.proposals[0].files[0].hunks]
        assert [(hunk.state, hunk.reviewed) for hunk in hunks] == [("applied", False)] * 2
        await d.session.core.proposals.undo(state.proposals[0].proposal_id, [hunk.hunk_id for hunk in hunks])
        assert d.file.read_text() == TWELVE


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
async def test_what_git_ignores_needs_no_decision(tmp_path: Path, mode: Any) -> None:
    """It is there for later commands; in the workspace where edits need no approval."""
    first, later = shell("mkdir -p out/sub && echo built > out/sub/x && echo log > run.log"), shell("cat out/sub/x")
    async with scripted_session(tmp_path, step("", first), step("", later), DONE, mode=mode) as d:
        (d.root / ".gitignore").write_text("out/\n*.log\n")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert "built" in tool_calls(d)[1].output
        there = (d.root / "out" / "sub" / "x").exists()
        assert there == (d.root / "run.log").exists() == (mode == "acceptEdits")
        assert ("kept in this session's private copy" in d.told()) == (mode == "ask")


async def test_an_allowed_command_finds_what_an_earlier_one_built(tmp_path: Path) -> None:
    first, later = shell("mkdir out; echo built > out/x"), shell("cat out/x > copy.txt", network=True)
    async with scripted_session(tmp_path, step("", first), step("", later), DONE) as d:
        (d.root / ".gitignore").write_text("out/\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert not (d.root / "out").exists()
        await d.answer("allow", digest=asked.digest)
        await d.over("p1")
        assert (d.root / "copy.txt").read_text() == (d.root / "out" / "x").read_text() == "built\n"


async def test_auto_takes_it_at_once_and_it_can_be_undone(tmp_path: Path) -> None:
    line = f"{EDIT}; printf 'x\\0y' > pic.bin; git commit -qam second"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="auto") as d:
        repository(d.root)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert d.file.read_text() == TWO_HUNKS and (d.root / "pic.bin").read_bytes() == b"x\0y"
        assert git(d.root, "log", "--format=%s") == "second\nfirst\n"
        (proposal,) = state.proposals
        ids = [hunk.hunk_id for hunk in proposal.files[0].hunks]
        await d.session.core.proposals.undo(proposal.proposal_id, ids)
        assert d.file.read_text() == TWELVE


async def test_the_yes_to_its_changes_brings_home_what_git_ignores(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(f"{EDIT}; mkdir out; echo built > out/x")), DONE) as d:
        (d.root / ".gitignore").write_text("out/\n")
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "out" / "x").read_text() == "built\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("mkdir empty", {"empty": "/"}),
        ("chmod +x notes.txt", {}),
        ("touch notes.txt", {}),
        ("python3 -c 'import os; os.mkfifo(\"pipe\")'", {}),
        ("echo x > new.txt; rm new.txt", {}),
        ("cp notes.txt t && mv t notes.txt", {}),
    ],
)
async def test_what_is_no_decision_of_its_own(tmp_path: Path, line: str, after: dict[str, str]) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals and tool_calls(d)[0].state == "succeeded"
        assert tree(d.root) == {"notes.txt": TWELVE, **after}
        assert bool(d.file.stat().st_mode & stat.S_IXUSR) == ("chmod" in line)


async def test_it_sees_the_undecided_edits_of_its_step(tmp_path: Path) -> None:
    """So the user knows what the tests say of a change before they decide on it."""
    edit = call("write_file", path="notes.txt", content=TWO_HUNKS)
    async with scripted_session(tmp_path, step("", edit, shell("cat notes.txt")), DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.until(lambda state: any(item.kind == "toolCall" and "two" in item.output for item in state.items))
        assert d.file.read_text() == TWELVE and len(d.session.state.approvals) == 1
        await d.answer("reject")
        await d.over("p1")
        assert d.file.read_text() == TWELVE


async def test_what_changed_meanwhile_is_never_written_over(tmp_path: Path) -> None:
    script = 'import time; t = open("notes.txt").read(); time.sleep(0.6); open("notes.txt", "w").write(t + "more")'
    async with scripted_session(tmp_path, step("", shell(f"python3 -c '{script}'")), DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: any(item.kind == "toolCall" and item.state == "executing" for item in state.items))
        await asyncio.sleep(0.25)
        d.file.write_text("the user was here\n")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert d.file.read_text() == "the user was here\n"
        assert "Changed in the workspace while the command ran" in d.told()


# Git ----------------------------------------------------------------------------------------------


def repository(root: Path) -> None:
    """With everything committed."""
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(root, *line.split())


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


async def test_what_is_staged_is_no_decision_of_its_own(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git add .")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert git(d.root, "status", "--porcelain") == "M  notes.txt\n"
        assert git(d.root, "diff", "--cached", "--numstat") == "2\t2\tnotes.txt\n"


@pytest.mark.parametrize("answer", ["allow", "reject"])
@pytest.mark.parametrize(
    "line", ["git commit -qam second", "python3 -c 'import os; os.system(\"git commit -qam second\")'"]
)
async def test_a_commit_comes_home_whole_or_not_at_all(tmp_path: Path, line: str, answer: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "commit: second" in asked.detail and asked.title.endswith("git's history changed")
        assert git(d.root, "log", "--format=%s") == "first\n"
        await d.answer(answer)
        await d.over("p1")
        is_there = answer == "allow"
        assert git(d.root, "log", "--format=%s") == ("second\nfirst\n" if is_there else "first\n")
        assert git(d.root, "status", "--porcelain") == ("" if is_there else " M notes.txt\n")
        assert git(d.root, "fsck", "--strict") == ""


async def test_the_answer_to_a_commit_can_be_kept(tmp_path: Path) -> None:
    commits = [shell(f"git commit --allow-empty -qm {name}") for name in ("second", "third")]
    async with scripted_session(tmp_path, *[step("", each) for each in commits], DONE) as d:
        repository(d.root)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert [offer.rule for offer in asked.scopes][1] == "run_shell_command(git commit *)"
        await d.answer("allow", scope="session")
        await d.over("p1")
        assert git(d.root, "log", "--format=%s") == "third\nsecond\nfirst\n"


async def test_a_switch_brings_files_and_branch_together(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git switch -q other")), DONE) as d:
        repository(d.root)
        git(d.root, "switch", "-qc", "other")
        d.file.write_text(TWO_HUNKS)
        git(d.root, "commit", "-qam", "second")
        git(d.root, "switch", "-q", "main")
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == TWO_HUNKS
        assert git(d.root, "branch", "--show-current") == "other\n"
        assert git(d.root, "status", "--porcelain") == ""


async def test_git_s_history_is_left_where_the_repository_has_moved(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git commit -qam second")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        git(d.root, "commit", "-qam", "the user's")
        await d.answer("allow")
        await d.over("p1")
        assert git(d.root, "log", "--format=%s") == "the user's\nfirst\n"
        assert "The repository has changed meanwhile" in d.told()


async def test_a_hook_that_fails_fails_the_commit(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git commit -qam second")), DONE) as d:
        repository(d.root)
        hook = d.root / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho refused by the hook >&2\nexit 1\n")
        hook.chmod(0o755)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        await d.over("p1")
        assert "refused by the hook" in d.told()
        assert git(d.root, "log", "--format=%s") == "first\n"


@pytest.mark.parametrize("line", ["git config alias.x y", "echo x > .git/hooks/post-commit"])
async def test_git_s_settings_and_hooks_are_asked_about_first(tmp_path: Path, line: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        repository(d.root)
        before = (d.root / ".git" / "config").read_bytes()
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "it changed git's own" in asked.blocked
        assert (d.root / ".git" / "config").read_bytes() == before
        await d.answer("reject")
        await d.over("p1")


async def test_protected_files_are_asked_about_in_every_mode(tmp_path: Path) -> None:
    line = "mkdir -p .vscode && echo '{}' > .vscode/tasks.json"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.proposal_id is not None and not (d.root / ".vscode").exists()
        await d.answer("reject")
        await d.over("p1")
        assert not (d.root / ".vscode" / "tasks.json").exists()


async def test_a_failed_command_leaves_what_it_changed_to_the_user_as_well(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(f"{EDIT}; exit 3")), DONE) as d:
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == TWO_HUNKS and tool_calls(d)[0].state == "failed"


async def test_what_was_blocked_leaves_nothing(tmp_path: Path) -> None:
    line = f"{EDIT}; echo 'Could not resolve host: example.org' >&2; exit 6"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.likely_grants == ["network"] and asked.proposal_id is None
        await d.answer("reject")
        await d.over("p1")
        assert tree(d.root) == {"notes.txt": TWELVE}


async def test_nobody_there_names_the_flag(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE, headless=True) as d:
        await d.prompt("go")
        await d.over("p1")
        assert d.file.read_text() == TWELVE
        assert "--allow '@write(notes.txt)'" in d.told()
