"""What the user stages or commits counts as reviewed; what Amanu's own commands stage does not."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu.proposals import tracking
from amanu_protocol.requests import EditScope, PromptSendParams, ProposalUndoParams, SessionCreateParams
from support.draft_session import DONE, edit, end_daemon
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from support.session_client import Client, until
from unit.test_session_layer import shell as command
from unit.test_session_own_hand import ALL, CALLS, applied, looked, repository, shell, waiting

FIRST_HUNK = TWELVE.replace("line 2\n", "line two\n").replace("\n", "\\n")
HALF = (
    f"printf '{FIRST_HUNK}' | git hash-object -w --stdin | xargs -I X git update-index --cacheinfo 100644,X,notes.txt"
)
"""Stages the first of two hunks, as `git add -p` does."""

HANDS: dict[str, Sequence[tuple[str, str]]] = {
    "one file": [("git add notes.txt", "notes --, new r, gone r, old r")],
    "all": [("git add -A", "notes --, new -, gone -, old -")],
    "commit of all": [("git commit -qam x", "notes --, new r, gone -, old r")],
    "commit of one": [("git commit -qm x notes.txt", "notes --, new r, gone r, old r")],
    "a folder": [("git add gen", "notes rr, new -, gone r, old r")],
    "the deletion": [("git rm -q gone.txt", "notes rr, new r, gone -, old r")],
    "the move": [("git add old.txt name.txt", "notes rr, new r, gone r, old -")],
    "only the name": [("git add -N gen/new.txt", ALL)],
    "another file": [("echo x > x; git add x; git status", ALL)],
    "in part": [(HALF, "notes -r, new r, gone r, old r"), ("git add notes.txt", "notes --, new r, gone r, old r")],
    "staged, then changed by hand": [
        ("echo 13 >> notes.txt; git add notes.txt", "notes --, new r, gone r, old r"),
        ("echo 14 >> notes.txt", "notes --, new r, gone r, old r"),
    ],
    "staged and unstaged": [
        ("git add notes.txt", "notes --, new r, gone r, old r"),
        ("git reset -q", "notes --, new r, gone r, old r"),
    ],
    "nothing": [("git status; touch notes.txt; git update-index --refresh || true", ALL)],
    "an ignored file": [("echo gen > .gitignore; git add -A", "notes --, new r, gone -, old -")],
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.05)


async def compared(d: ScriptedSession) -> None:
    """All that git has staged so far was looked at."""
    async with d.sessions.services.staged.own():
        await looked(d)


@pytest.mark.parametrize("hand", HANDS)
async def test_what_is_staged_is_reviewed(tmp_path: Path, hand: str) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        await compared(d)
        for line, expected in HANDS[hand]:
            shell(d.root, line)
            if waiting(d) != expected:
                await d.until(lambda _, expected=expected: waiting(d) == expected)
            await compared(d)
            assert waiting(d) == expected
        states = {hunk.state for each in d.session.state.proposals for file in each.files for hunk in file.hunks}
        assert states == {"applied"}


@pytest.mark.parametrize("hand", [hand for hand in HANDS if hand != "in part"])
async def test_it_is_seen_when_the_session_is_opened_again(tmp_path: Path, hand: str) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        await compared(d)
        for line, expected in HANDS[hand]:
            await d.sessions.close("s")
            shell(d.root, line)
            await end_daemon(d)
            await d.until(lambda _, expected=expected: waiting(d) == expected)
            await compared(d)
            assert waiting(d) == expected


@pytest.mark.layers
@pytest.mark.parametrize("where", ["copy", "workspace"])
async def test_what_amanu_s_own_commands_stage_is_not(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    steps = [step("", *CALLS), step("", command("git add -A; git commit -qm theirs")), DONE]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        repository(d.root)
        shell(d.root, "git config user.name t; git config user.email t@example.org")
        if where == "workspace":
            object.__setattr__(d.session.core.services.settings.sandbox, "layers", False)
            for rule in rules_of("run_shell_command", "session"):
                d.session.core.approvals.allow_in_session(rule)
        await d.prompt("go")
        while not d.session.state.last_turn:
            if d.session.state.approvals:
                await d.answer("allow")
            await d.until(lambda state: state.approvals or state.last_turn)
        log = shell_output(d.root, "git log --format=%s -1")
        assert log == "theirs\n", [item for item in d.session.state.items if item.kind == "toolCall"][-1]
        kinds = {row.kind for proposal in d.session.state.proposals for row in proposal.rows}
        assert ("git" in kinds) == (where == "copy")
        before = waiting(d)
        assert before.startswith(ALL)
        await compared(d)
        await end_daemon(d)
        await compared(d)
        assert waiting(d) == before


def shell_output(root: Path, line: str) -> str:
    return subprocess.run(["bash", "-c", line], cwd=root, check=True, capture_output=True, text=True).stdout


async def test_what_the_user_stages_after_a_crash_is_not_taken_for_theirs(tmp_path: Path) -> None:
    """There is no note of what was staged: it stays to be reviewed, and what is staged next counts."""
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        await compared(d)
        await d.sessions.close("s")
        (d.session.core.journal.folder / "staged.json").unlink()
        shell(d.root, "git add notes.txt")
        await end_daemon(d)
        await compared(d)
        assert waiting(d) == ALL
        shell(d.root, "git add gen")
        await d.until(lambda _: waiting(d) == "notes rr, new -, gone r, old r")


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
