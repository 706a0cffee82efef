"""`python -m bench.search [--rounds N]`: the time it takes to find words in 1,000 sessions, the slowest of several
searches, and to read them all for it. Writes it to `bench/search.md`."""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from amanu.session.search import SessionSearch
from amanu.session.summaries import Summaries
from amanu.storage import journal_sqlite as journal_file
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Answer, UserMessage
from amanu_protocol.requests import SessionSearchParams, SessionSummary

GOAL = 100.0
"""Milliseconds."""
SESSIONS, TURNS = 1_000, 20
OUTPUT = Path(__file__).with_name("search.md")
SEARCHES = ("word7", "word7 word8 word9", "wo", "answer", '"word1 word2"', "nowhere")


@asynccontextmanager
async def stage(folder: Path, sessions: int = SESSIONS, turns: int = TURNS) -> AsyncGenerator[SessionSearch]:
    """So many sessions, which nobody has looked through yet."""
    summaries = Summaries(folder)
    index = await summaries.index()
    chance = random.Random(7)
    now = int(time.time() * 1000)
    for number in range(sessions):
        session_id, at = f"session-{number}", now - number * 3_600_000
        summary = SessionSummary(
            session_id=session_id,
            title=f"Session {number}",
            roots=["/work"],
            model_id="scripted:bench",
            created_at=at,
            updated_at=at,
            status="closed",
        )
        await index.put(summary)
        rows = [row for turn in range(turns) for row in _turn(chance, at, turn)]
        content = journal_file.JournalContent(
            [journal_file.packed((journal_file.ADD_RECORD, (at, *row)))[1] for at, row in enumerate(rows, 1)]
        )
        journal_file.create(index.folder(session_id) / journal_file.NAME, content)
    search = SessionSearch(folder, summaries, str)
    try:
        yield search
    finally:
        await search.close()
        await summaries.close()


def _turn(chance: random.Random, at: int, turn: int) -> list[tuple[int, int, int, bytes, None]]:
    turn_id = f"turn-{turn}"
    prompt = " ".join(f"word{chance.randrange(2_000)}" for _ in range(20))
    answer = "answer " + " ".join(f"word{chance.randrange(2_000)}" for _ in range(150))
    items = (
        UserMessage(item_id=f"p{turn}", turn_id=turn_id, text=prompt, attachments=[], steer=False),
        Answer(item_id=f"a{turn}", turn_id=turn_id, text=answer),
    )
    return [
        (1, turn * 2 + n, at, ItemCompleted(item=item).model_dump_json().encode(), None) for n, item in enumerate(items)
    ]


async def measure(folder: Path, rounds: int) -> tuple[float, dict[str, tuple[float, float]]]:
    """Milliseconds to read all; of each search the medians of all time and of the processor's."""
    async with stage(folder) as search:
        begun = time.perf_counter()
        await search.catch_up()
        read = (time.perf_counter() - begun) * 1000
        return read, {text: await _searched(search, text, rounds) for text in SEARCHES}


async def _searched(search: SessionSearch, text: str, rounds: int) -> tuple[float, float]:
    wall, processor = list[float](), list[float]()
    for _ in range(rounds):
        begun, used = time.perf_counter(), time.process_time()
        await search.find(SessionSearchParams(text=text))
        wall.append((time.perf_counter() - begun) * 1000)
        processor.append((time.process_time() - used) * 1000)
    return statistics.median(wall), statistics.median(processor)


def main() -> int:
    """Returns 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        read, searches = asyncio.run(measure(Path(name), rounds))
    lines = [f"| `{text}` | {wall:.0f} | {processor:.0f} |" for text, (wall, processor) in searches.items()]
    page = "\n".join(
        [
            f"<!-- `python -m bench.search`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} -->",
            "",
            "# What searching sessions costs",
            "",
            f"Generated. Words are looked for in {SESSIONS:,} sessions of {TURNS} turns; medians of {rounds}, in ms. "
            f"The goal is {GOAL:g} ms of the processor's time. Reading all of them for the first time took "
            f"{read / 1000:.1f} s, in the background.",
            "",
            "| search | ms | of the processor |",
            "|---|---|---|",
            *lines,
            "",
        ]
    )
    print(page)
    OUTPUT.write_text(page)
    return int(max(processor for _, processor in searches.values()) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
