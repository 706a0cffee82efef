"""A file that the user stages with `git add` counts as reviewed; nothing else does that git does."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.mcp.model import CallAnswer, CallClient
from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu.proposals import tracking
from amanu.workspace.git import staged
from amanu_protocol.requests import EditScope, PromptSendParams, ProposalUndoParams, SessionCreateParams
from support.draft_session import DONE, edit, end_daemon
from support.mcp_in_memory import Server, ServersInMemory, text_answer
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step
from support.session_client import Client, until
from unit.test_session_layer import shell as command
from unit.test_session_own_hand import ALL, CALLS, applied, looked, repository, shell, waiting

FIRST_HUNK = TWELVE.replace("line 2\n", "line two\n").replace("\n", "\\n")
HALF = (
    f"printf '{FIRST_HUNK}' | git hash-object -w --stdin | xargs -I X git update-index --cacheinfo 100644,X,notes.txt"
)
"""Stages the first of two hunks, as `git add -p` does."""

MERGE = (
    "git branch side; git commit -qam x; git stash -qu; git switch -q side; sed -i 's/^line 6$/LINE/' notes.txt;"
    "git commit -qam y; git switch -q -; git merge -q --no-commit side; git stash pop -q"
)
"""Changes other lines of a file that is staged and on disk, and is still to be concluded."""

HANDS: dict[str, Sequence[tuple[str, str]]] = {
    "one file": [("git add notes.txt", "notes --, new r, gone r, old r")],
    "all": [("git add -A", "notes --, new -, gone -, old -")],
    "a folder": [("git add gen", "notes rr, new -, gone r, old r")],
    "the deletion": [("git rm -q gone.txt", "notes rr, new r, gone -, old r")],
    "the move": [("git add old.txt name.txt", "notes rr, new r, gone r, old -")],
    "only the name": [("git add -N gen/new.txt", ALL)],
    "another file": [("echo x > x; git add x; git status", ALL)],
    "in part": [(HALF, ALL), ("git add notes.txt", "notes --, new r, gone r, old r")],
    "in part, then committed": [(HALF, ALL), ("git commit -qm half", ALL)],
    "commit of all": [("git commit -qam x", ALL), ("git add gen", "notes rr, new -, gone r, old r")],
    "commit of one": [("git commit -qm x notes.txt", ALL)],
    "staged, then committed": [
        ("git add notes.txt", "notes --, new r, gone r, old r"),
        ("git commit -qm x", "notes --, new r, gone r, old r"),
        ("git add gen", "notes --, new -, gone r, old r"),
    ],
    "committed, then soft reset": [("git commit -qam x", ALL), ("git reset -q --soft HEAD~", ALL)],
    "a merge": [(MERGE, ALL), ("git add notes.txt", ALL)],
    "staged, then changed by hand": [
        ("echo 13 >> notes.txt; git add notes.txt", "notes --, new r, gone r, old r"),
        ("echo 14 >> notes.txt", "notes --, new r, gone r, old r"),
    ],
    "changed by hand since": [("git add notes.txt; echo 13 >> notes.txt", ALL)],
    "staged and unstaged": [
        ("git add notes.txt", "notes --, new r, gone r, old r"),
        ("git reset -q", "notes --, new r, gone r, old r"),
    ],
    "nothing": [("git status; touch notes.txt; git update-index --refresh || true", ALL)],
    "an ignored file": [("echo gen > .gitignore; git add -A", "notes --, new r, gone -, old -")],
}
AGENT_ADD = "git add -A"
AGENT_COMMIT = "git add -A; git commit -qm theirs"
AFTER_AGENT: dict[str, tuple[str, Sequence[str]]] = {
    "added": (AGENT_ADD, []),
    "committed": (AGENT_COMMIT, []),
    "committed, another branch and back": (AGENT_COMMIT, ["git checkout -q HEAD~", "git checkout -q -"]),
    "committed, another branch and back at once": (AGENT_COMMIT, ["git checkout -q HEAD~; git checkout -q -"]),
    "committed, reset hard and back": (AGENT_COMMIT, ["git reset -q --hard HEAD~", "git reset -q --hard HEAD@{1}"]),
    "committed, soft reset": (AGENT_COMMIT, ["git reset -q --soft HEAD~", "git reset -q", "git add -A"]),
    "added, stashed and popped": (AGENT_ADD, ["git stash -q", "git stash pop -q"]),
    "added, stashed and popped with the index": (AGENT_ADD, ["git stash -q", "git stash pop -q --index"]),
    "added, stashed and popped at once": (AGENT_ADD, ["git stash -q; git stash pop -q --index"]),
    "added, unstaged and added": (AGENT_ADD, ["git reset -q", "git add -A"]),
}
"""Name → the agent's line, and those of the user's after it."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.05)
    monkeypatch.setattr(staged, "DELAY", 0.05)


async def compared(d: ScriptedSession) -> None:
    """All that git has staged so far was looked at."""
    await looked(d)
    await d.sessions.services.staged.look(d.root)
    await looked(d)


@pytest.mark.parametrize("hand", HANDS)
async def test_only_what_is_staged_as_it_is_is_reviewed(tmp_path: Path, hand: str) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        await compared(d)
        for line, expected in HANDS[hand]:
            shell(d.root, line)
            await compared(d)
            assert waiting(d) == expected
        states = {hunk.state for each in d.session.state.proposals for file in each.files for hunk in file.hunks}
        assert states == {"applied"}


async def test_what_is_staged_while_no_daemon_runs_is_not_until_it_is_staged_again(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        await compared(d)
        await d.sessions.close("s")
        shell(d.root, "git add notes.txt")
        await end_daemon(d)
        look = partial(d.sessions.services.staged.look, d.root)
        await look()
        shell(d.root, "git add gen")
        await look()
        await d.until(lambda _: waiting(d) == "notes rr, new -, gone r, old r")
        shell(d.root, "git reset -q")
        await look()
        shell(d.root, "git add notes.txt")
        await look()
        await d.until(lambda _: waiting(d) == "notes --, new -, gone r, old r")


@pytest.mark.layers
@pytest.mark.parametrize("where", ["copy", "workspace"])
@pytest.mark.parametrize("after", AFTER_AGENT)
async def test_what_amanu_s_own_commands_stage_is_not(tmp_path: Path, where: str, after: str) -> None:
    needs("bwrap")
    own, lines = AFTER_AGENT[after]
    if where == "workspace":
        (find_home().make().config / "config.toml").write_text("[sandbox]\nlayers = false\n")
    async with scripted_session(tmp_path, step("", *CALLS), step("", command(own)), DONE, mode="acceptEdits") as d:
        repository(d.root)
        shell(d.root, "git config user.name t; git config user.email t@example.org")
        if where == "workspace":
            for rule in rules_of("run_shell_command", "session"):
                d.session.core.approvals.allow_in_session(rule)
        await d.prompt("go")
        while not d.session.state.last_turn:
            if d.session.state.approvals:
                await d.answer("allow")
            await d.until(lambda state: state.approvals or state.last_turn)
        assert shell_output(d.root, "git diff HEAD~ --name-only" if own == AGENT_COMMIT else "git diff --cached")
        before = waiting(d)
        assert before.startswith(ALL)
        for line in ["true", *lines]:
            shell(d.root, line)
            await compared(d)
        assert waiting(d) == before


async def test_what_a_tool_of_an_mcp_server_stages_is_not(tmp_path: Path) -> None:
    async def stage(arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
        shell(root, "git add notes.txt")
        return text_answer("staged")

    root = tmp_path / "root"
    steps = [step("", *CALLS), step("", call("mcp__demo__echo", text="hi")), DONE]
    async with scripted_session(
        tmp_path, *steps, mode="acceptEdits", mcp=ServersInMemory(Server("demo", answer=stage))
    ) as d:
        root = d.root
        repository(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await compared(d)
        await d.answer("allow")
        await d.over("p1")
        await compared(d)
        assert shell_output(d.root, "git diff --cached --name-only") == "notes.txt\n"
        assert waiting(d) == ALL
        shell(d.root, "git add gen")
        await compared(d)
        assert waiting(d) == "notes rr, new -, gone r, old r"


def shell_output(root: Path, line: str) -> str:
    return subprocess.run(["bash", "-c", line], cwd=root, check=True, capture_output=True, text=True).stdout


def linked_worktree(root: Path) -> None:
    shell(root, "git worktree add -q ../linked; mv .git ../git; cp ../linked/.git .git")


def no_index(root: Path) -> None:
    (root / ".git" / "index").write_bytes(b"DIRC nothing")


@pytest.mark.parametrize("break_it", [no_index, linked_worktree])
async def test_a_repository_that_cannot_be_read_changes_nothing(
    tmp_path: Path, break_it: Callable[[Path], None]
) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        break_it(d.root)
        await applied(d)
        await compared(d)
        assert waiting(d) == ALL


async def test_kept_by_staging_is_undone_like_any_other(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await d.trust(False)
        await applied(d)
        await compared(d)
        shell(d.root, "git add -A")
        await d.until(lambda _: waiting(d) == "notes --, new -, gone -, old -")
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        assert d.file.read_text() == TWELVE and (d.root / "gone.txt").exists()
        assert not (d.root / "gen" / "new.txt").exists()


async def test_a_second_session_with_the_same_file(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        script = tmp_path / "second.json"
        script.write_text(json.dumps([step("", edit("line 6\n", "line six\n")), DONE]))
        model = f"scripted:{script}"
        params = SessionCreateParams(session_id="t", roots=[str(d.root)], mode="acceptEdits", model_id=model)
        client = Client(os.environ)
        d.sessions.connect(client)
        client.state = (await d.sessions.create(params, client)).state
        other = await d.sessions.get("t")
        await other.prompts.send(PromptSendParams(session_id="t", prompt_id="q1", text="go"), client)
        await until(other, lambda state: state.last_turn)

        def seen() -> set[str]:
            return {hunk.waits for each in other.state.proposals for file in each.files for hunk in file.hunks}

        assert seen() == {"review"}
        await compared(d)
        shell(d.root, "git add notes.txt")
        await until(other, lambda _: seen() == {""})
        await d.until(lambda _: waiting(d) == "notes --, new r, gone r, old r")
