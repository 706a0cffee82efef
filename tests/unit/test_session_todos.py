"""The to-do list of a session: in its state, through turns, compactions, restarts and rewinds; and the reminder."""

from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session.todos import KEPT, PATIENCE, REMINDER
from amanu_protocol.items import Mode, Todo, TodoList
from amanu_protocol.requests import CheckpointRestoreParams
from support.scripted_session import ScriptedSession, call, scripted_session, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def writes(**todos: str) -> dict[str, Any]:
    return step("", call("write_todos", todos=[{"text": text, "status": status} for text, status in todos.items()]))


def reads(count: int) -> list[dict[str, Any]]:
    return [step("", call("read_file", path="notes.txt", start_line=1 + at)) for at in range(count)]


def kept(d: ScriptedSession) -> dict[str, str]:
    return {todo.text: todo.status for todo in d.session.state.todos}


def lists(d: ScriptedSession) -> list[str]:
    return [item.summary for item in d.session.state.items if isinstance(item, TodoList)]


@pytest.mark.parametrize("mode", ["plan", "ask", "auto"])
async def test_needs_no_approval_and_is_cleared_when_a_turn_ends_with_all_done(tmp_path: Path, mode: Mode) -> None:
    steps = [writes(read="in_progress", write="pending"), writes(read="done", write="cancelled"), step("Done.")]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        await d.prompt("do it")
        await d.ended()
        assert kept(d) == {} and d.session.state.todos_summary == ""
        assert lists(d) == ["1 of 1 done"], "progress is shown in the list's place"


async def test_unfinished_ones_outlive_turn_restart_and_compaction(tmp_path: Path) -> None:
    steps = [writes(read="in_progress", write="pending"), *reads(9), step("So far."), step("Summary."), step("Done.")]
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("do it", "p1")
        await d.over("p1")
        await d.reopen()
        assert kept(d) == {"read": "inProgress", "write": "pending"}
        await d.prompt("/compact", "p2")
        await d.over("p2")
        assert KEPT not in d.told()
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert d.told().count(KEPT) == 1 and "- in_progress: read\\n- pending: write" in d.told()
        assert kept(d) == {"read": "inProgress", "write": "pending"}


@pytest.mark.parametrize(
    ("steps", "reminders"),
    [
        ([*reads(2 * PATIENCE)], 0),
        ([writes(a="pending"), *reads(PATIENCE - 1)], 0),
        ([writes(a="pending"), *reads(PATIENCE)], 1),
        ([writes(a="pending"), *reads(2 * PATIENCE - 1)], 1),
        ([writes(a="pending"), *reads(2 * PATIENCE)], 2),
        ([writes(a="pending"), *reads(PATIENCE - 1), writes(a="in_progress"), *reads(PATIENCE - 1)], 0),
        ([writes(a="done"), *reads(PATIENCE)], 0),
    ],
)
async def test_the_reminder(tmp_path: Path, steps: list[dict[str, Any]], reminders: int) -> None:
    async with scripted_session(tmp_path, *steps, step("Done.")) as d:
        await d.prompt("do it")
        await d.ended()
        assert d.told().count(REMINDER) == reminders


async def test_a_rewind_brings_back_what_stood_then(tmp_path: Path) -> None:
    steps = [writes(read="in_progress"), step("1."), writes(read="done", write="pending"), step("2."), step("3.")]
    async with scripted_session(tmp_path, *steps) as d:
        for at in ("p1", "p2"):
            await d.prompt("go on", at)
            await d.over(at)
        assert kept(d) == {"read": "done", "write": "pending"}
        for turn, expected in (("turn-p2", {"read": "inProgress"}), ("turn-p1", {})):
            await d.session.checkpoints.restore(
                CheckpointRestoreParams(session_id="s", turn_id=turn, files=False, conversation=True)
            )
            assert kept(d) == expected


async def test_an_approved_plan_sets_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Planned.")) as d:
        await d.prompt("plan it")
        await d.ended()
        for text in ("read", "write"):
            d.session.core.todos.set([Todo(text=text, status="pending")])
        assert kept(d) == {"write": "pending"} and lists(d) == ["0 of 1 done"] * 2
