"""Plan mode's commands run on a private copy of the workspace, and nothing that they change stays."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.core.requirements import SandboxRequirements
from amanu_protocol.items import Mode, ToolCall
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, scripted_session, step
from unit.test_session_typing import Editor

pytestmark = pytest.mark.layers

DONE = step("Done.")
THROWN_AWAY = "was thrown away"
GIT = "git -c user.name=A -c user.email=a@b.example"


@pytest.fixture(autouse=True)
def bubblewrap() -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")


def shell(command: str) -> dict[str, Any]:
    return call("run_shell_command", command=command)


def tool_calls(d: ScriptedSession) -> list[ToolCall]:
    return [item for item in d.session.state.items if item.kind == "toolCall"]


def tree(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def project(root: Path) -> None:
    """A repository with a test in it."""
    (root / ".gitignore").write_text("out/\n__pycache__/\n.pytest_cache/\n")
    (root / "test_it.py").write_text(
        "def test_it(cache):\n    cache.set('it/was', 42)\n    assert cache.get('it/was', 0)\n"
    )
    (root / "Makefile").write_text("all:\n\t@mkdir -p out; echo built > out/x; cat out/x\n")
    subprocess.run(f"git init -q; git add .; {GIT} commit -qm one", shell=True, cwd=root, check=True)


@pytest.mark.place
@pytest.mark.parametrize(
    ("line", "prints"),
    [
        ("sed -i 's/line 2$/line two/' notes.txt; cat notes.txt", "line two"),
        ("rm notes.txt; ls", "test_it.py"),
        ("make all", "built"),
        (f"echo new > new.txt; git add . && {GIT} commit -qm two && git log --format=%s", "two\none"),
        (f"{sys.executable} -m pytest -q -p no:randomly test_it.py", "1 passed"),
        ("f() { echo 42 | tee f.txt; }; f", "42"),
        ("mkfifo pipe; mkdir -m 0 shut; ln -s / root; head -c 100 /dev/zero > big; ls", "pipe"),
    ],
    ids=["edits", "deletes", "builds what git ignores", "commits", "tests", "not understood", "makes odd files"],
)
async def test_what_a_command_changes_is_thrown_away(tmp_path: Path, line: str, prints: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="plan") as d:
        project(d.root)
        before = tree(d.root)
        await d.prompt("plan it")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        (item,) = tool_calls(d)
        assert not state.approvals and item.state == "succeeded", item.output
        assert prints in item.output and THROWN_AWAY in item.output and THROWN_AWAY in d.told()
        assert tree(d.root) == before
        assert item.sandbox is not None and "is thrown away; it has no network" in item.sandbox.summary


@pytest.mark.parametrize("line", ["python3 -c 'print(6 * 7)'", "cat notes.txt", "echo 42; : >> notes.txt"])
async def test_nothing_is_said_of_a_command_that_changes_nothing(tmp_path: Path, line: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="plan") as d:
        await d.prompt("plan it")
        await d.ended()
        (item,) = tool_calls(d)
        assert item.state == "succeeded" and THROWN_AWAY not in d.told()


async def test_a_later_command_does_not_find_what_an_earlier_one_made(tmp_path: Path) -> None:
    """Neither while planning nor in another mode."""
    first, later = shell("mkdir out; echo built > out/x"), shell("ls; touch made")
    async with scripted_session(tmp_path, step("", first, later), DONE, step("", later), DONE, mode="plan") as d:
        (d.root / ".gitignore").write_text("out/\n")
        await d.prompt("plan it")
        await d.over("p1")
        await d.session.set_mode("acceptEdits")
        await d.prompt("do it", "p2")
        await d.over("p2")
        assert ["out" in item.output.split() for item in tool_calls(d)] == [False] * 3
        assert (d.root / "made").exists() and not (d.root / "out").exists()
        layers = Path(os.environ["AMANU_HOME"]) / "state" / "layers"
        assert len([path for path in layers.iterdir() if path.is_dir()]) == 1, "that of the session"


@pytest.mark.parametrize(
    ("line", "changes"), [("cat notes.txt", False), ("echo >> notes.txt; cat notes.txt", True), ("rm notes.txt", True)]
)
async def test_it_finds_unsaved_text(tmp_path: Path, line: str, changes: bool) -> None:
    async with scripted_session(tmp_path, step("", shell(f"f() {{ {line}; }}; f")), DONE, mode="plan") as d:
        Editor(d).type(2, "typed\n")
        await d.prompt("plan it")
        await d.ended()
        (item,) = tool_calls(d)
        assert ("typed" in item.output) == ("cat" in line) and (THROWN_AWAY in item.output) == changes
        assert "typed" not in d.file.read_text()


@pytest.mark.parametrize(("start", "then"), [("acceptEdits", "plan"), ("plan", "acceptEdits")])
async def test_a_command_that_a_change_of_the_mode_stopped_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Mode, then: Mode
) -> None:
    """In the last moment, when the sandbox is built."""
    writes = step("", call("run_shell_command", command="echo made > made.txt"))
    async with scripted_session(tmp_path, writes, step("I see."), mode=start) as d:
        loop, last_look = asyncio.get_running_loop(), "amanu.tools.shell.command_process._identities"

        def change_mode(need: SandboxRequirements) -> Sequence[str]:
            asyncio.run_coroutine_threadsafe(d.session.set_mode(then), loop).result()
            return ()

        monkeypatch.setattr(last_look, change_mode)
        await d.prompt("go")
        await d.ended()
        told = d.told()
        assert "The mode was changed just before this command started, so it was not run." in told
        assert "replaced" not in told and not (d.root / "made.txt").exists()
