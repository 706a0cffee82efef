"""A yes to a commit brings its text and the commit home together or neither, whatever became of the repository."""

import errno
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu.workspace.git.folder import GitFolder
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import ApprovalResolveParams, PromptSendParams, SessionCreateParams
from support.draft_session import DONE
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from support.session_client import Client, until
from unit.test_session_layer import git, shell

pytestmark = pytest.mark.layers

COMMIT = shell("echo mine >> notes.txt && git commit -qam mine")
WITH_MINE = f"{TWELVE}mine\n"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def repository(root: Path) -> None:
    (root / "b.txt").write_text("b\n")
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(root, *line.split())


def commits(root: Path) -> list[str]:
    return git(root, "log", "--format=%s").split()


def user_commits(root: Path) -> None:
    (root / "b.txt").write_text("the user's\n")
    git(root, "commit", "-qam", "users")


def last_call(session: Session) -> ToolCall:
    return [item for item in session.state.items if isinstance(item, ToolCall)][-1]


async def asked(d: ScriptedSession) -> None:
    await d.prompt("go")
    await d.until(lambda state: state.approvals)


@asynccontextmanager
async def asked_to_commit(tmp_path: Path, command: dict[str, Any] = COMMIT) -> AsyncGenerator[ScriptedSession]:
    """A session in a repository, where a command that commits waits for its yes."""
    async with scripted_session(tmp_path, step("", command), DONE) as d:
        repository(d.root)
        await asked(d)
        yield d


async def test_a_commit_lands_on_what_the_user_committed_meanwhile(tmp_path: Path) -> None:
    """The command is run once more on the repository as it is; it changes what the yes was said to."""
    async with asked_to_commit(tmp_path) as d:
        user_commits(d.root)
        await d.answer("allow")
        await d.over("p1")
        assert commits(d.root) == ["mine", "users", "first"]
        assert d.file.read_text() == WITH_MINE and git(d.root, "status", "--porcelain") == ""
        assert last_call(d.session).state == "succeeded" and git(d.root, "fsck", "--strict") == ""


@pytest.mark.parametrize("answer", ["allow", "reject"])
@pytest.mark.parametrize(
    "line",
    [
        "git log -1 --format=%s >> notes.txt; git commit -qam mine",
        "echo mine >> notes.txt; git commit -qam after-$(git log -1 --format=%s)",
        "echo mine >> notes.txt; git commit -qam mine; git tag v1 HEAD~1",
    ],
)
async def test_what_a_command_changes_on_another_repository_is_asked_about(
    tmp_path: Path, line: str, answer: str
) -> None:
    async with asked_to_commit(tmp_path, shell(line)) as d:
        first = d.session.state.approvals[0]
        user_commits(d.root)
        await d.answer("allow")
        state = await d.until(lambda state: state.approvals and state.approvals[0].digest != first.digest)
        assert "The repository has changed since you said yes" in state.approvals[0].detail
        assert d.file.read_text() == TWELVE and commits(d.root) == ["users", "first"]
        await d.answer(answer)
        await d.over("p1")
        assert (len(commits(d.root)) == 3) == (answer == "allow") == (d.file.read_text() != TWELVE)
        assert last_call(d.session).state == ("succeeded" if answer == "allow" else "rejected")


async def test_a_busy_repository_leaves_the_text_alone_as_well(tmp_path: Path) -> None:
    async with asked_to_commit(tmp_path) as d:
        (d.root / ".git" / "index.lock").write_text("")
        await d.answer("allow")
        await d.over("p1")
        call = last_call(d.session)
        assert (call.state, commits(d.root), d.file.read_text()) == ("failed", ["first"], TWELVE)
        assert call.title.endswith(": nothing changed") and "Another git process is using" in d.told()
        assert not [hunk for hunk in d.session.state.proposals[0].files[0].hunks if hunk.state != "rejected"]


async def test_a_commit_that_cannot_be_written_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with asked_to_commit(tmp_path) as d:
        monkeypatch.setattr(GitFolder, "write", fail)
        await d.answer("allow")
        await d.over("p1")
        call = last_call(d.session)
        assert (call.state, d.file.read_text()) == ("failed", TWELVE), "all or nothing"
        assert call.title.endswith(": nothing changed") and "the disk is full" in call.output


async def test_a_commit_whose_text_was_accepted_by_hunk_is_said_to_be_missing(tmp_path: Path) -> None:
    async with asked_to_commit(tmp_path) as d:
        user_commits(d.root)
        await d.decide("accept")
        await d.decide_rows("accept")
        await d.over("p1")
        call = last_call(d.session)
        assert (call.state, commits(d.root), d.file.read_text()) == ("failed", ["users", "first"], WITH_MINE)
        assert call.title.endswith(": not applied: the git repository")


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
async def test_two_sessions_can_commit_at_the_same_time(tmp_path: Path, mode: Mode) -> None:
    async with scripted_session(tmp_path, step("", COMMIT), DONE, mode=mode) as d:
        repository(d.root)
        script = tmp_path / "other.json"
        script.write_text(json.dumps([step("", shell("echo theirs >> b.txt && git commit -qm theirs b.txt")), DONE]))
        client = Client(os.environ)
        made = SessionCreateParams(session_id="t", roots=[str(d.root)], mode="ask", model_id=f"scripted:{script}")
        client.state = (await d.sessions.create(made, client)).state
        other = await d.sessions.get("t")
        await other.prompts.send(PromptSendParams(session_id="t", prompt_id="q1", text="go"), client)
        await asked(d)
        (theirs,) = (await until(other, lambda state: state.approvals)).approvals
        (mine,) = d.session.state.approvals
        for session, session_id, each in ((d.session, "s", mine), (other, "t", theirs)):
            params = ApprovalResolveParams(
                session_id=session_id, tool_call_id=each.tool_call_id, decision="allow", digest=each.digest
            )
            await session.resolve_approval(params, client)
        await d.over("p1")
        await until(other, lambda state: state.last_turn)
        assert sorted(commits(d.root)) == ["first", "mine", "theirs"]
        assert git(d.root, "status", "--porcelain") == "" and git(d.root, "fsck", "--strict") == ""
        assert [last_call(each).state for each in (d.session, other)] == ["succeeded"] * 2
