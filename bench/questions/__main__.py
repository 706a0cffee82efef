"""`python -m bench.questions`: how often the user is asked when an agent runs ordinary commands. Each is really run, in
every mode and every tier of the sandbox; prints the page, and writes it to `bench/questions.md`."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from amanu.home import find_home
from amanu_protocol.items import Mode
from bench.questions import project
from bench.questions.agent import TIERS, Tier, TierUnavailable, sessions_in
from bench.questions.corpus import Line, load
from bench.questions.page import Pass, Run, page, without_places
from bench.questions.project import Project
from bench.questions.services import Services
from bench.questions.trial import Outcome, attempt, freely
from bench.subjects.environment import environment

MODES: tuple[Mode, ...] = ("ask", "acceptEdits", "draft", "auto")
T = TypeVar("T")
OUTPUT = Path(__file__).parents[1] / "questions.md"


def main() -> int:
    """Returns 0 whatever was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.questions", description=__doc__)
    parser.add_argument("--mode", action="append", choices=MODES, help="only this one; may be repeated")
    parser.add_argument("--tier", action="append", choices=TIERS, help="only this one; may be repeated")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the commands that contain it")
    parser.add_argument("--jobs", type=int, default=2, help="how many commands run at a time (%(default)s)")
    parser.add_argument("--no-write", action="store_true", help="print only, as for any part of the whole")
    arguments = parser.parse_args()
    lines = [line for line in load() if arguments.only in line.text]
    # Not below /tmp: the sandbox hides the home folder, and has a /tmp of its own, as nobody's home lies there.
    caches = Path(os.path.realpath(Path.home())) / ".cache"
    caches.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="amanu-questions-", dir=caches))
    try:
        modes, tiers = arguments.mode or MODES, arguments.tier or TIERS
        text = without_places(page(asyncio.run(_run(folder, lines, modes, tiers, arguments.jobs))), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(text)
    if not (arguments.mode or arguments.tier or arguments.only or arguments.no_write):
        OUTPUT.write_text(text, encoding="utf-8")
    return 0


async def _run(folder: Path, lines: Sequence[Line], modes: Sequence[Mode], tiers: Sequence[Tier], jobs: int) -> Run:
    begun = time.monotonic()
    with Services(folder) as services:
        projects = [project.make(folder / f"place{number}", services) for number in range(jobs)]
        first = projects[0]
        runnable = [line for line in lines if all(first.machine.has(program, first.root) for program in line.needs)]
        own = environment(folder / "daemon", AMANU_HOME=str(folder / "amanu"), AMANU_CATALOGUE_REFRESH="false")
        (folder / "daemon").mkdir()
        os.environ.clear()  # no key, address or setting of whoever runs this
        os.environ.update(own)
        run = Run([line for line in lines if line not in runnable])
        free = await _each(runnable, projects, freely)
        for tier in tiers:
            try:
                async with sessions_in(tier, find_home(own).make(), own) as sessions:
                    for mode in modes:

                        async def tried(line: Line, where: Project, mode: Mode = mode) -> Outcome:
                            return await attempt(line, where, sessions, mode, free[line])

                        started = time.monotonic()
                        outcomes = await _each(runnable, projects, tried)
                        run.passes.append(Pass(mode, tier, [*outcomes.values()], time.monotonic() - started))
                        print(f"{mode}, {tier}: {run.passes[-1].seconds:.0f} s", file=sys.stderr, flush=True)
            except TierUnavailable as why:
                run.unavailable[tier] = str(why)
    run.seconds = time.monotonic() - begun
    return run


async def _each(
    lines: Sequence[Line], projects: Sequence[Project], job: Callable[[Line, Project], Awaitable[T]]
) -> dict[Line, T]:
    """What the job returns for each line, in their order. In each project one line at a time."""
    left = iter(lines)
    found: dict[Line, T] = {}

    async def work(where: Project) -> None:
        for line in left:
            found[line] = await job(line, where)

    await asyncio.gather(*map(work, projects))
    return {line: found[line] for line in lines}


if __name__ == "__main__":
    sys.exit(main())
