"""Commands run on a private copy of the workspace, and what they change is decided on like any edit."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.permissions import approvals as approval
from amanu.sandbox.layers.mount import mount_way
from amanu.tools.shell.row_changes import MAX_BASE
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import (
    EditScope,
    HunkDecision,
    ProposalResolveParams,
    ProposalUndoParams,
    RuleAddParams,
)
from support.draft_session import decide_all, results, turn
from support.loop_time import goes_on, loop_times
from support.required_programs import needs
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step
from unit.test_session_typing import Editor

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
        told = [line.text for line in asked.lines if line.tone != "plain"]  # frontends show the proposal and these
        assert told == ["No output"]
        assert tree(d.root) == before
        await d.answer(answer)
        await d.over("p1")
        after = {"notes.txt": TWO_HUNKS, "a/b/new.txt": "new\n", "pic.bin": "x\0y", "link": "-> a"}
        assert tree(d.root) == (after if answer == "allow" else before)
        (item,) = tool_calls(d)
        assert item.state == ("succeeded" if answer == "allow" else "rejected")


MANY = "mkdir big; cd big; mkfifo p; for n in {1..300}; do echo > $n; done"
SOCKET = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"a.sock\")'"


@pytest.mark.parametrize(
    ("mode", "line", "names"),
    [
        ("ask", "mkfifo p", "p"),
        ("acceptEdits", "mkfifo p; mkdir new; mkfifo new/q", "new/q, p"),
        ("acceptEdits", "mkfifo p; echo new > new.txt", "p"),
        ("draft", "mkfifo p; echo new > new.txt", "p"),
        ("acceptEdits", SOCKET, "a.sock"),
        ("acceptEdits", "rm notes.txt; mkfifo notes.txt", "notes.txt"),
        ("acceptEdits", MANY, "big/p"),
        ("acceptEdits", "mkfifo p.ignored", "p.ignored"),
        ("acceptEdits", "mkdir x.ignored; mkfifo x.ignored/p; echo > x.ignored/a", "x.ignored/p"),
    ],
)
async def test_pipes_and_sockets_that_a_command_made_are_named(
    tmp_path: Path, mode: Mode, line: str, names: str
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        (d.root / ".gitignore").write_text("*.ignored\n")
        await turn(d)
        assert f"Not kept: {names}. Pipes, sockets and devices are removed" in d.told()
        assert any("Not kept: " in str(item.output) for item in tool_calls(d))
        assert not any(stat.S_ISFIFO(path.lstat().st_mode) for path in d.root.rglob("*"))


async def test_a_change_of_many_files_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def longest(nth: int) -> float:
        monkeypatch.setenv("AMANU_HOME", str(tmp_path / f"home{nth}"))  # else it would be the session of the last try
        return await busiest_while_many_files_change(tmp_path / str(nth))

    await goes_on(longest)


async def busiest_while_many_files_change(folder: Path) -> float:
    """The longest time that the event loop was busy, in seconds."""
    folder.mkdir()
    text = "".join(f"x_{n} = 'value {n} of a file'  # with some words\n" for n in range(400))
    line = "for f in f*.py; do sed -i 's/value 7 /VALUE 7 /; s/value 350 /VALUE 350 /' $f; done"
    async with scripted_session(folder, step("", shell(line)), DONE) as d:
        for nth in range(190):
            (d.root / f"f{nth}.py").write_text(text)
        await asyncio.sleep(0)
        with loop_times() as times:
            await d.prompt("go")
            (asked,) = (await d.until(lambda state: state.approvals)).approvals
            assert "190 files changed" in asked.title
            await d.answer("allow")
            await d.over("p1")
        assert "VALUE 350" in (d.root / "f189.py").read_text()
        return max(times)


async def test_accept_edits_takes_it_at_once_and_it_can_be_undone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        state = await d.ended()
        assert d.file.read_text() == TWO_HUNKS
        hunks = [hunk for hunk in state.proposals[0].files[0].hunks]
        assert [(hunk.state, hunk.reviewed) for hunk in hunks] == [("applied", False)] * 2
        await d.session.core.proposals.undo(state.proposals[0].proposal_id, [hunk.hunk_id for hunk in hunks])
        assert d.file.read_text() == TWELVE


@pytest.mark.parametrize(("mode", "report"), [("acceptEdits", "Applied to notes.txt"), ("draft", "Drafted: notes.txt")])
async def test_only_the_model_is_told_what_the_user_sees(tmp_path: Path, mode: Mode, report: str) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE, mode=mode) as d:
        await turn(d)
        assert report in results(d)[0] and report not in tool_calls(d)[0].output


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude", "../.gitignore", "../.git/info/exclude"])
@pytest.mark.parametrize("mode", ["ask", "draft", "acceptEdits"])
async def test_what_git_ignores_needs_no_decision(tmp_path: Path, mode: Any, rules: str) -> None:
    """It is there for later commands; in the workspace where edits need no approval."""
    first, later = shell("mkdir -p out/sub && echo built > out/sub/x && echo log > run.log"), shell("cat out/sub/x")
    async with scripted_session(tmp_path, step("", first), step("", later), DONE, mode=mode) as d:
        subprocess.run(["git", "init", "-q", str(d.root.parent if rules[:2] == ".." else d.root)], check=True)
        (d.root / rules).write_text("out/\n*.log\n")
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert "built" in tool_calls(d)[1].output
        there = (d.root / "out" / "sub" / "x").exists()
        assert there == (d.root / "run.log").exists() == (mode == "acceptEdits")
        told = ["kept in this session's private copy" in call.output for call in tool_calls(d)]
        assert told == [mode != "acceptEdits", False]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("mkdir -p made/by .claude", [".claude: new folder", "made/by: new folder"]),
        ("rmdir a/b a", ["a: the folder is removed", "a/b: the folder is removed"]),
        ("chmod +x notes.txt", ["notes.txt: becomes executable"]),
        ("chmod -x run.sh", ["run.sh: is no longer executable"]),
        (f"{EDIT}; chmod +x notes.txt; mkdir new", ["notes.txt: becomes executable", "new: new folder"]),
        ("cp run.sh new.sh", ["new.sh: becomes executable"]),
    ],
)
@pytest.mark.parametrize(
    ("mode", "answer"), [("ask", "allow"), ("ask", "reject"), ("acceptEdits", ""), ("auto", ""), ("plan", "")]
)
async def test_bits_and_folders_are_decided_like_edits(
    tmp_path: Path, mode: Mode, answer: str, line: str, shown: list[str]
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        (d.root / "a" / "b").mkdir(parents=True)
        (d.root / "run.sh").write_text("echo\n")
        (d.root / "run.sh").chmod(0o755)
        before = {path: path.lstat().st_mode for path in d.root.rglob("*")}
        await d.prompt("go")
        is_protected = ".claude" in line and mode != "plan"
        if answer or is_protected:
            (asked,) = (await d.until(lambda state: state.approvals)).approvals
            assert [each for each in shown if each not in asked.detail] == []
            assert {path: path.lstat().st_mode for path in d.root.rglob("*")} == before
            await d.answer(answer or "reject")
        await d.over("p1")
        after = {path: path.lstat().st_mode for path in d.root.rglob("*")}
        is_home = answer == "allow" or (mode in ("acceptEdits", "auto") and not is_protected)
        assert (after == before) != is_home


async def test_what_is_tracked_is_decided_though_a_rule_above_the_root_ignores_it(tmp_path: Path) -> None:
    line = "echo new > out/sub/x; echo new > out/sub/y; mkdir out/more; echo built > out/more/z"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "out" / "sub").mkdir(parents=True)
        (d.root / "out" / "sub" / "x").write_text("old\n")
        subprocess.run(["git", "init", "-q", str(d.root.parent)], check=True)
        subprocess.run(["git", "add", "-f", "out/sub/x"], cwd=d.root, check=True)
        (d.root.parent / ".gitignore").write_text("out/\n")
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert [Path(file.path).name for file in d.session.state.proposals[0].files] == ["x"]
        assert (d.root / "out" / "sub" / "x").read_text() == "old\n"
        await d.answer("reject")
        await d.over("p1")


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
        ("touch notes.txt", {}),
        ("python3 -c 'import os; os.mkfifo(\"pipe\")'", {}),
        ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'", {}),
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


MADE_AGAIN = {
    "a text": ("cp notes.txt n; cat n > notes.txt; rm n", "notes.txt"),
    "a binary file": ("printf 'b\\0' > n; mv n d/b.bin", "d/b.bin"),
    "a folder": ("cp -r d /tmp/e; mv d /tmp/f; mv /tmp/e d", "d/b.bin"),
    "an empty folder": ("rmdir empty; mkdir empty", "empty/new.txt"),
}
"""A command that leaves things as they were, and a file that the user writes after it."""


@pytest.mark.parametrize("mode", ["draft", "acceptEdits"])
@pytest.mark.parametrize("kind", MADE_AGAIN)
async def test_what_a_command_made_again_hides_nothing_that_the_user_makes_of_it(
    tmp_path: Path, kind: str, mode: Mode
) -> None:
    """The next command finds it, and does not change it."""
    line, mine = MADE_AGAIN[kind]
    steps = [step("", shell(line)), DONE, step("", shell(f"grep -c mine {mine} | sed s/1/found/; mkdir -p d/in")), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        for folder in ("d/in", "empty"):
            (d.root / folder).mkdir(parents=True)
        (d.root / "d" / "b.bin").write_bytes(b"b\0")
        (d.root / "d" / "in" / "x").write_text("x\n")
        await turn(d)
        assert d.session.state.proposals == []
        (d.root / mine).write_text("mine\n")
        before = tree(d.root)
        await turn(d, "p2")
        assert results(d)[-1].startswith("found")
        assert (tree(d.root), d.session.state.proposals) == (before, [])


async def test_what_git_ignores_stays_deleted_in_a_folder_that_is_made_again(tmp_path: Path) -> None:
    steps = [step("", shell("rm -r d; mkdir d; echo x > d/x")), DONE, step("", shell("echo d/*")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("built\n")
        (d.root / "d" / "built").mkdir(parents=True)
        (d.root / "d" / "x").write_text("x\n")
        (d.root / "d" / "built" / "x.o").write_text("x\n")
        await turn(d)
        await turn(d, "p2")
        assert results(d)[-1].startswith("d/x\n")
        assert d.session.state.proposals == [] and (d.root / "d" / "built" / "x.o").exists()


async def test_what_is_staged_is_no_decision_of_its_own(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git add .")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        assert git(d.root, "status", "--porcelain") == "M  notes.txt\n"
        assert git(d.root, "diff", "--cached", "--numstat") == "2\t2\tnotes.txt\n"


@pytest.mark.parametrize("reason", ["Not this one.", "Not this one", "Why?"])
async def test_the_model_is_told_why_the_changes_are_not_wanted(tmp_path: Path, reason: str) -> None:
    async with scripted_session(tmp_path, step("", shell("git commit -qam second")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        await d.answer("reject", reason=reason)
        await d.over("p1")
        end = "?" if reason.endswith("?") else "."
        assert f"were not accepted: {reason.rstrip('.?')}{end} Unchanged: the git repository." in d.told()


@pytest.mark.parametrize("answer", ["allow", "reject"])
async def test_a_commit_comes_home_whole_or_not_at_all(tmp_path: Path, answer: str) -> None:
    async with scripted_session(tmp_path, step("", shell("git commit -qam second")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "commit: second" in asked.detail and asked.title.endswith("the git repository changed")
        assert git(d.root, "log", "--format=%s") == "first\n"
        await d.answer(answer)
        await d.over("p1")
        is_there = answer == "allow"
        assert git(d.root, "log", "--format=%s") == ("second\nfirst\n" if is_there else "first\n")
        assert git(d.root, "status", "--porcelain") == ("" if is_there else " M notes.txt\n")
        assert git(d.root, "fsck", "--strict") == ""


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("git rm -q b.txt && git add new.txt && git commit -qam all", "b.txt (deleted), new.txt (new), notes.txt"),
        ("git commit -qm one new.txt notes.txt; git add . && git commit -qam two", "new.txt (new), notes.txt"),
        ("git commit -q --allow-empty -m nothing", ""),
        ("git switch -q other", ""),
        ("git switch -q other && git commit -q --allow-empty -m nothing", ""),
    ],
)
async def test_the_files_of_a_commit_are_named(tmp_path: Path, line: str, files: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "b.txt").write_text("b\n")
        repository(d.root)
        git(d.root, "switch", "-qc", "other")
        (d.root / "other.txt").write_text("other\n")
        for words in (["add", "."], ["commit", "-qm", "other"], ["switch", "-q", "main"]):
            git(d.root, *words)
        if files:
            d.file.write_text(TWO_HUNKS)
            (d.root / "new.txt").write_text("new\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert ("Files committed: " in asked.detail) == bool(files)
        assert f"Files committed: {files}\n" in f"{asked.detail}\n" or not files
        assert "refs/heads" not in asked.detail


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


@pytest.mark.parametrize(
    "line", ["git diff --stat", "git status --short", "python3 -c 'import os; os.system(\"git diff\")'"]
)
async def test_a_look_at_the_repository_is_no_change_of_it(tmp_path: Path, line: str) -> None:
    """Git would note in its index how the files look from outside now."""
    async with scripted_session(tmp_path, step("", shell(f"sed -i 's/line 2$/2/' notes.txt && {line}")), DONE) as d:
        repository(d.root)
        for name in ("notes.txt", "other.txt"):
            (d.root / name).write_text(TWELVE)
        git(d.root, "add", ".")
        git(d.root, "commit", "-qm", "second", "--allow-empty")
        os.utime(d.root / "other.txt", (1, 1))
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert not asked.blocked and asked.title.endswith("1 file changed")
        await d.answer("reject")
        await d.over("p1")


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
        assert "The repository changed meanwhile" in d.told()


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


@pytest.mark.parametrize(
    "line",
    [
        "git config alias.x y",
        "echo x > .git/hooks/post-commit",
        "python3 -c 'import os; os.system(\"git commit --allow-empty -qm second\")'",
        "python3 -c 'import shutil; shutil.rmtree(\".git/objects\")'",
        "git add .; rm .git/index; ln -s ../notes.txt .git/index",
        "git add .; echo /tmp > .git/objects/info/alternates",
        "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
    ],
)
async def test_git_s_settings_and_hooks_are_asked_about_first(tmp_path: Path, line: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        repository(d.root)
        before = (d.root / ".git" / "config").read_bytes()
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "it changed .git/" in asked.blocked
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


# Bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "blocked"),
    [
        ("for i in $(seq 1500); do echo x > f$i.txt; done", "it changed more than 200 files"),
        ("mkdir d && ln -s / d/root && echo x > d/root/x 2>/dev/null; rm -rf sub && ln -s /etc sub", ""),
        ('python3 -c \'import os; os.mkfifo("p"); os.truncate(os.open("big", 66), 10 << 30)\'; ls', ""),
        ("printf x > $'new\\nline'; ln notes.txt hard", ""),
        ("chmod 000 sub; chmod 0 sub/deep 2>/dev/null; mkdir -m 000 closed", ""),
        ('python3 -c \'import os; [os.mkdir("d" * 20) or os.chdir("d" * 20) for _ in range(150)]\'', "too"),
    ],
    ids=["many files", "folder for a link", "pipe and 10 GB", "odd name and hard link", "no rights", "deep"],
)
async def test_whatever_it_leaves_the_workspace_stays_whole(tmp_path: Path, line: str, blocked: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "sub" / "deep").mkdir(parents=True)
        (d.root / "sub" / "deep" / "kept.txt").write_text("kept\n")
        before = tree(d.root)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert tree(d.root).items() >= before.items()
        for asked in state.approvals:
            assert (asked.blocked != "") == (blocked != "")
            await d.answer("reject")
        await d.over("p1")
        assert tree(d.root).items() >= before.items()
        assert {name for name in tree(d.root) if name not in before} <= {"closed", "d"}


async def test_a_command_that_finds_the_layer_s_disk_full_is_told_so(tmp_path: Path) -> None:
    """And what it filled it with is gone at once: the next command has room."""
    if mount_way().own_user_namespace:
        pytest.skip("only root can mount a small file system")
    lines = ["head -c 4000000 /dev/zero > a.bin", "head -c 1000000 /dev/zero > b.bin"]
    (layers := find_home().layers).mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "amanu-tests", str(layers)], check=True)
    try:
        async with scripted_session(tmp_path, *[step("", shell(line)) for line in lines], DONE) as d:
            await d.prompt("go")
            (asked,) = (await d.until(lambda state: state.approvals)).approvals
            assert "it filled the disk" in asked.blocked
            await d.answer("reject")
            await d.until(lambda state: any("b.bin: new binary file" in asked.detail for asked in state.approvals))
            assert "The command filled the disk that holds its private copy" in d.told()
            await d.answer("allow")
            await d.over("p1")
            assert {name: len(text) for name, text in tree(d.root).items()} == {
                "notes.txt": len(TWELVE),
                "b.bin": 1_000_000,
            }
    finally:
        subprocess.run(["umount", str(layers)], check=True)


async def test_a_cancelled_command_leaves_nothing(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", shell(f"{EDIT}; sleep 60")), step("", shell("cat notes.txt")), DONE
    ) as d:
        turn_id = await d.prompt("go")
        await d.until(lambda state: any(item.kind == "toolCall" and item.state == "executing" for item in state.items))
        await asyncio.sleep(0.3)
        assert (await d.session.prompts.cancel(turn_id or "")).status == "cancelled"
        assert tree(d.root) == {"notes.txt": TWELVE}
        await d.prompt("again", "p2")
        await d.over("p2")
        assert "line two" not in tool_calls(d)[-1].output


# What the user types ---------------------------------------------------------------------------------


async def test_unsaved_text_is_what_it_sees_and_never_its_change(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("cat notes.txt; " + EDIT)), DONE) as d:
        editor = Editor(d)
        editor.type(4, "typed\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "typed" in tool_calls(d)[0].output and "+typed" not in asked.detail
        assert [hunk.new_text for hunk in d.session.state.proposals[0].files[0].hunks] == [
            "line two\n",
            "line eleven\n",
        ]
        await d.answer("allow")
        await d.over("p1")
        assert editor.text == TWO_HUNKS.replace("line 5\n", "typed\nline 5\n")
        assert d.file.read_text() == TWELVE, "it is the user who saves"


async def test_what_is_typed_while_it_runs_is_not_written_over(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("echo begun; sleep 1; " + EDIT)), DONE) as d:
        editor = Editor(d)
        editor.type(4, "typed\n")
        await d.prompt("go")
        await d.until(lambda state: any(item.kind == "toolCall" and "begun" in item.output for item in state.items))
        editor.type(6, "more\n")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals and "Changed in the workspace while the command ran" in d.told()
        assert "typed\n" in editor.text and "more\n" in editor.text


async def test_a_commit_has_what_is_saved_alone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git commit -qam second")), DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        editor = Editor(d)
        editor.type(4, "typed\n")
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert git(d.root, "show", "HEAD:notes.txt") == TWO_HUNKS and "typed\n" in editor.text


# Ways around the decision -----------------------------------------------------------------------------


async def played(
    tmp_path: Path, *lines: str, mode: Any = "ask", answers: str = "reject", **files: str
) -> dict[str, str]:
    """The workspace after those lines, each asked about and answered so."""
    async with scripted_session(tmp_path, *[step("", shell(line)) for line in lines], DONE, mode=mode) as d:
        for name, content in files.items():
            path = d.root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        await d.prompt("go")
        while (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer(answers)
        return tree(d.root)


IGNORE = ".vscode/*\n.amanu/*\nvendor/\ndata/\n"


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
async def test_protected_files_do_not_come_home_as_ignored_ones(tmp_path: Path, mode: Any) -> None:
    line = "mkdir -p .vscode .amanu vendor/lib/.git/hooks && echo x | tee .vscode/tasks.json .amanu/config.toml "
    line += f"vendor/lib/.git/hooks/pre-commit vendor/lib/.env vendor/lib/a.c; {EDIT}"
    after = await played(tmp_path, line, mode=mode, answers="reject", _dot_gitignore=IGNORE)
    assert {
        name for name in after if name.split("/")[-1] in ("tasks.json", "config.toml", "pre-commit", ".env")
    } == set()


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
@pytest.mark.parametrize("answer", ["allow", "reject"])
async def test_nothing_ignored_is_deleted_or_written_over(tmp_path: Path, mode: Any, answer: str) -> None:
    lines = ["python3 -c 'import shutil; shutil.rmtree(\"data\")'", f"mkdir -p data; {EDIT}", "sleep 0; touch x.txt"]
    after = await played(tmp_path, *lines, mode=mode, answers=answer, _dot_gitignore=IGNORE, data__kept="mine\n")
    assert after["data/kept"] == "mine\n"


async def test_a_deleted_folder_is_a_deletion_of_each_of_its_files(tmp_path: Path) -> None:
    """As long as the user has something else in it, none of them is made."""
    line = "python3 -c 'import shutil; shutil.rmtree(\"src\")'"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "src" / "deep").mkdir(parents=True)
        (d.root / "src" / "deep" / "a.py").write_text("a = 1\n")
        (d.root / "src" / "b.bin").write_bytes(b"\0\1")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "src/b.bin: deleted" in asked.detail and "-a = 1" in asked.detail
        (d.root / "src" / "new.py").write_text("the user's\n")
        before = tree(d.root)
        await d.answer("allow")
        await d.over("p1")
        assert tree(d.root) == before
        (d.root / "src" / "new.py").unlink()
        await decide_all(d, "accept")
        assert tree(d.root) == {"notes.txt": TWELVE} and not (d.root / "src").exists()


async def test_what_cannot_be_undone_is_asked_about_in_accept_edits(tmp_path: Path) -> None:
    line = "printf 'x\\0y' > pic.bin; printf 'x\\0y' > big.bin"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="acceptEdits") as d:
        (d.root / "pic.bin").write_bytes(b"\0mine")
        with (d.root / "big.bin").open("wb") as file:
            file.truncate(MAX_BASE + 1)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "pic.bin: binary file, 5 → 3 bytes" in asked.detail and "Amanu cannot undo this change" in asked.detail
        assert [line for line in asked.lines if "cannot undo" in line.text]
        await d.answer("reject")
        await d.over("p1")
        assert (d.root / "pic.bin").read_bytes() == b"\0mine"
        assert (d.root / "big.bin").stat().st_size == MAX_BASE + 1


async def test_a_replaced_binary_needs_no_question_where_it_can_be_undone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("printf 'x\\0y' > pic.bin")), DONE, mode="acceptEdits") as d:
        (d.root / "pic.bin").write_bytes(b"\0mine")
        await d.prompt("go")
        state = await d.ended()
        assert (d.root / "pic.bin").read_bytes() == b"x\0y"
        assert [(row.state, row.reviewed) for row in state.proposals[0].rows] == [("applied", False)]
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope(turn_id="turn-p1")))
        assert (d.root / "pic.bin").read_bytes() == b"\0mine"


async def test_of_modes_only_executable_bits_change(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("chmod 777 notes.txt; chmod 000 b.txt")), DONE) as d:
        (d.root / "b.txt").write_text("b\n")
        d.file.chmod(0o640)
        (d.root / "b.txt").chmod(0o644)
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert stat.S_IMODE(d.file.stat().st_mode) == 0o750
        assert stat.S_IMODE((d.root / "b.txt").stat().st_mode) == 0o644


async def test_a_file_that_git_tracks_is_reviewed_though_a_rule_ignores_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(EDIT)), DONE) as d:
        (d.root / ".gitignore").write_text("*.txt\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.proposal_id is not None
        await d.answer("reject")
        await d.over("p1")


async def test_a_refused_commit_is_gone(tmp_path: Path) -> None:
    lines = [shell("git commit -qam second"), shell("git add .")]
    async with scripted_session(tmp_path, *[step("", each) for each in lines], DONE) as d:
        repository(d.root)
        d.file.write_text(TWO_HUNKS)
        await d.prompt("go")
        await d.answer("reject")
        await d.over("p1")
        assert git(d.root, "log", "--format=%s") == "first\n"
        assert git(d.root, "status", "--porcelain") == "M  notes.txt\n"


async def test_a_layer_that_broke_is_made_anew(tmp_path: Path) -> None:
    deep = 'python3 -c \'import os; [os.mkdir("d" * 200) or os.chdir("d" * 200) for _ in range(30)]\''
    after = await played(tmp_path, deep, "echo hi > x.txt", answers="allow")
    assert after["x.txt"] == "hi\n"


async def test_more_than_can_be_reviewed_is_no_other_command_s(tmp_path: Path) -> None:
    many = "for i in $(seq 800); do echo x > f$i.txt; done"
    async with scripted_session(tmp_path, step("", shell(many)), step("", shell("echo hi > x.txt")), DONE) as d:
        await d.prompt("go")
        await d.answer("reject")
        await d.until(lambda state: state.approvals and ": 1 file changed" in state.approvals[0].title)
        await d.answer("allow")
        await d.over("p1")
        assert tree(d.root) == {"notes.txt": TWELVE, "x.txt": "hi\n"}


async def test_a_program_s_words_do_not_ask_to_leave_the_sandbox(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("sh say.sh")), DONE) as d:
        (d.root / "say.sh").write_text("echo gh auth login needed; exit 1\n")
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals


@pytest.mark.place
async def test_a_formatter_s_run_over_a_project_is_one_review(tmp_path: Path) -> None:
    """Twenty files with three places each; two hunks are rejected."""
    ugly = "def f( a ):\n    return a\n" + "x = 1\n" * 12 + "def g( b ):\n    return b\n"
    line = f"{sys.executable} -m ruff format --isolated ."
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        for number in range(20):
            (d.root / f"m{number:02}.py").write_text(ugly)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        (asked,), (proposal,) = state.approvals, state.proposals
        assert ": 20 files changed" in asked.title and "20 files reformatted" in asked.detail
        hunks = [(file, hunk) for file in proposal.files for hunk in file.hunks]
        assert len(proposal.files) == 20 and len(hunks) == 60
        refused = {hunks[0][1].hunk_id, hunks[59][1].hunk_id}
        decisions = [
            HunkDecision(hunk_id=hunk.hunk_id, decision="reject" if hunk.hunk_id in refused else "accept")
            for _, hunk in hunks
        ]
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=decisions
        )
        await d.session.edits.resolve(params)
        await d.over("p1")
        formatted = [(d.root / f"m{number:02}.py").read_text() for number in range(20)]
        assert [text.count("( ") for text in formatted] == [1, *[0] * 18, 1]


ADDED = "printf 'x\\0y' > logo.bin"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ([EDIT], []),
        ([f"{EDIT}; {ADDED}; mkdir new"], []),
        ([f"{EDIT}; chmod +x texts/a.txt"], []),
        ([f"{EDIT}; echo x > run.sh; chmod +x run.sh"], []),  # goes with its file
        ([f"{EDIT}; rmdir -p deep/er; rm old/pic.bin; rmdir old"], []),
        ([f"{EDIT}; printf 'x\\0' > old/pic.bin; ln -s a link"], []),
        ([f"{EDIT}; rm texts/a.txt; rmdir texts"], []),  # comes back with its file
        ([EDIT, "git commit -qam later"], []),
        ([EDIT, "git branch topic"], []),
        ([EDIT, "rm -r texts"], ["what `rm -r texts` changed"]),  # allowed to work in the workspace itself
    ],
)
async def test_undo_names_what_it_leaves(tmp_path: Path, lines: list[str], left: list[str]) -> None:
    steps = [step("", shell(line)) for line in lines]
    async with scripted_session(tmp_path, *steps, DONE) as d:
        for folder in ("deep/er", "old", "texts"):
            (d.root / folder).mkdir(parents=True)
        (d.root / "old" / "pic.bin").write_bytes(b"a\0b")
        (d.root / "texts" / "a.txt").write_text("a\n")
        repository(d.root)
        before = {path: path.lstat().st_mode for path in d.root.rglob("*") if ".git" not in path.parts}
        await d.prompt("go")
        for _ in lines:
            await d.answer("allow")
            await d.until(lambda state: not state.approvals)
        await d.over("p1")
        undo = ProposalUndoParams(session_id="s", scope=EditScope(turn_id="turn-p1"))
        note = (await d.session.edits.undo(undo)).note
        assert d.file.read_text() == TWELVE
        after = {path: path.lstat().st_mode for path in d.root.rglob("*") if ".git" not in path.parts}
        assert after == before or "rm -r" in lines[-1]
        assert (d.root / "old" / "pic.bin").read_bytes() == b"a\0b"
        assert [name for name in left if name not in note] == [] and bool(note) == bool(left)
        assert note.count(",") == max(0, len(left) - 1)
        one = ProposalUndoParams(session_id="s", scope=EditScope(path=str(d.file)), dry_run=True)
        assert (await d.session.edits.undo(one)).note == ""


async def test_an_ignored_file_with_the_name_dash_stays_in_the_layer(tmp_path: Path) -> None:
    """Its note has told the model that later commands see it."""
    made = shell("echo built > out/-; echo other > out/x")
    async with scripted_session(tmp_path, step("", made), step("", shell("cat out/x out/-")), DONE, mode="draft") as d:
        (d.root / "out").mkdir()
        (d.root / "out" / ".gitignore").write_text("*\n!.gitignore\n")
        git(d.root, "init", "-q")
        await d.prompt("go")
        await d.over("p1")
        first, second = results(d)
        assert "later commands see it: out/-, out/x" in first
        assert second.startswith("other\nbuilt\n")


async def test_a_rule_that_denies_packed_refs_holds_for_a_branch_that_is_deleted(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("git branch -D old")), DONE, mode="auto") as d:
        repository(d.root)
        git(d.root, "branch", "old")
        git(d.root, "pack-refs", "--all")
        await d.sessions.rules.add(RuleAddParams(decision="deny", rule="write_file(.git/packed-refs)"))
        before = (d.root / ".git" / "packed-refs").read_text()
        await d.prompt("go")
        await d.over("p1")
        assert (d.root / ".git" / "packed-refs").read_text() == before


async def test_what_a_command_touched_is_newer_for_the_next_one(tmp_path: Path) -> None:
    built = shell("touch notes.txt")
    asks = shell("test notes.txt -nt built.o && echo rebuild")
    async with scripted_session(tmp_path, step("", built), step("", asks), DONE, mode="draft") as d:
        (d.root / "built.o").write_text("o")
        os.utime(d.file, (1e9, 1e9))
        git(d.root, "init", "-q")
        await d.prompt("go")
        await d.over("p1")
        assert "rebuild" in results(d)[-1]
