"""Several questions that wait: one can be left for another."""

import asyncio
from pathlib import Path

import pytest

from amanu.cli.ui.dialog import Place
from amanu.cli.ui.terminal import LOOK_SECONDS
from amanu.permissions import approvals
from unit.cli.test_chat import ENTER, GUARD, Desk, desk, started, until_open, until_written

__all__ = ["desk"]
NEXT, PREVIOUS = "\x0e", "\x10"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", GUARD)


def write(name: str) -> dict[str, object]:
    return {"tool": "write_file", "arguments": {"path": name, "content": f"{name}\n"}}


ASKS = {
    "tool": "ask_user",
    "arguments": {
        "questions": [
            {"question": "Which?", "header": "H", "options": [{"label": name, "description": ""} for name in "AB"]}
        ]
    },
}


async def waiting(desk: Desk, tmp_path: Path, *calls: dict[str, object]) -> None:
    await started(desk, tmp_path, {"text": "So.", "calls": [*calls]}, {"text": "All done."})
    desk.types("go" + ENTER)
    await at(desk, 1, len(calls))


async def at(desk: Desk, number: int, count: int) -> None:
    """That question is open."""
    async with asyncio.timeout(50):
        while (dialog := desk.terminal.dialog) is None or dialog.asked.place() != Place(number, count):
            await asyncio.sleep(0.01)
    await until_open(desk)
    await asyncio.sleep(max(GUARD, 2 * LOOK_SECONDS))


async def test_each_can_be_gone_to_and_keeps_its_words(desk: Desk, tmp_path: Path) -> None:
    await waiting(desk, tmp_path, write("a.txt"), write("b.txt"), write("c.txt"))
    desk.keyboard.send_text("not th" + NEXT + "later")
    await desk.sees("? Create b.txt")
    await at(desk, 2, 3)
    assert desk.terminal.typed == "later"
    desk.keyboard.send_text(PREVIOUS)
    await desk.sees("? Create a.txt")
    await at(desk, 1, 3)
    await until_written(desk, "not th")
    desk.keyboard.send_text(PREVIOUS + PREVIOUS + NEXT)
    await desk.sees("? Create c.txt")
    await at(desk, 3, 3)
    desk.keyboard.send_text("a" + ENTER)
    await at(desk, 1, 2)
    await until_written(desk, "not th")
    desk.keyboard.send_text("is" + ENTER)
    await desk.sees("? Create b.txt")
    await at(desk, 1, 1)
    desk.keyboard.send_text(NEXT + "a" + ENTER)  # there is no other
    await desk.sees("All done.")
    assert sorted(path.name for path in desk.root.iterdir()) == ["b.txt", "c.txt"]


async def test_a_row_that_was_marked_is_marked_again(desk: Desk, tmp_path: Path) -> None:
    await waiting(desk, tmp_path, write("a.txt"), write("b.txt"))
    desk.keyboard.send_text("\x1b[B\x1b[B" + NEXT)
    await at(desk, 2, 2)
    assert marked(desk) == 0
    desk.keyboard.send_text(NEXT)
    await at(desk, 1, 2)
    assert marked(desk) == 2


def marked(desk: Desk) -> int:
    dialog = desk.terminal.dialog
    assert dialog is not None
    return dialog.index(dialog.rows(""))
