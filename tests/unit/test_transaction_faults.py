"""Kills, saves and editors in the middle of a decision, in whole sessions: it is carried out as a whole or not at all,
and what is the user's stays."""

import asyncio
import contextlib
import errno
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.row_plan import Commit, RowPlanner
from amanu.proposals.transaction import Transactions
from amanu.tools.shell import git_looks
from amanu.workspace.disk import TEMPORARY
from amanu.workspace.git.folder import GitFolder
from amanu.workspace.replacement import _Replacing  # pyright: ignore[reportPrivateUsage]
from support.draft_session import DONE, decide_all, deny
from support.required_programs import needs
from support.row_session import by_user, changed, changed_by, decide, look, rows, undo
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from unit.test_session_commits import asked, asked_to_commit, commits, repository
from unit.test_session_layer import git, shell
from unit.test_session_typing import Editor
from unit.workspace.test_disk_changes import Moment, replacing

pytestmark = pytest.mark.layers

FILES = Moment(Transactions, "_change_files")
END = Moment(Transactions, "_note_shown")
"""All changes are made, and none is on record as done."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


@asynccontextmanager
async def killed(d: ScriptedSession, moment: Moment) -> AsyncGenerator[None]:
    """A context after which the daemon was killed right before that moment: its journal and the workspace are as they
    were then. `d.reopen` starts the next daemon."""
    kept = d.root.with_name("kept")
    folders = {"journal": d.session.core.journal.folder, "work": d.root}

    def keep() -> None:
        for name, folder in folders.items():
            shutil.copytree(folder, kept / name, symlinks=True, ignore=shutil.ignore_patterns(".tmp-*"))

    with moment.interrupted(keep):
        yield
    await d.sessions.close("s")
    for name, folder in folders.items():
        shutil.rmtree(folder)
        shutil.move(kept / name, folder)


# Commits ----------------------------------------------------------------------------------------------

BOTH = shell("echo mine >> notes.txt; echo m >> b.txt; git commit -qam mine")


async def allow(d: ScriptedSession) -> None:
    await d.answer("allow")
    await d.over("p1")


def locks(d: ScriptedSession) -> list[str]:
    return [path.name for path in (d.root / ".git").rglob("*.lock")]


def state_of_commit(d: ScriptedSession) -> str:
    (state,) = (row.state for row in rows(d) if row.kind == "git")
    return state


def repository_state(d: ScriptedSession) -> tuple[str, list[str], int]:
    """Git's status, the commits, and how many lines HEAD's log has."""
    return git(d.root, "status", "--porcelain"), commits(d.root), git(d.root, "reflog").count("\n")


DECISIONS: Mapping[str, tuple[Callable[[ScriptedSession], Awaitable[object]], tuple[str, list[str], int]]] = {
    "allow": (allow, ("", ["mine", "first"], 2)),
    "undo": (undo, (" M b.txt\n", ["first"], 3)),
}
"""Name → the decision, and the repository after it."""


@pytest.mark.parametrize("target", ["logs/HEAD", "refs/heads/main"])
@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_commit_alone_is_finished_after_a_kill(tmp_path: Path, decision: str, target: str) -> None:
    """The kill comes right before git's file `target` is replaced."""
    decided, expected = DECISIONS[decision]
    async with scripted_session(tmp_path, step("", shell("git commit -qam mine")), DONE) as d:
        repository(d.root)
        (d.root / "b.txt").write_text("own\n")
        await asked(d)
        if decision == "undo":
            await allow(d)
        async with killed(d, Moment(GitFolder, "rename", lambda *arguments: arguments[2] == target)):
            await decided(d)
        assert repository_state(d) != expected
        await d.reopen()
        assert repository_state(d) == expected


@pytest.mark.parametrize(
    "moment, line",
    [
        (Moment(Commit, "make"), "echo own > notes.txt"),
        (FILES, "rm .git/index.lock; echo own > b.txt; git add b.txt"),
    ],
    ids=["text", "index"],
)
async def test_no_lock_is_left_when_the_user_changed_what_a_commit_needs(
    tmp_path: Path, moment: Moment, line: str
) -> None:
    async with asked_to_commit(tmp_path, BOTH) as d:
        async with killed(d, moment):
            await allow(d)
        assert locks(d)
        by_user(d.root, line)
        await d.reopen()
        assert not locks(d)


async def test_a_commit_does_not_come_without_its_file_on_disk(tmp_path: Path) -> None:
    """The editor does not save."""
    async with asked_to_commit(tmp_path, BOTH) as d:
        Editor(d)
        await allow(d)
        assert (commits(d.root), d.file.read_text()) == (["first"], TWELVE)


async def test_a_log_that_git_cannot_write_takes_all_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, say, since `sudo git` made its folder."""
    real = GitFolder.rename

    def rename(folder: GitFolder, name: str, target: str) -> None:
        if target.startswith("logs/refs/"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        real(folder, name, target)

    async with asked_to_commit(tmp_path, BOTH) as d:
        monkeypatch.setattr(GitFolder, "rename", rename)
        await allow(d)
        assert (d.file.read_text(), repository_state(d)) == (TWELVE, ("", ["first"], 1))
        assert not locks(d)


@asynccontextmanager
async def pushed(tmp_path: Path) -> AsyncGenerator[ScriptedSession]:
    """A session whose commit somebody else has built upon, as a remote-tracking ref tells."""
    async with asked_to_commit(tmp_path, BOTH) as d:
        await allow(d)
        child = git(d.root, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "theirs").strip()
        git(d.root, "update-ref", "refs/remotes/origin/main", child)
        yield d


async def test_a_pushed_commit_stays_also_when_undo_was_interrupted(tmp_path: Path) -> None:
    async with pushed(tmp_path) as d:
        async with killed(d, END):
            await undo(d)
        await d.reopen()
        assert commits(d.root) == ["mine", "first"]


async def test_a_pushed_commit_stays_when_git_cannot_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pushed(tmp_path) as d:
        monkeypatch.setattr(git_looks, "_SECONDS", 0.0)
        await undo(d)
        assert commits(d.root) == ["mine", "first"]


async def test_a_commit_that_is_made_counts_as_applied_whatever_came_later(tmp_path: Path) -> None:
    async with asked_to_commit(tmp_path, BOTH) as d:
        async with killed(d, END):
            await allow(d)
        by_user(d.root, "git commit -q --allow-empty -m users")
        await d.reopen()
        assert commits(d.root) == ["users", "mine", "first"] and state_of_commit(d) == "applied"


async def test_an_undo_that_was_cancelled_is_not_made_later(tmp_path: Path) -> None:
    """It waits for another session, which changes the repository."""
    async with asked_to_commit(tmp_path, BOTH) as d:
        await allow(d)
        (proposal,) = d.session.state.proposals
        (row,) = proposal.rows
        proposals, waits = d.session.core.proposals, asyncio.Event()
        async with d.sessions.services.sandbox.repository_lock(d.root):
            with Moment(RowPlanner, "exclusive").interrupted(waits.set):
                task = asyncio.create_task(proposals.undo(proposal.proposal_id, [], [row.row_id]))
                await waits.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await proposals.undo(proposal.proposal_id, [proposal.files[0].hunks[0].hunk_id])
        assert commits(d.root) == ["mine", "first"] and state_of_commit(d) == "applied"


# Editors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["rm notes.txt; ln -s tool.sh notes.txt", "printf 'a\\0' > notes.txt"])
async def test_a_row_does_not_replace_a_file_with_unsaved_text(tmp_path: Path, line: str) -> None:
    async with changed_by(tmp_path, "draft", line) as d:
        before = look(d.root)
        Editor(d).type(0, "typed\n")
        await decide_all(d, "accept")
        assert look(d.root) == before


async def test_a_file_that_is_opened_and_typed_in_after_the_plan_is_not_written(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "echo more >> notes.txt") as d:
        with FILES.interrupted(lambda: Editor(d).type(0, "typed\n")):
            await decide_all(d, "accept")
        assert d.file.read_text() == TWELVE


# Redo, undo and rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name, text", [("pic.bin", "own\0"), ("notes.txt", TWELVE.replace("line 3", "own"))])
async def test_redo_is_made_as_a_whole_or_not_at_all(tmp_path: Path, name: str, text: str) -> None:
    async with changed_by(tmp_path, "draft", "printf 'new\\0' > pic.bin; sed -i s/3/three/ notes.txt") as d:
        await decide_all(d, "accept")
        await undo(d)
        (d.root / name).write_text(text)
        before = look(d.root)
        await decide(d, "redo")
        assert look(d.root) == before


async def test_undo_brings_back_what_fits(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "printf 'new\\0' > pic.bin; echo more >> notes.txt") as d:
        before = look(d.root)
        await decide_all(d, "accept")
        d.file.chmod(0o444)
        await undo(d)
        assert look(d.root) == changed(before, {"notes.txt": f"444: {TWELVE}more\n"})


@pytest.mark.parametrize("decision", ["accept", "redo"])
async def test_a_deny_rule_holds_for_text(tmp_path: Path, decision: str) -> None:
    async with changed_by(tmp_path, "draft", "echo more >> notes.txt") as d:
        if decision == "redo":
            await decide_all(d, "accept")
            await undo(d)
        deny(d, "@write(*)")
        await (decide_all(d, "accept") if decision == "accept" else decide(d, "redo"))
        assert d.file.read_text() == TWELVE


async def test_a_binary_keeps_its_bits_and_attributes(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "printf 'new\\0' > pic.bin") as d:
        path = d.root / "pic.bin"
        path.chmod(0o600)
        try:
            os.setxattr(path, "user.tag", b"1")
        except OSError:
            pytest.skip("the file system has no attributes")
        await decide_all(d, "accept")
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new\0", 0o600)
        assert os.listxattr(path) == ["user.tag"]


# Recovery ---------------------------------------------------------------------------------------------


async def test_a_recovery_on_a_full_disk_leaves_no_mix(tmp_path: Path) -> None:
    """The next one, with room, makes the rest. Temporary files stay here, since the process that made them runs."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    line = "printf 'n\\0' > pic.bin; printf 'o\\0' > own.bin; echo x >> notes.txt"
    async with changed_by(tmp_path, "draft", line) as d:
        before = look(d.root)
        async with killed(d, replacing("pic.bin")):
            await decide_all(d, "accept")
        assert d.file.read_text() == f"{TWELVE}x\n", "one of them is made"
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_Replacing, "_write_beside", full)
            await d.reopen()
        await d.reopen()
        after = {"pic.bin": "n\0", "own.bin": "600: o\0", "notes.txt": f"{TWELVE}x\n"}
        found = {name: text for name, text in look(d.root).items() if not name.endswith(TEMPORARY)}
        assert found == changed(before, after)


async def test_a_recovery_on_a_full_disk_leaves_no_lock(tmp_path: Path) -> None:
    """The user's own git works until there is room."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with asked_to_commit(tmp_path, BOTH) as d:
        async with killed(d, replacing("notes.txt")):
            await allow(d)
        assert locks(d)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_Replacing, "_write_beside", full)
            await d.reopen()
        assert not locks(d) and commits(d.root) == ["first"]
        await d.reopen()
        assert not locks(d) and commits(d.root) == ["mine", "first"]
        assert git(d.root, "status", "--porcelain", "-uno") == ""


async def test_a_recovery_leaves_what_the_user_changed_since(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "sed -i 's/line 2$/LINE 2/; s/line 9/LINE 9/' notes.txt") as d:
        async with killed(d, FILES):
            await decide_all(d, "accept")
        text = TWELVE.replace("line 2\n", "LINE 2\n")
        d.file.write_text(text)
        await d.reopen()
        assert d.file.read_text() == text


async def test_a_folder_that_was_there_is_no_sign_that_a_change_was_begun(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "mkdir fresh; echo more >> notes.txt") as d:
        (d.root / "fresh").mkdir()
        async with killed(d, FILES):
            await decide_all(d, "accept")
        await d.reopen()
        assert d.file.read_text() == TWELVE
