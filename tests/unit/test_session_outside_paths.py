"""Paths outside the workspace that a command line names, in folders that the sandbox hides: a program that is called by
its path runs, with its installation; of another path that exists nobody is told that it is missing."""

import os
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Mode, ToolCall
from support.agent_session import ask_agent, complete, nested, session_with_agents
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample_pairs

pytestmark = [pytest.mark.layers, pytest.mark.place, pytest.mark.usefixtures("tier")]

DONE = step("Done.")
TIERS: Sequence[Tier] = ("bubblewrap", "landlock")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with a program and a module."""
    folder = tmp_path_factory.mktemp("environments") / "shop"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "greeting.py").write_text("print('hello from', __name__)")
    script = folder / "bin" / "greet"
    script.write_text(f"#!{folder}/bin/python\nimport greeting\n")
    script.chmod(0o755)
    return folder


@pytest.fixture
def home(environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with that environment, another project, scripts of the user's, and secrets."""
    home = environment.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    if home.exists():
        return home
    for folder in ("notes", "bin", ".ssh", "venvs"):
        (home / folder).mkdir(parents=True)
    (home / "venvs" / "shop").symlink_to(environment)
    (home / "notes" / "todo.txt").write_text("buy milk\n")
    (home / "notes" / "of today.txt").write_text("nothing\n")
    key = home / ".ssh" / "id_test"
    key.write_text("#!/bin/sh\necho not for it\n")
    key.chmod(0o755)
    for name, script in {
        "shout": "#!/bin/sh\necho LOUD; cat $(dirname $0)/private\n",
        "private": "not for it\n",
    }.items():
        (home / "bin" / name).write_text(script)
        (home / "bin" / name).chmod(0o755)
    return home


def shell(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, **more)


def only_call(d: ScriptedSession) -> ToolCall:
    (item,) = [item for item in d.session.state.items if item.kind == "toolCall" and item.tool == "run_shell_command"]
    return item


RUNS: Sequence[tuple[str, str]] = [
    ("{environment}/bin/python -m greeting", "hello from"),
    ("{environment}/bin/greet | cat", "hello from"),
    ("../../environments0/shop/bin/greet", "hello from"),
    ("$HOME/venvs/shop/bin/python -c 'import greeting'", "hello from"),
    ("env CI=1 {environment}/bin/python -m greeting && echo x > made.txt", "hello from"),
    ("~/bin/shout 2>/dev/null || true", "LOUD"),
]


RUN_IN = [*(("ask", *run) for run in RUNS), *((mode, *run) for mode in ("plan", "draft") for run in RUNS[:2])]


@pytest.mark.parametrize(
    ("mode", "line", "prints", "tier"), [(*run, tier) for run, tier in sample_pairs(RUN_IN, TIERS)], indirect=["tier"]
)
async def test_a_program_called_by_its_path_runs(
    tmp_path: Path, environment: Path, home: Path, mode: Mode, line: str, prints: str
) -> None:
    line = line.format(environment=environment)
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        item = only_call(d)
        assert prints in item.output, item.output
        asked = [approval.title for approval in state.approvals]
        assert not asked or "made.txt" in line, asked


@pytest.mark.parametrize(
    "line",
    [
        "~/bin/shout",
        "~/.ssh/id_test",
        "~/bin/shout; ~/venvs/shop/bin/python -c 'print(open(\"{home}/bin/private\").read())'",
    ],
)
async def test_nothing_else_becomes_readable_unasked(tmp_path: Path, environment: Path, home: Path, line: str) -> None:
    line = line.format(home=home)
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.last_turn)
        assert "not for it" not in only_call(d).output


HIDDEN: Sequence[str] = [
    "cat ~/notes/todo.txt",
    "cat {home}/notes/todo.txt | head -1",
    "cat '{home}/notes/of today.txt'",
    "cat $HOME/notes/*.txt 2>/dev/null",
    "test -f ~/notes/todo.txt && echo there || echo missing",
    "[ -d {home}/notes ] || exit 0",
    "ls ~/notes 2>/dev/null || echo none",
    "cd ~/notes && ls",
    "python3 -c 'print(open(\"{home}/notes/todo.txt\").read())'",
    "bash {home}/bin/shout",
    "source ~/venvs/shop/bin/activate",
    "wc -l < ~/notes/todo.txt",
    "python3 --version; sort --files0-from={home}/notes/todo.txt",
]


NAMED_IN = [*(("ask", line) for line in HIDDEN), *((mode, line) for mode in ("plan", "draft") for line in HIDDEN[:4])]


@pytest.mark.parametrize(
    ("mode", "line", "tier"), [(*named, tier) for named, tier in sample_pairs(NAMED_IN, TIERS)], indirect=["tier"]
)
async def test_another_path_is_asked_about_and_never_told_as_missing(
    tmp_path: Path, environment: Path, home: Path, mode: Mode, line: str
) -> None:
    line = line.format(home=home)
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        if mode == "plan":
            assert not state.approvals and "hidden by the sandbox, not missing" in d.told(), only_call(d).output
            return
        (asked,) = state.approvals
        assert asked.likely_grants == ["unsandboxed"] and "the sandbox hides" in str(asked), asked
        await d.answer("reject")
        await d.ended()
        assert "hidden by the sandbox, not missing" in d.told()


NOT_ASKED: Sequence[str] = [
    "cat ~/notes/gone.txt",
    "grep -rn {home}/notes . || true",
    "echo see {home}/notes/todo.txt",
    "git log --grep={home}/notes/todo.txt 2>/dev/null || true",
    "test -e {shared} && echo yes || echo no",
]


@pytest.mark.parametrize(
    ("line", "tier"),
    [
        *((line, tier) for line in NOT_ASKED for tier in TIERS),
        ("false > {shared}", "bubblewrap"),  # Landlock closes that folder, and does not replace it
    ],
    indirect=["tier"],
)
async def test_a_path_that_is_missing_or_not_missed_is_no_question(
    tmp_path: Path, environment: Path, home: Path, line: str
) -> None:
    shared = Path(f"/tmp/amanu-test-{os.getpid()}")
    line = line.format(home=home, shared=shared)
    shared.touch()
    try:
        async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
            await d.prompt("go")
            state = await d.until(lambda state: state.approvals or state.last_turn)
            assert not state.approvals, state.approvals[0].detail
            assert "hidden by" not in d.told()
    finally:
        shared.unlink()


async def test_a_yes_shows_it(tmp_path: Path, home: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("cat ~/notes/todo.txt")), DONE) as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        await d.answer("allow", grants=asked.likely_grants)
        await d.ended()
        assert "buy milk" in only_call(d).output


async def test_where_nobody_is_the_model_learns_that_it_is_hidden(tmp_path: Path, home: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("cat ~/notes/todo.txt")), DONE, headless=True) as d:
        await d.prompt("go")
        await d.ended()
        assert "hidden by the sandbox, not missing" in d.told() and "buy milk" not in d.told()


async def test_in_the_background_the_model_learns_that_it_is_hidden(tmp_path: Path, home: Path) -> None:
    calls = shell(
        "{ ~/venvs/shop/bin/python -m greeting; cat ~/notes/todo.txt; }", background=True, until="it ends before"
    )
    async with scripted_session(tmp_path, step("", calls), DONE, mode="auto") as d:
        await d.prompt("go")
        await d.ended()
        assert "hello from" in d.told() and "not missing" in d.told(), d.told()


async def test_a_sub_agent_is_asked_for_by_its_name(tmp_path: Path, home: Path) -> None:
    agents = {"helper": [step("", shell("cat ~/notes/todo.txt")), step("", complete())]}
    async with session_with_agents(tmp_path, agents, step("", ask_agent("helper")), DONE) as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.agent == "helper" and "the sandbox hides" in str(asked)
        await d.answer("reject")
        await d.ended()
        assert "not missing" in nested(d)[0].output
