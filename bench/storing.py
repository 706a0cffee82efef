"""`python -m bench.storing [--rounds N]`: the time it takes to store 200 files of 100 KB in a session's file store,
relative to copying them and syncing each copy and their folder. Writes it to `bench/storing.md`."""

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from amanu.storage.errors import sync_folder
from amanu.storage.file_store import FileStore

GOAL = 1.5
FILES, BYTES = 200, 100_000
OUTPUT = Path(__file__).with_name("storing.md")


def measure(folder: Path, rounds: int) -> tuple[float, float]:
    """The medians of copying and of storing, in milliseconds. They take turns."""
    sources = [folder / str(number) for number in range(FILES)]
    copying: list[float] = []
    storing: list[float] = []
    for number in range(rounds):
        for source in sources:  # new content each round: none gains from an earlier one
            source.write_bytes(random.randbytes(BYTES))
        os.sync()
        copying.append(_timed(lambda: _copy(sources, folder / f"copies{number}")))  # noqa: B023
        storing.append(_timed(lambda: _store(sources, FileStore(folder / f"stored{number}"))))  # noqa: B023
    return statistics.median(copying), statistics.median(storing)


def _copy(sources: list[Path], target: Path) -> None:
    target.mkdir()
    for source in sources:
        copy = shutil.copyfile(source, target / source.name)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(target)


def _store(sources: list[Path], store: FileStore) -> None:
    for source in sources:
        with source.open("rb") as file:
            store.add(file.fileno())
    store.sync()


def _timed(act: Callable[[], None]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000


def main() -> int:
    """Returns 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.storing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        copying, storing = measure(Path(name), rounds)
    page = "\n".join(
        [
            f"<!-- `python -m bench.storing`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} -->",
            "",
            "# What keeping files costs",
            "",
            f"Generated. Storing {FILES} files of {BYTES // 1000} KB in a session's file store takes {storing:.0f} ms, "
            f"{storing / copying:.2f} × copying them and syncing each copy ({copying:.0f} ms). The goal is {GOAL:g} ×.",
            "",
        ]
    )
    print(page)
    OUTPUT.write_text(page)
    return int(storing > GOAL * copying)


if __name__ == "__main__":
    sys.exit(main())
