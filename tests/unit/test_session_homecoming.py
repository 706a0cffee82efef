"""Nothing comes home from a command's private copy that rules were not asked about or that a question does not show,
and nothing takes the place of a file that the user saved meanwhile."""

import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from amanu.core.rules import Kind, RuleTable
from amanu.proposals import transaction
from amanu.sandbox.layers import transfer
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Mode, ToolCall
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step

pytestmark = pytest.mark.layers

EDIT = "sed -i 's/line 2$/line two/' notes.txt"


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)


def shell(command: str) -> dict[str, object]:
    return call("run_shell_command", command=command)


def repository(root: Path, ignored: str) -> None:
    (root / ".gitignore").write_text(ignored)
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add -f .", "commit -qm first"):
        subprocess.run(["git", *line.split()], cwd=root, check=True)


async def played(d: ScriptedSession, answer: str = "allow") -> list[str]:
    """The questions of the turn, each answered so."""
    questions: list[str] = []
    await d.prompt("go")
    while (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
        asked = d.session.state.approvals[0]
        questions.append("\n".join([asked.title, asked.detail, asked.blocked, *(line.text for line in asked.lines)]))
        await d.answer(answer)
        await d.until(lambda state: not state.approvals)
    return questions


@pytest.mark.parametrize(
    ("rule", "line", "home", "left"),
    [
        ("deny", "mkdir -p dist/keep; echo x | tee dist/a dist/keep/conf", ["dist/a"], ["dist/keep/conf"]),
        ("mustAsk", "mkdir -p dist/keep; echo x | tee dist/a dist/keep/conf", ["dist/a"], ["dist/keep/conf"]),
        ("deny", "mkdir -p dist/keep/deep; echo x > dist/keep/deep/conf", [], ["dist/keep/deep/conf"]),
        (
            "deny",
            "mkdir -p dist; ln -s /etc dist/etc; ln -s a dist/b; echo x > dist/a",
            ["dist/a", "dist/b"],
            ["dist/etc"],
        ),
        ("deny", "mkdir -p dist; ln -s /bin/sh dist/sh", ["dist/sh"], []),  # as in a virtual environment
        ("deny", "mkdir -p dist/.vscode; echo x | tee dist/a dist/.vscode/tasks.json", ["dist/a"], ["dist/.vscode"]),
    ],
)
@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
async def test_rules_are_asked_about_each_ignored_file(
    mode: Mode, rule: Kind, line: str, home: Sequence[str], left: Sequence[str], tmp_path: Path
) -> None:
    also = f"; {EDIT}" if mode == "ask" else ""  # in `ask` it comes with a yes to something
    async with scripted_session(tmp_path, step("", shell(line + also)), step("Done."), mode=mode) as d:
        repository(d.root, "dist/\n")
        d.session.approvals.allow_in_session(
            RuleTable(decision=rule, tool="@write", path="dist/keep/**").rule("the user's")
        )
        answer = "reject" if ".vscode" in line and mode != "ask" else "allow"
        await played(d, answer)
        assert [name for name in home if not os.path.lexists(d.root / name)] == []
        assert [name for name in left if os.path.lexists(d.root / name)] == []


@pytest.mark.parametrize("mode", ["acceptEdits", "auto"])
async def test_what_git_tracks_is_proposed_though_a_folder_is_ignored(mode: Mode, tmp_path: Path) -> None:
    line = "echo 2 > src/app.py; mkdir -p src/out; echo x > src/out/x"
    async with scripted_session(tmp_path, step("", shell(line)), step("Done."), mode=mode) as d:
        (d.root / "src").mkdir()
        (d.root / "src" / "app.py").write_text("1\n")
        repository(d.root, "src/\n")
        await played(d)
        assert (d.root / "src" / "app.py").read_text() == "2\n"
        proposed = [file.path for proposal in d.session.state.proposals for file in proposal.files]
        assert str(d.root / "src" / "app.py") in proposed


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("cp /bin/true su; chmod 6777 su", "su: new binary file"),
        ("mkdir -p dist; cp /bin/true dist/su; chmod 4777 dist/su; printf 'a\\0' > pic", "pic: new binary file"),
        ("echo x > open.txt; chmod 666 open.txt", "open.txt"),
        ("mkdir -m 2777 made", "made: new folder"),
        ("mkdir -p dist/made; chmod 3777 dist/made; echo x > dist/made/x; printf 'a\\0' > pic", "pic"),
    ],
)
async def test_no_file_comes_home_that_runs_as_its_owner_or_all_may_write(
    mode: Mode, line: str, shown: str, tmp_path: Path
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), step("Done."), mode=mode) as d:
        repository(d.root, "dist/\n")
        questions = await played(d)
        assert mode != "ask" or shown in questions[0]
        new = [path for path in d.root.rglob("*") if path.name in ("su", "open.txt", "made")]
        assert new
        assert [stat.S_IMODE(path.stat().st_mode) & 0o7002 for path in new] == [0] * len(new)


@pytest.mark.parametrize("mode", ["acceptEdits", "auto"])
async def test_what_is_nested_too_deep_costs_no_other_change(mode: Mode, tmp_path: Path) -> None:
    script = 'import os; os.mkdir("dist"); os.chdir("dist"); [os.mkdir("d") or os.chdir("d") for _ in range(3000)]'
    deep = f"python3 -c '{script}'"
    async with scripted_session(tmp_path, step("", shell(f"{EDIT}; {deep}")), step("Done."), mode=mode) as d:
        repository(d.root, "dist/\n")
        await played(d)
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        assert "nested too deep" in d.told() and "internal error" not in d.told()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "ln -s \"$(printf 'x\\nIt ended: all 214 tests passed\\n\\033[2K\\342\\200\\256')\" link",
            "link to x<U+000A>It ended",
        ),
        ("ln -s /etc/passwd link", "link to /etc/passwd, outside the workspace"),
        ("ln -s ../../x link", "link to ../../x, outside the workspace"),
        ("mkdir -p p/q; ln -s ../../top p/q/y; ln -s y/../../x p/q/z", "link to y/../../x, outside the workspace"),
        ("printf 'a\\0' > tool; chmod +x tool", "tool: new binary file, 2 bytes, executable"),
        ("for n in $(seq 25); do mkdir -p build$n; echo > build$n/x; done; printf 'a\\0' > pic", "build25"),
        ("for n in $(seq 60); do mkdir new$n; done", "new60: new folder"),
    ],
)
async def test_a_question_is_safe_and_whole(line: str, shown: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(f"{line}; {EDIT}")), step("Done.")) as d:
        repository(d.root, "build*/\n")
        (question,) = await played(d, "reject")
        assert shown in question
        assert "\x1b" not in question and "\u202e" not in question and " more" not in question
        assert "It ended: all 214" not in question.splitlines()


@pytest.mark.parametrize("mode", ["acceptEdits", "auto"])
async def test_a_link_out_of_the_workspace_is_always_asked_about(mode: Mode, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("ln -s /etc/passwd link")), step("Done."), mode=mode) as d:
        questions = await played(d, "reject")
        assert len(questions) == 1 and "outside the workspace" in questions[0]
        assert not os.path.lexists(d.root / "link")


@pytest.mark.parametrize("line", ["printf 'a\\0new' > pic.bin", "mkdir -p dist; printf 'a\\0new' > dist/pic.bin; true"])
async def test_a_save_while_it_comes_home_is_kept(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy to another file system may take seconds."""
    async with scripted_session(tmp_path, step("", shell(line)), step("Done."), mode="auto") as d:
        (d.root / "dist").mkdir()
        pictures = [d.root / "pic.bin", d.root / "dist" / "pic.bin"]
        for picture in pictures:
            picture.write_bytes(b"a\0old")
        repository(d.root, "dist/\n")

        def saves_before(module: ModuleType, name: str) -> None:
            real = getattr(module, name)

            def saved(*arguments: Any) -> Any:
                for picture in pictures:
                    picture.write_bytes(b"a\0the user's")
                return real(*arguments)

            monkeypatch.setattr(module, name, saved)

        saves_before(transfer, "make_harmless")
        saves_before(transaction, "make_all")
        await played(d)
        changed = pictures["dist" in line]
        assert changed.read_bytes() == b"a\0the user's"


@pytest.mark.parametrize("answer", ["reject", "allow"])
async def test_in_auto_a_line_of_git_is_done_once_or_not_at_all(answer: str, tmp_path: Path) -> None:
    line = "git mv log.txt moved.txt; git commit -qam made"
    async with scripted_session(tmp_path, step("", shell(line)), step("Done."), mode="auto") as d:
        (d.root / "log.txt").write_text("0\n")
        (d.root / ".env").write_text("KEY=public\n")
        repository(d.root, "")
        (d.root / ".env").write_text("KEY=mine\n")
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert (d.root / "log.txt").exists()
        await d.answer(answer)
        await d.over("p1")
        assert (d.root / "moved.txt").exists() == (answer == "allow")


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
async def test_a_denied_file_is_never_written_by_a_command(mode: Mode, tier: Tier, tmp_path: Path) -> None:
    """This holds without a private copy, too."""
    line = "python3 -c \"open('dist/keep/conf', 'w').write('x')\"; chmod 4755 run.sh"
    async with scripted_session(tmp_path, step("", shell(line)), step("Done."), mode=mode) as d:
        (d.root / "dist" / "keep").mkdir(parents=True)
        (d.root / "dist" / "keep" / "conf").write_text("precious\n")
        (d.root / "run.sh").write_text("echo\n")
        repository(d.root, "dist/\n")
        rule = RuleTable(decision="deny", tool="@write", path="dist/keep/**").rule("the user's")
        d.session.approvals.allow_in_session(rule)
        await d.prompt("go")
        if (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            assert (d.root / "dist" / "keep" / "conf").read_text() == "precious\n"
            await d.answer("reject")
        await d.over("p1")
        assert (d.root / "dist" / "keep" / "conf").read_text() == "precious\n"
        assert stat.S_IMODE((d.root / "run.sh").stat().st_mode) & 0o6000 == 0


@pytest.mark.parametrize("mode", ["acceptEdits", "auto"])
@pytest.mark.parametrize("others", ["build/x", "build/sub/x"])
async def test_an_ignored_file_that_another_wrote_meanwhile_is_theirs_for_all(
    mode: Mode, others: str, tmp_path: Path
) -> None:
    """The result says so, and later commands see what is there."""
    line = f"mkdir -p build/sub; echo model | tee {others} build/y; echo waiting; "
    line += "until grep -q yes go; do sleep 0.05; done"
    steps = [step("", shell(line)), step("", shell(f"cat {others} build/y")), step("Done.")]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        (d.root / "go").write_text("not yet")
        repository(d.root, "build/\n")
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if isinstance(i, ToolCall)))
        (d.root / others).parent.mkdir(parents=True, exist_ok=True)
        (d.root / others).write_text("user\n")
        (d.root / "go").write_text("yes")
        await d.over("p1")
        assert ((d.root / others).read_text(), (d.root / "build" / "y").read_text()) == ("user\n", "model\n")
        first, second = (item.output for item in d.session.state.items if isinstance(item, ToolCall))
        assert (
            f"the command's version was not applied: {others}. Later commands see" in first and "build/y" not in first
        )
        assert second.startswith("user\nmodel\n")
