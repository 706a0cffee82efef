"""Writing into a folder that git's settings name for hooks is asked about in every mode, by whatever tool."""

import subprocess
from pathlib import Path

import pytest

from amanu_protocol.items import Mode
from support.scripted_session import call, scripted_session, step
from support.sweeps import sample_pairs

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)


SHELL = call("run_shell_command", command="cat > .githooks/pre-commit <<'E'\n#!/bin/sh\nE\n")
WRITE = call("write_file", path=".githooks/pre-commit", content="#!/bin/sh\n")
BINARY = call("run_shell_command", command="mkdir -p .githooks && cp /bin/true .githooks/pre-push")
BITS = call("run_shell_command", command="chmod +x .githooks/ready")


WHERE = ["config", "config.worktree", "the user's", "absolute", "ignored", "above the root", "comment", "included"]
HOW: list[tuple[Mode, dict[str, object]]] = [
    ("acceptEdits", SHELL),
    ("auto", WRITE),
    ("acceptEdits", BINARY),
    ("auto", BITS),
    ("acceptEdits", WRITE),
    ("auto", SHELL),
]


@pytest.mark.parametrize(("where", "how"), sample_pairs(WHERE, HOW, 2))
async def test_hooks_are_asked_about(where: str, how: tuple[Mode, dict[str, object]], tmp_path: Path) -> None:
    mode, what = how
    async with scripted_session(tmp_path, step("", what), step("Done."), mode=mode) as d:
        top = d.root.parent if where == "above the root" else d.root
        hooks = d.root / ".githooks"
        value = {"absolute": str(hooks), "above the root": f"{d.root.name}/.githooks"}.get(where, ".githooks")
        subprocess.run(["git", "init", "-q"], cwd=top, check=True)
        files = {"config.worktree": top / ".git" / "config.worktree", "the user's": Path.home() / ".gitconfig"}
        with files.get(where, top / ".git" / "config").open("a") as config:
            match where:
                case "comment":
                    config.write(f"[core] hooksPath = {value} # ours; for all\n")
                case "included":
                    config.write('[includeIf "gitdir:~/"]\n\tpath = more\n')
                    (top / ".git" / "more").write_text(f"[core]\n\thooksPath = {value}\n")
                case _:
                    config.write(f'[core]\n\thooksPath = "{value}"\n')
        if where == "ignored":
            (d.root / ".gitignore").write_text(".githooks/\n")
        hooks.mkdir()
        (hooks / "ready").write_text("#!/bin/sh\n")
        before = {path.name: path.stat().st_mode for path in hooks.iterdir()}
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.last_turn)
        assert {path.name: path.stat().st_mode for path in hooks.iterdir()} == before
        if d.session.state.approvals:
            await d.answer("reject")
        await d.over("p1")
        assert {path.name: path.stat().st_mode for path in hooks.iterdir()} == before
