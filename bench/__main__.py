"""`python -m bench`: measure Amanu against floors and peers, print the table, write `bench/results.md`."""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.cases import cancel, edits, files, first, long, paced, page, pauses, rest, servers, start, steps, stream
from bench.results import Results
from bench.run import Run
from bench.stage import Stage
from bench.subject import Subject
from bench.subjects import amanu, floors, peers
from bench.table import report

CASES: dict[str, Callable[[Run], Awaitable[None]]] = {
    "start": start.measure,
    "servers": servers.measure,
    "pauses": pauses.measure,
    "first": first.measure,
    "stream": stream.measure,
    "paced": paced.measure,
    "steps": steps.measure,
    "files": files.measure,
    "many": files.measure_many,
    "edits": edits.measure,
    "page": page.measure,
    "cancel": cancel.measure,
    "long": long.measure,
    "rest": rest.measure,
}
OUTPUT = Path(__file__).with_name("results.md")


def main() -> int:
    arguments = _arguments()
    if arguments.install_peers:
        try:
            peers.install()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"The peers cannot be installed: {error}", file=sys.stderr)
            return 1
    found, missing = peers.peers()
    subjects = [*amanu.subjects(), *floors.subjects(), *found]
    if arguments.quick and not arguments.subject:
        subjects = [each for each in subjects if each not in found and each.name != "genai"]
        missing = ["quick: 60 steps, 2,000 and 20,000 files, one repetition; the peers take part in the full run only"]
    if arguments.subject:
        subjects = [each for each in subjects if any(part in each.name for part in arguments.subject)]
    results = asyncio.run(_measure(arguments, subjects))
    text = report(_how(subjects), subjects, results, missing)
    print(text)
    if not arguments.subject and not arguments.case and not arguments.quick:
        _, heading, soak = (OUTPUT.read_text() if OUTPUT.exists() else "").partition("\n## Soak\n")
        OUTPUT.write_text(text + heading + soak)
    return 0


async def _measure(arguments: argparse.Namespace, subjects: list[Subject]) -> Results:
    results = Results()
    async with Stage() as stage:
        run = Run(stage, subjects, results, repeat=arguments.repeat)
        if arguments.quick:
            run.repeat, run.steps, run.files, run.many, run.chunks = 1, 60, 2_000, 20_000, 20_000
        for name in arguments.case or CASES:
            started = time.monotonic()
            await CASES[name](run)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return results


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="once each, smaller, without the peers: under a minute when idle; writes no results.md",
    )
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each measurement (default: 5)")
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; writes no results.md")
    parser.add_argument("--subject", action="append", metavar="NAME", help="only subjects with this in their name")
    parser.add_argument("--install-peers", action="store_true", help="first get the peers from npm into .tools/peers")
    return parser.parse_args()


def _how(subjects: list[Subject]) -> str:
    command = " ".join(["python -m bench", *sys.argv[1:]])
    versions = dict.fromkeys(f"{each.name.split(',')[0]} {each.version}" for each in subjects)
    load = os.getloadavg()[0]
    return (
        f"<!-- `{command}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {', '.join(versions)}; "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {load:.1f} at the end -->"
    )


if __name__ == "__main__":
    sys.exit(main())
