"""Play the tasks and write `bench/tasks.md`. With names of tasks or hands (`review`, `keyboard`) only those are played,
and nothing is written."""

import asyncio
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from bench.tasks import at_cursor, chat, first, report, review, sessions, stage
from bench.tasks.hand import Hand
from bench.tasks.task import Stage, Task
from support.vscode import VSCODE, shoot, tell

OUTPUT = Path(__file__).parents[1] / "tasks.md"
TASKS: list[Task] = [
    first.FirstAnswer(),
    review.Review(),
    sessions.TwoWait(),
    at_cursor.Fix(),
    chat.ChangeModel(),
    chat.ResendEdited(),
    chat.FollowLink(),
    chat.Stop(),
    review.UndoTurn(),
    sessions.FindLastWeeks(),
]
PLAY_SECONDS = 150


class Opening(Protocol):
    def __call__(
        self, folder: Path, scripts: stage.Scripts, settings: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[Stage]: ...


def main(wanted: list[str]) -> int:
    if not (VSCODE and os.environ.get("AMANU_WHEELHOUSE")):
        print("run: make bench-tasks", file=sys.stderr)
        return 1
    hands = [hand for hand in ("pointer", "keyboard") if hand in wanted] or ["pointer", "keyboard"]
    names = [each for each in wanted if each not in hands]
    tasks = [task for task in TASKS if not names or any(name in task.name for name in names)]
    played: report.Played = {}
    with tempfile.TemporaryDirectory(prefix="amanu-", ignore_cleanup_errors=True) as folder:
        for hand in hands:
            for number, opening in enumerate((stage.fresh, stage.daily)):
                group = [task for task in tasks if isinstance(task, first.FirstAnswer) == (opening is stage.fresh)]
                place = Path(folder) / f"{hand[0]}{number}"
                if group:
                    asyncio.run(play_all(opening, place, group, hand, played))
    if not wanted:
        OUTPUT.write_text(report.page(TASKS, played))
    print(report.page(tasks, played))
    return any(isinstance(each, str) for each in played.values())


async def play_all(opening: Opening, folder: Path, tasks: list[Task], hand: str, played: report.Played) -> None:
    """One after the other in one VS Code; one that fails leaves the others their turn."""
    for task in tasks:
        played[task.name, hand] = "VS Code did not start"
    try:
        settings = stage.READER if hand == "keyboard" else {}
        async with opening(folder, [task.script for task in tasks], settings) as place:
            for task in tasks:
                played[task.name, hand] = await play(task, place, hand, anew=opening is stage.daily)
    except BaseException as error:  # a missing Chromium, too, which ends a test
        traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):
            raise


async def play(task: Task, place: Stage, name: str, *, anew: bool) -> Hand | str:
    """The hand that played it, or why it failed."""
    hand = Hand(place.page, f"{task.name}-{name}", pointer=name == "pointer")
    try:
        async with asyncio.timeout(2 * PLAY_SECONDS):
            if anew:
                await stage.begin_anew(place)
            await task.prepare(place)
            await (task.pointer if name == "pointer" else task.keyboard)(place, hand)
            await task.result(place)
            hand.finish()
            hand.heard = [heard.replace(str(place.folder), "WORKSPACE") for heard in hand.heard]
            return hand
    except Exception as error:
        print(f"--- {task.name} by {name} failed", file=sys.stderr)
        traceback.print_exc()
        await shoot(place.page, f"{task.name}-{name}-failed")
        await tell(place.page)
        return (str(error) or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
