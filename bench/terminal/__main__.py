"""`python -m bench.terminal`: measure and play, print the page, write `bench/terminal.md`."""

import argparse
import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.stage import Stage
from bench.terminal import rows
from bench.terminal.page import page
from bench.terminal.play import Played, play
from bench.terminal.programs import PLACE, Program, programs
from bench.terminal.task import Task, load

OUTPUT = Path(__file__).parents[1] / "terminal.md"
SCREENS = Path(__file__).with_name("screens")


def main() -> int:
    arguments = _arguments()
    if shutil.which("tmux") is None:
        print("tmux is needed.", file=sys.stderr)
        return 1
    found, problems = programs()
    tasks = [task for task in load() if not arguments.task or task.name.startswith(tuple(arguments.task))]
    before = os.getloadavg()[0]
    figures, unmeasured = asyncio.run(rows.measure(found, arguments.repeat)) if arguments.repeat else ({}, [])
    between = os.getloadavg()[0]
    played = asyncio.run(_play_all(found, tasks))
    versions = ", ".join(f"{each.name} {each.version}" for each in found)
    how = (
        f"<!-- `python -m bench.terminal --repeat {arguments.repeat}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; "
        f"{versions}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {before:.1f} at the start, {between:.1f} after the rows -->"
    )
    text = page(how, [each.name for each in found], figures, tasks, played, [*problems, *unmeasured])
    print(text)
    if not arguments.task and arguments.repeat:
        OUTPUT.write_text(text)
        _keep(played)
    return 0


async def _play_all(found: Sequence[Program], tasks: Sequence[Task]) -> dict[tuple[str, str], Played]:
    played: dict[tuple[str, str], Played] = {}
    async with Stage(PLACE) as stage:
        for task in tasks:
            for program in found:
                hand = task.hands[program.name]
                if not isinstance(hand, str):
                    result = played[task.name, program.name] = await play(stage, task, program, hand)
                    said = result.failure or f"{result.seconds:.1f} s"
                    print(f"{task.name}, {program.name}: {said}", file=sys.stderr, flush=True)
    return played


def _keep(played: dict[tuple[str, str], Played]) -> None:
    SCREENS.mkdir(exist_ok=True)
    for (task, name), each in played.items():
        (SCREENS / f"{task}-{name.split()[0].lower()}.txt").write_text(each.screen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.terminal", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each measurement (default: 3; 0: none)")
    parser.add_argument("--task", action="append", help="only tasks that begin with this; writes no page")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
