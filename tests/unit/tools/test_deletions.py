"""How much a line deletes is said in the question about it."""

import subprocess
from pathlib import Path

import pytest

from amanu.config import SandboxSettings
from amanu.home import find_home
from amanu.sandbox import sandbox as sandboxes
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Tier
from amanu.tools.shell import deletions
from amanu.tools.shell.command_process import CommandLauncher
from amanu.tools.shell.git_looks import git_prints
from support.required_programs import needs
from support.tool_harness import ToolHarness

FILES = {"a.txt": "", "b c.txt": "", "big/1": "", "big/in/2": "", "big/in/3": "", "old/x": "", ".gitignore": "old\n"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rm a.txt", "It deletes 1 file."),
        ("rm -f a.txt 'b c.txt' none.txt", "It deletes 2 files."),
        ("rm -rf big", "It deletes a folder with 3 files."),
        ("rm -rf big/*", "It deletes 3 files and 1 folder."),
        ("CI=1 rm -rf ./big a.txt -- -x", "It deletes 4 files and 1 folder."),
        ("rm -rf big old && echo gone", "It deletes 2 folders with 4 files."),
        ("rm -rf {root}/big", "It deletes a folder with 3 files."),
        ("rm -rf link", "It deletes 1 file."),
        ("rm -rf none", ""),
        ("rm -rf $WHAT", ""),
        ("rm -rf big /etc", ""),  # not all of it is known
        ("cd big && rm -rf in", ""),
        ("find big -delete", ""),
        ("rm -rf many", "It deletes a folder with over 5 files."),
        ("rm -rf deep", "It deletes a folder with over 5 folders."),
    ],
)
async def test_rm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str) -> None:
    monkeypatch.setattr(deletions, "MOST", 5)
    harness = ToolHarness(tmp_path, {**FILES, **{f"many/{number}": "" for number in range(9)}})
    (harness.root / "link").symlink_to("big")
    (harness.root / "deep/1/2/3/4/5/6/7").mkdir(parents=True)
    preview = await harness.preview("run_shell_command", {"command": command.format(root=harness.root)})
    assert [line.text for line in preview.notes if line.tone == "warning"] == ([said] if said else [])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git clean -fd", "It deletes 4 files and 1 folder."),
        ("git clean -fdx", "It deletes 5 files and 2 folders."),
        ("git clean -f", "It deletes 1 file."),
        ("git clean -fd big", "It deletes a folder with 3 files."),
        ("git clean -f none", ""),
        ("git clean -fd && ls", ""),
        ("git clean --force -q -d -- big", "It deletes a folder with 3 files."),
        ("git clean -f -- -d", ""),
        ("git clean -fd --no-dry-run", ""),
        ("git clean -fd big --no-d", ""),
        ("git clean -fdi", ""),
        ("git clean -fd -e big", ""),
        ("git clean -nd", ""),  # nothing is deleted
    ],
)
async def test_git_clean(tmp_path: Path, command: str, said: str) -> None:
    needs("bwrap")
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "h")}).make())
    harness = ToolHarness(tmp_path / "w", FILES, sandbox=sandbox)
    subprocess.run(["git", "init", "-q", "."], cwd=harness.root, check=True)
    subprocess.run(["git", "add", "a.txt", ".gitignore"], cwd=harness.root, check=True)
    preview = await harness.preview("run_shell_command", {"command": command})
    await sandbox.close()
    assert [line.text for line in preview.notes if line.tone == "warning"] == ([said] if said else [])
    assert (harness.root / "big" / "1").exists()


@pytest.mark.parametrize("best", ["bubblewrap", "landlock", "none"])
@pytest.mark.parametrize("command", ["git clean -f", "git clean -f --no-dry-run", "git clean -f --no-d"])
async def test_nothing_is_cleaned_before_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best: Tier, command: str
) -> None:
    if best == "bubblewrap":
        needs("bwrap")
    monkeypatch.setattr(sandboxes, "_proofs", {})
    if best == "none":
        monkeypatch.setattr(sandboxes, "_candidates", _no_candidates)
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "h")}).make(), best=best)
    harness = ToolHarness(tmp_path / "w", FILES, sandbox=sandbox)
    subprocess.run(["git", "init", "-q", "."], cwd=harness.root, check=True)
    preview = await harness.preview("run_shell_command", {"command": command})
    tier = (await sandbox.proved()).tier
    await sandbox.close()
    known = tier != "none" and command == "git clean -f"
    assert [line.text for line in preview.notes if line.tone == "warning"] == (["It deletes 3 files."] if known else [])
    assert (harness.root / "a.txt").exists() and (harness.root / "b c.txt").exists()


@pytest.mark.parametrize("command", ["clean --dry-run", "clean -f"])
async def test_git_is_not_run_unasked_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(sandboxes, "_proofs", {})
    monkeypatch.setattr(sandboxes, "_candidates", _no_candidates)
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "h")}).make())
    harness = ToolHarness(tmp_path / "w", FILES, sandbox=sandbox)
    subprocess.run(["git", "init", "-q", "."], cwd=harness.root, check=True)
    launcher = CommandLauncher(harness.environment)
    assert await git_prints(launcher, command.split(), harness.root) is None
    await sandbox.close()
    assert (harness.root / "a.txt").exists()


def _no_candidates(best: Tier) -> dict[Tier, str]:
    return {}
