"""`write_todos`: what the model may write, and what it hears."""

from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import CallContext, ToolError
from amanu.tools.environment import ToolEnvironment
from amanu.tools.write_todos import WriteTodos
from amanu_protocol.items import Todo
from support.tool_harness import ToolHarness

CALL = CallContext("c", "t", 1)


def entry(text: str, status: str = "pending") -> dict[str, Any]:
    return {"text": text, "status": status}


async def check(tmp_path: Path, arguments: dict[str, Any]) -> tuple[list[Todo], str, str]:
    """What it sets, its title, its result."""
    written: list[Todo] = []
    harness = ToolHarness(tmp_path)
    tool = WriteTodos(ToolEnvironment(harness.workspace, harness.proposals, harness, {}, set_todos=written.extend))
    params = tool.parse(arguments).params
    title = (await tool.preview(params, CALL)).title
    return written, title, (await tool.run(params, CALL)).for_model


@pytest.mark.parametrize(
    ("todos", "written", "said"),
    [
        ([entry("Read"), entry("Write")], [("Read", "pending"), ("Write", "pending")], "0 of 2 done"),
        (
            [entry("Read", "done"), entry("Write", "in_progress"), entry("Sing", "cancelled")],
            [("Read", "done"), ("Write", "inProgress"), ("Sing", "cancelled")],
            "1 of 2 done · Write",
        ),
        ([{"content": "Read", "status": "completed"}], [("Read", "done")], "1 of 1 done"),
        ([entry("Read\nwrite", "in_progress")], [("Read\nwrite", "inProgress")], "0 of 1 done · Read<U+000A>write"),
        ([entry("a" * 99, "in_progress")], [("a" * 99, "inProgress")], f"0 of 1 done · {'a' * 55}…"),
        ([], [], "none"),
    ],
)
async def test_the_list_is_written_whole(
    tmp_path: Path, todos: list[dict[str, Any]], written: list[tuple[str, str]], said: str
) -> None:
    found, title, result = await check(tmp_path, {"todos": todos})
    assert [(todo.text, todo.status) for todo in found] == written
    assert title == f"To-dos: {said}" and result == f"To-dos: {said}."


@pytest.mark.parametrize(
    ("todos", "error"),
    [
        ([entry("a", "in_progress"), entry("b", "in_progress")], "2 to-dos are in_progress. Mark at most one"),
        ([entry("a", "blocked")], "'pending', 'in_progress', 'done' or 'cancelled'"),
        ([entry("")], "at least 1 character"),
        ([entry("a" * 201)], "at most 200 characters"),
        ([entry("a")] * 51, "at most 50 items"),
    ],
)
async def test_what_is_refused(tmp_path: Path, todos: list[dict[str, Any]], error: str) -> None:
    with pytest.raises(ToolError, match=error):
        await check(tmp_path, {"todos": todos})
