"""git in a sandbox: hooks run as part of the command, and repositories work whose own files are elsewhere."""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from amanu.config import SandboxSettings as Settings
from amanu.core.tool import Outcome
from amanu.home import find_home
from amanu.sandbox import landlock
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Grant
from support.required_programs import needs
from support.tool_harness import ToolHarness

TIERS: tuple[Tier, ...] = ("bubblewrap", "landlock")
HOOK = "#!/bin/sh\necho the hook ran\ncat ../key 2>/dev/null && exit 0\nexit 1\n"
COMMIT = "git add . && git -c user.name=a -c user.email=a@b commit -m x"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@asynccontextmanager
async def harness(root: Path, base: Path, tier: Tier, *, trusted: bool = False) -> AsyncGenerator[ToolHarness]:
    if tier == "bubblewrap":
        needs("bwrap")
    if tier == "landlock" and not landlock.version():
        pytest.skip("there is no Landlock")
    home = base / "home"
    home.mkdir()
    sandbox = Sandbox(Settings(), find_home({"AMANU_HOME": str(base / "ours")}).make(), best=tier)
    assert (await sandbox.proved()).tier == tier
    try:
        yield ToolHarness(
            root, environment={"PATH": "/usr/bin:/bin", "HOME": str(home)}, sandbox=sandbox, trusted=trusted
        )
    finally:
        await sandbox.close()


def hooked(root: Path) -> None:
    root.mkdir()
    git(root, "init")
    (root / ".git" / "hooks" / "pre-commit").write_text(HOOK)
    (root / ".git" / "hooks" / "pre-commit").chmod(0o755)
    (root / "a.txt").write_text("a\n")


async def run(harness: ToolHarness, command: str, *grants: Grant, secrets: bool = False) -> Outcome:
    """As when the user allowed it, with those grants."""
    tool, call = harness.tools["run_shell_command"], harness.context()
    params = tool.params.model_validate({"command": command})
    call.preview = await tool.preview(params, call)
    assert call.preview.command is not None
    call.preview = call.preview.at(call.preview.command.placing.granted(grants, secrets=secrets))
    return await tool.run(params, call)


@pytest.mark.parametrize("tier", TIERS)
async def test_a_hook_that_fails_fails_the_commit(tmp_path: Path, tier: Tier) -> None:
    root = tmp_path / "work"
    hooked(root)
    (tmp_path / "key").write_text("secret\n")
    async with harness(root, tmp_path, tier) as at:
        outcome = await run(at, COMMIT)
    assert outcome.is_error and "the hook ran" in outcome.for_model
    assert "secret" not in outcome.for_model, "a hook is behind the sandbox, too"
    assert subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True).returncode != 0


@pytest.mark.parametrize("granted", ["unsandboxed", "network"])
async def test_hooks_of_an_untrusted_folder_are_skipped_where_they_could_do_harm_and_that_is_told(
    tmp_path: Path, granted: Grant
) -> None:
    root = tmp_path / "work"
    hooked(root)
    async with harness(root, tmp_path, "bubblewrap") as at:
        outcome = await run(at, COMMIT, granted)
    assert not outcome.is_error and "the hook ran" not in outcome.for_model
    assert "pre-commit: these git hooks of the repository were skipped" in outcome.for_model
    assert "pre-commit: these git hooks of the repository were skipped" in outcome.for_user


async def test_the_users_own_hooks_for_all_repositories_are_run(tmp_path: Path) -> None:
    root = tmp_path / "work"
    hooked(root)
    async with harness(root, tmp_path, "bubblewrap") as at:
        hooks = tmp_path / "home" / "hooks"
        hooks.mkdir()
        (hooks / "commit-msg").write_text("#!/bin/sh\necho my own; exit 1\n")
        (hooks / "commit-msg").chmod(0o755)
        (tmp_path / "home" / ".gitconfig").write_text("[core]\n\thooksPath = ~/hooks\n")
        outcome = await run(at, COMMIT)
    assert outcome.is_error and "my own" in outcome.for_model


async def test_a_look_runs_no_hook(tmp_path: Path) -> None:
    root = tmp_path / "work"
    hooked(root)
    (root / ".git" / "hooks" / "post-index-change").write_text(f"#!/bin/sh\ntouch {tmp_path}/work/ran\n")
    (root / ".git" / "hooks" / "post-index-change").chmod(0o755)
    async with harness(root, tmp_path, "bubblewrap") as at:
        outcome = await run(at, "git status")
    assert not outcome.is_error and not (root / "ran").exists()
    assert "skipped" not in outcome.for_model


LINE = (
    "git status --short && git add . && git -c user.name=a -c user.email=a@b commit -q -m second && git log --oneline"
)
TAMPER = "; cd ../bare.git && for each in config hooks/pre-commit worktrees/tree/gitdir; do echo >> $each; done"


def bare_with_worktree(base: Path) -> tuple[Path, Path]:
    """(The bare repository, a worktree of it beside it.)"""
    source = base / "source"
    hooked(source)
    (source / ".git" / "hooks" / "pre-commit").unlink()
    git(source, "add", ".")
    git(source, "commit", "-m", "first")
    git(base, "clone", "--bare", "source", "bare.git")
    git(base / "bare.git", "worktree", "add", "-b", "feature", "../tree")
    return base / "bare.git", base / "tree"


@pytest.mark.parametrize("tier", TIERS)
async def test_git_works_in_a_worktree_of_a_bare_repository(tmp_path: Path, tier: Tier) -> None:
    bare, tree = bare_with_worktree(tmp_path)
    (tree / "b.txt").write_text("b\n")
    config = (bare / "config").read_text()
    async with harness(tree, tmp_path, tier) as at:
        look = await at.preview("run_shell_command", {"command": "git status --short"})
        assert look.command is not None and not look.command.placing.approved.writes
        assert "?? b.txt" in (await run(at, "git status --short")).for_model
        outcome = await run(at, LINE)
        await run(at, f"git add .{TAMPER}")
    assert not outcome.is_error, outcome.for_model
    assert "?? b.txt" in outcome.for_model and "second" in outcome.for_model and "first" in outcome.for_model
    assert "second" in git(bare, "log", "--oneline", "feature")
    assert (bare / "config").read_text() == config
    assert not (bare / "hooks" / "pre-commit").exists()


async def test_a_command_that_is_not_gits_cannot_write_a_bare_repository_in_the_workspace(tmp_path: Path) -> None:
    """As people keep worktrees beside each other: `.git` is a file that leads to `.bare`."""
    bare, _ = bare_with_worktree(tmp_path)
    root = tmp_path / "work"
    root.mkdir()
    bare.rename(root / ".bare")
    (root / ".git").write_text("gitdir: ./.bare\n")
    async with harness(root, tmp_path, "bubblewrap") as at:
        await run(at, "echo x > .bare/hooks/pre-commit; echo x >> .bare/config; echo x > ordinary")
    assert not (root / ".bare" / "hooks" / "pre-commit").exists() and "x" not in (root / ".bare" / "config").read_text()
    assert (root / "ordinary").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_git_works_in_a_shared_clone_of_a_trusted_folder(tmp_path: Path, tier: Tier) -> None:
    bare, _ = bare_with_worktree(tmp_path)
    git(tmp_path, "clone", "--shared", "bare.git", "work")
    (tmp_path / "work" / "b.txt").write_text("b\n")
    before = sorted((bare / "objects").rglob("*"))
    async with harness(tmp_path / "work", tmp_path, tier, trusted=True) as at:
        outcome = await run(at, LINE)
    assert not outcome.is_error, outcome.for_model
    assert "second" in outcome.for_model and "first" in outcome.for_model
    assert sorted((bare / "objects").rglob("*")) == before


@pytest.mark.parametrize("trusted", [True, False])
async def test_objects_of_another_repository_are_not_shown_because_a_list_names_them(
    tmp_path: Path, trusted: bool
) -> None:
    """A command that may write git's files can write that list, too; its settings it cannot."""
    hooked(tmp_path / "work")
    hooked(tmp_path / "private")
    (tmp_path / "work" / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/private/.git/objects\n")
    if not trusted:
        git(tmp_path / "work", "remote", "add", "origin", str(tmp_path / "private"))
    async with harness(tmp_path / "work", tmp_path, "bubblewrap", trusted=trusted) as at:
        outcome = await run(at, f"git add . ; ls {tmp_path}/private/.git/objects")
    assert "No such file" in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
async def test_a_git_command_leaves_no_list_of_other_repositories(tmp_path: Path, tier: Tier) -> None:
    hooked(tmp_path / "work")
    alternates = tmp_path / "work" / ".git" / "objects" / "info" / "alternates"
    async with harness(tmp_path / "work", tmp_path, tier) as at:
        outcome = await run(at, f"git add . ; echo {tmp_path}/private/.git/objects > {alternates}; ls .git/index")
    assert ".git/index\n" in outcome.for_model
    assert not alternates.exists()
