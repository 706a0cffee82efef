"""Drafted changes besides text, in later commands and turns, with sub-agents, and after a restart or a rewind."""

from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import CheckpointPreviewParams, CheckpointRestoreParams
from amanu_protocol.state import SessionState
from support.agent_session import agent, ask_agent, complete, session_with_agents
from support.draft_session import DONE, decide_all, edit, end_daemon, open_drafts, results, turn
from support.required_programs import needs
from support.row_session import all_states, changed, changed_by, files, look, name, over, rows
from support.scripted_session import conversation, scripted_session, step
from support.session_client import until
from unit.test_session_layer import shell
from unit.test_session_rows import KINDS

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_later_commands_find_what_is_drafted_and_leave_it_alone(
    tmp_path: Path, kind: str, restarts: bool
) -> None:
    line, changes, _ = KINDS[kind]
    steps = [step("", shell(line)), DONE, step("", shell("true")), DONE, step("", shell("ls -lR")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        await turn(d)
        drafted = [(row.row_id, row.digest) for row in rows(d)]
        for prompt_id in ("p2", "p3"):
            if restarts:
                await end_daemon(d)
            await turn(d, prompt_id)
        assert [(row.row_id, row.digest) for row in rows(d)] == drafted
        for path, text in changes.items():
            shown = text is not None and text != "/"
            assert (f" {path.rpartition('/')[2]}" in results(d)[-1]) == shown or text == "/", path
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, changes)


BACK = {
    "new file": "rm new.bin",
    "new file in a new folder": "rm -r a",
    "replaced file": "printf 'old\\0' > pic.bin",
    "replaced and executable": "printf 'old\\0' > pic.bin; chmod -x pic.bin",
    "text instead of a binary file": "printf 'old\\0' > pic.bin",
    "deleted file": "printf 'old\\0' > pic.bin",
    "moved file": "mv moved.bin pic.bin",
    "new link": "rm made",
    "link to somewhere else": "ln -sfn notes.txt link",
    "deleted link": "ln -s notes.txt link",
    "link instead of a file": "rm pic.bin; printf 'old\\0' > pic.bin",
    "file instead of a link": "ln -sf notes.txt link",
    "text that becomes executable": "chmod -x tool.sh",
    "text that is executable no longer": "chmod +x run.sh",
    "new executable text": "rm new.sh",
    "binary file that becomes executable": "chmod -x pic.bin",
    "new folder": "rm -r a",
    "deleted empty folder": "mkdir empty",
    "deleted folder": "mkdir -p sub/deep; echo a > sub/a.txt; printf 'b\\0' > sub/deep/b.bin",
}
"""Commands that undo what was drafted."""


@pytest.mark.parametrize("kind", BACK)
async def test_nothing_is_left_of_what_a_later_command_undoes(tmp_path: Path, kind: str) -> None:
    async with changed_by(tmp_path, "draft", KINDS[kind][0], BACK[kind], "true") as d:
        assert [f"{row.kind} {name(d, row)}" for row in rows(d)] == []
        assert not open_drafts(d)


async def test_a_change_has_an_id_of_its_own(tmp_path: Path) -> None:
    """It has one even after another change was dropped and the daemon was started again."""
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0' > a.bin; printf 'b\\0' > b.bin")),
        step("", shell("rm a.bin")),
        DONE,
        step("", shell("chmod +x notes.txt")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await end_daemon(d)
        await turn(d, "p2")
        assert {name(d, row) for row in rows(d)} == {"b.bin", "notes.txt"}
        assert len({row.row_id for row in rows(d)}) == 2


def commands(state: SessionState) -> list[ToolCall]:
    return [item for item in state.items if item.kind == "toolCall" and item.tool == "run_shell_command"]


OVERTAKEN = "Not drafted, because another command drafted another version while this one ran: pic.bin."


@pytest.mark.parametrize("before", ["", "printf 'first\\0' > pic.bin"], ids=["", "drafted before"])
@pytest.mark.parametrize(
    ("line", "later", "refused"),
    [
        ("printf 'agent\\0' > pic.bin", "printf 'parent\\0' > pic.bin", True),
        ("printf 'agent\\0' > pic.bin", "rm pic.bin", True),
        ("rm pic.bin", "printf 'parent\\0' > pic.bin", True),
        ("ln -sf link pic.bin", "ln -sf notes.txt pic.bin", True),
        ("mv pic.bin other.bin", "printf 'parent\\0' > pic.bin", True),
        ("printf 'same\\0' > pic.bin", "printf 'same\\0' > pic.bin", False),
        ("printf 'agent\\0' > other.bin", "printf 'parent\\0' > pic.bin", False),
    ],
)
async def test_of_two_agents_that_change_one_file_the_later_is_refused(
    tmp_path: Path, before: str, line: str, later: str, refused: bool
) -> None:
    """The later one is told so, and the draft of the earlier one stays."""
    wait = "echo waiting; until grep -q yes go; do sleep 0.02; done"
    worker = [step("", shell(f"{wait}; {line}; echo x > text.txt")), step("", complete())]
    steps = [
        *([step("", shell(before))] if before else []),
        step("", ask_agent("worker", background=True)),
        DONE,
        step("", shell(later)),
        DONE,
        DONE,
    ]
    async with session_with_agents(tmp_path, {"worker": worker}, *steps, mode="draft") as d:
        files(d.root)
        (d.root / "go").write_text("not yet")
        await turn(d)
        child = await d.sessions.get(agent(d).session_id)
        await until(child, lambda state: any("waiting" in call.output for call in commands(state)))
        await turn(d, "p2")
        drafted = {Path(row.path).name: row.after for row in rows(d)}
        (d.root / "go").write_text("yes")
        await d.until(lambda state: state.agents[0].state == "completed")
        (told,) = [result.text for result in conversation(child).results() if "Exit code" in result.text]
        assert (OVERTAKEN in told) == refused
        assert {Path(row.path).name: row.after for row in rows(d) if "other" not in row.path} == drafted
        assert [Path(file.path).name for each in d.session.state.proposals for file in each.files] == ["text.txt"]


async def test_of_two_sub_agents_that_change_one_file_the_later_is_refused(tmp_path: Path) -> None:
    def worker(name: str) -> list[dict[str, Any]]:
        wait = f"echo waiting; until grep -q {name} go; do sleep 0.02; done"
        return [step("", shell(f"{wait}; printf '{name}\\0' > pic.bin; echo x > {name}.txt")), step("", complete())]

    names = ("first", "second")
    steps = [*(step("", ask_agent(name, background=True)) for name in names), DONE, DONE, DONE]
    agents = {name: worker(name) for name in names}
    async with session_with_agents(tmp_path, agents, *steps, mode="draft") as d:
        files(d.root)
        (d.root / "go").write_text("not yet")
        await turn(d)
        children = [await d.sessions.get(agent(d, number).session_id) for number in (1, 2)]
        for child in children:
            await until(child, lambda state: any("waiting" in call.output for call in commands(state)))
        told: list[bool] = []
        for name, child, state in zip(names, children, d.session.state.agents, strict=True):
            (d.root / "go").write_text(name)
            number = state.agent_id
            await d.until(lambda state: agent_state(state, number) == "completed")  # noqa: B023
            told += [OVERTAKEN in each.text for each in conversation(child).results() if "Exit code" in each.text]
        assert told == [False, True]
        await decide_all(d, "accept")
        assert look(d.root)["pic.bin"] == "first\0" and {*all_states(d)} == {"applied"}
        assert look(d.root)["first.txt"] == look(d.root)["second.txt"] == "x\n"


def agent_state(state: SessionState, agent_id: str) -> str:
    return next(each.state for each in state.agents if each.agent_id == agent_id)


TAKEN_BACK = ["rm made", "rm new.bin", "printf 'old\\0' > pic.bin", "chmod -x tool.sh", "rmdir a"]
"""Commands that undo what an earlier turn drafted."""
REWINDS: list[tuple[list[str], int, dict[str, str | None]]] = [
    (["printf '1\\0' > pic.bin", "printf '2\\0' > pic.bin", "printf '3\\0' > pic.bin"], 3, {"pic.bin": "2\0"}),
    (["printf '1\\0' > pic.bin", "printf '2\\0' > pic.bin", "printf '3\\0' > pic.bin"], 2, {"pic.bin": "1\0"}),
    (["printf '1\\0' > pic.bin", "printf '2\\0' > pic.bin", "printf '3\\0' > pic.bin"], 1, {}),
    (["printf '1\\0' > pic.bin", "rm pic.bin", "true"], 2, {"pic.bin": "1\0"}),
    (["rm pic.bin", "printf '2\\0' > pic.bin", "true"], 2, {"pic.bin": None}),
    (["ln -s pic.bin made", "ln -sfn notes.txt made", "rm made"], 3, {"made": "-> notes.txt"}),
    (["ln -s pic.bin made", "rm made; printf '2\\0' > made", "true"], 2, {"made": "-> pic.bin"}),
    (["printf '1\\0' > new.bin", "rm new.bin", "true"], 2, {"new.bin": "1\0"}),
    (["printf '1\\0' > pic.bin", "printf 'old\\0' > pic.bin", "true"], 2, {"pic.bin": "1\0"}),
    (["chmod +x tool.sh", "chmod -x tool.sh", "true"], 2, {"tool.sh": "755: echo\n"}),
    (["true", "chmod +x tool.sh", "true"], 2, {}),
    (["mkdir a", "rmdir a", "true"], 2, {"a": "/"}),
]
"""The commands of three turns, the turn that is rewound with those after it, and what a yes changes then."""


@pytest.mark.parametrize(
    ("restarts", "lines", "back_to", "expected"),
    [(restarts, *case) for restarts in (False, True) for case in REWINDS],
)
async def test_a_rewind_brings_earlier_versions_back(
    tmp_path: Path, restarts: bool, lines: list[str], back_to: int, expected: dict[str, str | None]
) -> None:
    """Commands find them, and a yes applies them."""
    path = next(iter(expected), "pic.bin")
    kinds = f"elif [ -f {path} ]; then tr '\\0' . < {path}; elif [ -d {path} ]; then echo /"
    show = f"if [ -L {path} ]; then readlink {path}; {kinds}; else echo none; fi"
    # a turn that is rewound is played again
    steps = [
        each for line in lines for each in (step("", shell(f"if [ -e shows ]; then {show}; else {line}; fi")), DONE)
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        for at in range(1, 4):
            await turn(d, f"p{at}")
            if restarts:
                await end_daemon(d)
        params = CheckpointRestoreParams(session_id="s", turn_id=f"turn-p{back_to}", conversation=True)
        await d.session.checkpoints.restore(params)
        if restarts:
            await end_daemon(d)
        assert look(d.root) == before
        after = changed(before, expected)
        (d.root / "shows").mkdir()
        await turn(d, "p4")
        shown = after.get(path, "none").removeprefix("755: ").removeprefix("-> ").replace("\0", ".")
        assert results(d)[-1].startswith(shown)
        await decide_all(d, "accept")
        assert look(d.root) == after | {"shows": "/"}


@pytest.mark.parametrize("mode", ["acceptEdits", "draft"])
async def test_going_back_names_no_command_whose_changes_can_be_undone(tmp_path: Path, mode: Mode) -> None:
    async with changed_by(tmp_path, mode, "printf 'x\\0' > made.bin", "ls") as d:
        await over(d)
        params = CheckpointPreviewParams(session_id="s", turn_id="turn-p1")
        assert (await d.session.checkpoints.preview(params)).commands == []
        assert "Run ls" in (await d.session.checkpoints.list()).checkpoints[0].commands
