"""What git, editors, shells and agents obey is as before when a command has ended; nothing is made up for that."""

import asyncio
import contextlib
import fcntl
import os
import signal
from pathlib import Path

import pytest

from amanu.sandbox.git_settings import odd_settings
from amanu.sandbox.self_test import Tier
from sandbox.test_escape_attempts import started_as
from sandbox.test_git import TIERS, git, harness, run
from support.required_programs import needs

SETTINGS = '{"a": 1}\n'
EVIL = "[core]\n\tfsmonitor = ./evil\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with what is obeyed."""
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init")
    (root / ".vscode").mkdir()
    (root / ".vscode" / "settings.json").write_text(SETTINGS)
    (root / "AGENTS.md").write_text("obey\n")
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "lib" / "AGENTS.md").write_text("obey here\n")
    (root / "a.txt").write_text("a\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "first")
    return root


def names(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if ".git" not in each.relative_to(root).parts}


async def unlocked(records: Path) -> None:
    """All of the command has ended, its reaper too."""
    (path,) = records.glob("*.json")
    async with asyncio.timeout(50):
        while True:
            with contextlib.suppress(BlockingIOError), path.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            await asyncio.sleep(0.01)


def aside(base: Path) -> dict[str, str]:
    """What lies in the folder for that, by its path in the workspace."""
    found: dict[str, str] = {}
    for path in (base / "ours" / "state" / "aside").rglob("*"):
        _, _, name = str(path).partition(f"{base}/work/"[1:])
        if name and path.is_file():
            found[name] = path.read_text()
    return found


@pytest.mark.parametrize("tier", TIERS)
async def test_nothing_is_made_up_in_the_workspace(root: Path, tmp_path: Path, tier: Tier) -> None:
    """In its own eyes, in those of others, and after it was killed."""
    there = {each.name for each in root.iterdir()} | {"out"}
    async with harness(root, tmp_path, tier) as at:
        outcome = await run(at, "ls -A > out; cp -r . /tmp/copy; touch z; cat .gitmodules .mcp.json 2>/dev/null; true")
    assert not outcome.is_error, outcome.for_model
    assert set((root / "out").read_text().split()) == there
    assert "was changed or replaced" not in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
async def test_work_at_the_top_of_the_workspace(root: Path, tmp_path: Path, tier: Tier) -> None:
    (root / "Makefile").write_text("out: a.txt\n\tcp a.txt out\n")
    (root / "package.json").write_text('{"name": "x", "version": "1.0.0", "dependencies": {"y": "file:./lib"}}')
    (root / "lib" / "package.json").write_text('{"name": "y", "version": "1.0.0"}')
    lines = ["mkdir src && echo x > src/x", "make", "mv Makefile M2", "python3 -m venv --without-pip .venv"]
    lines += ["npm install --offline --no-audit --no-fund"] if Path("/usr/bin/npm").exists() else []
    async with harness(root, tmp_path, tier) as at:
        for line in lines:
            outcome = await run(at, line)
            assert not outcome.is_error, f"{line}: {outcome.for_model}"
            assert "ut aside" not in outcome.for_model and "Restored, because" not in outcome.for_model, (
                outcome.for_model
            )
    assert {"src/x", "out", "M2", ".venv/pyvenv.cfg"} <= names(root)


@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_new_and_obeyed_is_put_aside_and_told(root: Path, tmp_path: Path, tier: Tier) -> None:
    line = "mkdir .zed lib/.idea; echo evil > .zed/tasks.json; echo evil > lib/.idea/x; echo evil > .mcp.json; "
    line += "ln -s a.txt CLAUDE.md; chmod 500 .zed; touch plain"
    before = names(root)
    async with harness(root, tmp_path, tier) as at:
        outcome = await run(at, line)
    assert names(root) == before | {"plain"}
    found = {".zed/tasks.json": "evil\n", "lib/.idea/x": "evil\n", ".mcp.json": "evil\n"}
    assert aside(tmp_path) == found, "and the link, which leads nowhere now"
    assert "act on it: .mcp.json, .zed, CLAUDE.md, lib/.idea. It is now in" in outcome.for_model
    assert "write_file" in outcome.for_model and ".mcp.json" in outcome.for_user
    assert "[.zed/tasks.json, put aside:]\nevil\n" in outcome.for_model, "so that it can be proposed"


@pytest.mark.parametrize("tier", TIERS)
async def test_many_new_folders_hide_nothing(root: Path, tmp_path: Path, tier: Tier) -> None:
    line = "mkdir new{1..600} new1/.idea; mkdir lib/deep/.idea; mkdir lib/deep/plain"
    async with harness(root, tmp_path, tier) as at:
        outcome = await run(at, line)
    assert "lib/deep/.idea. It is now in" in outcome.for_model
    assert [each.name for each in (root / "lib" / "deep").iterdir()] == ["plain"]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "line",
    [
        "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "git config core.fsmonitor ./evil; git config remote.origin.url ../evil",
        "printf '%s' '[core] fsmonitor=x' >> .git/config",
        "mv .git x && git init -q && git config core.fsmonitor ./evil",
        "echo '* filter=evil' > .git/info/attributes",
        "echo evil > .vscode/settings.json; echo evil > .vscode/tasks.json",
        "rm -rf .vscode; ln -s lib .vscode; echo evil > lib/settings.json",
        "mv AGENTS.md old; echo evil > AGENTS.md",
        "mv lib away; mkdir lib; echo evil > lib/AGENTS.md",
        "rm AGENTS.md",
        "ln -f .git/config lib/x; echo evil >> lib/x",
        "chmod 755 AGENTS.md",
    ],
)
async def test_what_is_there_and_obeyed_is_as_before(root: Path, tmp_path: Path, tier: Tier, line: str) -> None:
    def obeyed() -> dict[str, tuple[int, str]]:
        paths = [root / ".git" / each for each in ("config", "info/attributes", "hooks/pre-commit", "HEAD")]
        paths += [root / "AGENTS.md", *(root / ".vscode").iterdir()]
        return {str(each): (each.stat().st_mode, each.read_text()) for each in paths if each.exists()}

    (root / ".git" / "config").chmod(0o600)
    before = obeyed()
    async with harness(root, tmp_path, tier, trusted=True) as at:
        for each in (f"git add . ; {line}", line):
            outcome = await run(at, each)
            assert obeyed() == before, outcome.for_model
            assert not (root / ".vscode").is_symlink() and (root / ".git" / "config").stat().st_nlink == 1
    assert not (root / "lib" / "AGENTS.md").exists() or "evil" not in (root / "lib" / "AGENTS.md").read_text()
    if tier == "landlock":
        assert "Restored, because" in outcome.for_model or "Put aside" in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
async def test_a_folder_can_be_moved_with_what_is_obeyed_in_it(root: Path, tmp_path: Path, tier: Tier) -> None:
    async with harness(root, tmp_path, tier) as at:
        outcome = await run(at, "mv lib other")
    assert not outcome.is_error and "ut aside" not in outcome.for_model, outcome.for_model
    assert (root / "other" / "AGENTS.md").read_text() == "obey here\n" and not (root / "lib").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_git_makes_repositories_submodules_and_remotes(root: Path, tmp_path: Path, tier: Tier) -> None:
    """Twice: what is there is protected then."""
    for name in ("one", "two"):
        (root / name).mkdir()
        git(root / name, "init")
        (root / name / "AGENTS.md").write_text("of that repository\n")
        git(root / name, "add", ".")
        git(root / name, "commit", "-m", "x")
    async with harness(root, tmp_path, tier, trusted=True) as at:
        (tmp_path / "home" / ".gitconfig").write_text('[protocol "file"]\n\tallow = always\n')
        for name in ("one", "two"):
            outcome = await run(at, f"git submodule add {root}/{name} lib/{name}")
            assert not outcome.is_error, outcome.for_model
            assert "ut aside" not in outcome.for_model and "Restored, because" not in outcome.for_model, (
                outcome.for_model
            )
        outcome = await run(
            at, "git remote add origin https://example.org/x.git && git branch topic && git init -q new"
        )
        assert "remote" in (root / ".git" / "config").read_text(), outcome.for_model
    assert (root / ".gitmodules").read_text().count("[submodule") == 2
    assert [line[0] for line in git(root, "submodule", "status").splitlines()] == [" ", " "]
    assert (root / "new" / ".git" / "HEAD").exists() or "new" in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "settings", ["[core]\n\tfsmonitor = ./x\n", "[include]\n\tpath = ../x\n", "[core] fsmonitor = x"]
)
async def test_of_a_new_repository_what_git_would_run_is_put_aside(
    root: Path, tmp_path: Path, tier: Tier, settings: str
) -> None:
    (root / "more").write_text(settings)
    line = "git init -q lib/plain; git init -q lib/evil; cat more >> lib/evil/.git/config; "
    line += "git init -q lib/hooked; echo evil > lib/hooked/.git/hooks/post-checkout; "
    line += "mkdir lib/led && cp -r lib/evil/.git lib/led/real && echo 'gitdir: real' > lib/led/.git; "
    line += "mkdir lib/far && echo 'gitdir: ../evil/.git' > lib/far/.git; mkdir lib/link && ln -s ../evil/.git lib/link"
    async with harness(root, tmp_path, tier, trusted=True) as at:
        outcome = await run(at, line)
    lib = root / "lib"
    assert {each.parent.name for each in lib.rglob(".git")} == {"plain", "evil", "hooked", "led"}, outcome.for_model
    assert {str(each.relative_to(lib)) for each in lib.rglob("config")} == {"plain/.git/config", "hooked/.git/config"}
    assert not (lib / "hooked" / ".git" / "hooks").exists() and (lib / "plain" / ".git" / "hooks").exists()
    assert "lib/evil/.git/config, " in outcome.for_model and "lib/hooked/.git/hooks" in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("asked", [True, False], ids=["with its first command", "when it tries its sandbox"])
async def test_what_a_dead_daemon_left_is_settled_by_the_next(
    root: Path, tmp_path: Path, tier: Tier, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tier == "bubblewrap":
        needs("bwrap")
    config, left = (root / ".git" / "config").read_text(), names(root)
    line = "echo evil >> .git/config; echo evil > .vscode/settings.json; echo evil > .git/hooks/pre-commit; "
    line += "mkdir .zed; echo evil > .zed/tasks.json; echo done; sleep 60"
    with started_as(os.geteuid(), "killed_daemon.py", tier, line, str(tmp_path)) as daemon:
        assert daemon.stdout is not None
        assert [daemon.stdout.readline() for _ in range(2)] == ["started\n", "done\n"]
        daemon.send_signal(signal.SIGKILL)
    assert (root / ".zed").exists(), "else this proves nothing"
    assert tier == "bubblewrap" or "evil" in (root / ".git" / "config").read_text()
    if not asked:
        monkeypatch.setattr("amanu.sandbox.sandbox._proofs", {})
        await unlocked(tmp_path / "ours" / "state" / "sandbox")
    async with harness(root, tmp_path, tier) as at:
        assert asked or not (root / ".zed").exists()
        outcome = await run(at, "touch x")
    assert (root / ".git" / "config").read_text() == config
    assert (root / ".vscode" / "settings.json").read_text() == SETTINGS
    assert not (root / ".git" / "hooks" / "pre-commit").exists() and names(root) == left | {"x"}
    assert ".zed" in outcome.for_model and aside(tmp_path)[".zed/tasks.json"] == "evil\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_what_a_command_changed_is_not_what_another_begins_with(root: Path, tmp_path: Path, tier: Tier) -> None:
    """The first still runs when the second begins; either may end first."""
    os.mkfifo(root / "go")
    change = "mkdir .zed; echo evil > .zed/x; echo evil > AGENTS.md; "
    async with harness(root, tmp_path, tier) as at:
        for first in (change + "touch changed; cat go", change + "touch changed; sleep 60"):
            running = asyncio.create_task(run(at, first))
            while not (root / "changed").exists():
                await asyncio.sleep(0.01)
            second = asyncio.create_task(run(at, "ls > list"))
            if first.endswith("go"):
                await second
                assert not (root / ".zed").exists() and (root / "AGENTS.md").read_text() == "obey\n"
                await asyncio.to_thread((root / "go").write_text, "")
                await running
            else:
                await second
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            assert not (root / ".zed").exists() and (root / "AGENTS.md").read_text() == "obey\n"
            (root / "changed").unlink()


@pytest.mark.parametrize("tier", TIERS)
async def test_what_a_cancelled_command_left_is_told_with_the_next(root: Path, tmp_path: Path, tier: Tier) -> None:
    async with harness(root, tmp_path, tier) as at:
        running = asyncio.create_task(run(at, "mkdir .zed; touch begun; sleep 60"))
        while not (root / "begun").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert not (root / ".zed").exists()
        assert "act on it: .zed. It is now in" in (await run(at, "touch z")).for_model
        assert "act on it" not in (await run(at, "touch z")).for_model


async def test_what_is_too_large_to_be_recorded_cannot_be_written(root: Path, tmp_path: Path) -> None:
    (root / ".idea").mkdir()
    (root / ".idea" / "large").write_bytes(bytes(3 << 20))
    async with harness(root, tmp_path, "landlock") as at:
        outcome = await run(at, "echo evil > .idea/x; echo y > lib/y; mkdir new")
    assert not (root / ".idea" / "x").exists() and (root / "lib" / "y").exists() and not (root / "new").exists()
    assert "Permission denied" in outcome.for_model


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ('[remote "a"]\n\turl = https://x/y\n\tfetch = +refs/heads/*:refs/remotes/a/*\n', []),
        ('[core]\n\tworktree = ../../../lib/one\n', []),
        ('[core]\n\tworktree = ../../../../../..\n', [("core.worktree", "../../../../../..")]),
        ('[core]\n\tworktree = /home\n', [("core.worktree", "/home")]),
        ('[Core]\n\tFSMonitor = ./x\n', [("core.fsmonitor", "./x")]),
        ('[submodule "a"]\n\tupdate = !x\n', [("submodule.a.update", "!x")]),
        ('[remote "a"]\n\turl = ext::sh -c x\n', [("remote.a.url", "ext::sh -c x")]),
        ('[remote "a"]\n\tuploadpack = x\n', [("remote.a.uploadpack", "x")]),
        ('[core] fsmonitor = x\n', None),
        ('[branch "a"]\n\tremote = b\\\n[core]\n\tfsmonitor = x\n', None),
        ('[branch "a"]\r\n\tremote = b\r\n', None),
        ('fsmonitor = x\n', None),
    ],
)  # fmt: skip
def test_settings_that_git_does_not_write_by_itself(text: str, odd: list[tuple[str, str]] | None) -> None:
    assert odd_settings(text.encode()) == odd


OTHERS = (
    *(".gitattributes", ".github/workflows/ci.yml", ".github/copilot-instructions.md", ".npmrc", ".bashrc"),
    *(".codex/config.toml", "opencode.json", ".opencode/x.json", ".roo/mcp.json", ".clinerules", ".windsurf/rules.md"),
    *(".cursorrules", ".fleet/run.json", "a.sublime-project", ".pre-commit-config.yaml", "lib/.clinerules/x.md"),
)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("there", [False, True], ids=["absent", "there"])
async def test_what_other_agents_and_services_obey(root: Path, tmp_path: Path, tier: Tier, there: bool) -> None:
    """Nothing is made up for their names, either."""
    for name in OTHERS if there else ():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine\n")
    before = names(root)
    lines = [f"mkdir -p {Path(name).parent}; echo evil > {name}" for name in OTHERS]
    async with harness(root, tmp_path, tier) as at:
        seen = await run(at, "ls -A; touch ok")
        outcome = await run(at, "; ".join(lines), secrets=True)
    assert ".cursorrules" not in seen.for_model or there
    files = {name: (root / name).read_text() for name in OTHERS if (root / name).is_file()}
    assert files == (dict.fromkeys(OTHERS, "mine\n") if there else {})
    assert names(root) - before <= {"ok", ".github"}
    assert ".pre-commit-config.yaml" in outcome.for_model


@pytest.mark.parametrize("tier", TIERS)
async def test_a_branch_with_other_workflows_can_be_checked_out(root: Path, tmp_path: Path, tier: Tier) -> None:
    ci, attributes = root / ".github" / "workflows" / "ci.yml", root / ".gitattributes"
    ci.parent.mkdir(parents=True)
    ci.write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "second")
    git(root, "checkout", "-b", "other")
    ci.write_text("two\n")
    attributes.write_text("* text\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "third")
    git(root, "checkout", "main")
    async with harness(root, tmp_path, tier, trusted=True) as at:
        outcome = await run(at, "git status && git checkout other")
        assert not outcome.is_error and (ci.read_text(), attributes.exists()) == ("two\n", True)
        await run(at, "git checkout main; echo evil > .github/workflows/ci.yml")
        assert ci.read_text() == "two\n", "with another command beside it nothing of it may change"


@pytest.mark.parametrize("tier", TIERS)
async def test_what_a_background_command_does_is_undone_at_its_end_and_what_the_user_allowed_stays(
    root: Path, tmp_path: Path, tier: Tier
) -> None:
    async with harness(root, tmp_path, tier) as at:
        os.mkfifo(root / "fifo")
        line = "echo up; read x < fifo; echo evil > .mcp.json; echo evil > .zed/more.json; echo evil >> lib/CLAUDE.md"
        await at.run("run_shell_command", {"command": line, "background": True, "until": "up"})
        assert at.environment.sandbox is not None
        for name, text in ((".zed/tasks.json", "asked\n"), ("AGENTS.md", "new rules\n"), ("lib/CLAUDE.md", "asked\n")):
            path, written = root / name, root / "written"
            path.parent.mkdir(exist_ok=True)
            written.write_text(text)
            written.rename(path)
            await at.environment.sandbox.accept(path)
        outcome = await run(at, "true; touch other")
        assert "ut aside" not in outcome.for_model and "Restored, because" not in outcome.for_model
        await asyncio.to_thread((root / "fifo").write_text, "go\n")
        ended = await at.run("read_command", {"job": "job-1", "until": "never", "wait_s": 20})
        assert ".mcp.json. It is now in" in ended.for_model, ended.for_model
    kept = {name: (root / name).read_text() for name in ("AGENTS.md", ".zed/tasks.json", "lib/CLAUDE.md")}
    assert kept == {"AGENTS.md": "new rules\n", ".zed/tasks.json": "asked\n", "lib/CLAUDE.md": "asked\n"}
    assert not (root / ".mcp.json").exists() and not (root / ".zed" / "more.json").exists()
