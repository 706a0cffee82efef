"""`python -m bench.cache`: how much of the input comes from the vendors' prompt caches, on every wire, with real tools
and SDKs at strict services that keep what they have seen; printed and written to `bench/cache.md`.

A turn of 20 steps is a test: `tests/wire/test_prefix_cache.py`; how a service's cache is played is told in
`tests/support/prefix_cache.py`.
"""

import asyncio
import importlib
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.subjects.environment import ROOT

OUTPUT = Path(__file__).with_name("cache.md")
LONG = (1, 50, 200_000)
"""Turns, steps of each, tokens of the window."""
SHORT = (10, 5, 32_000)
COLUMNS = (
    "wire", "50 steps: input tokens", "of them cached", "goal", "10 × 5 steps: input tokens", "of them cached",
    "masked, compacted", "refused",
)  # fmt: skip
ABOUT = """\
# Input from the cache

Generated. Tokens are those of whole prompts, our services' own count; questions aside (the loop judge, summaries) are
counted too. A prompt is read from the cache as far as it is the same, to the byte, as the beginning of an earlier one:
for Claude up to a mark, or up to 20 blocks before one, where an earlier mark stood; for the others in whole blocks of
128 tokens; from 1,024 tokens on (Gemini: 4,096). These caches forget nothing, and vendors' do after minutes: what is
missed here is new, or changed by us. *50 steps*: one turn in a window of 200,000 tokens; the goal is for it. *10 × 5
steps*: ten turns in a window of 32,000, where old results are masked or a summary takes their place on the way, after
which little of the prompt is the same."""


async def measure() -> tuple[list[list[str]], bool]:
    """A row per wire, and whether all is as it should be. Raises `AssertionError` when a turn did not end well."""
    sys.path.append(str(ROOT / "tests"))
    game: Any = importlib.import_module("support.cached_session")
    rows: list[list[str]] = []
    well = True
    for wire in game.WIRES:
        long, short = [await _count(game, wire, *scene) for scene in (LONG, SHORT)]
        met = long.share >= game.GOAL
        refused = len(long.refused) + len(short.refused)
        well = well and met and not refused
        rows.append(
            [
                wire.shape.name,
                f"{long.input:,}",
                f"{long.share:.1%}",
                f"≥ {game.GOAL:.0%}: {'met' if met else '**missed**'}",
                f"{short.input:,}",
                f"{short.share:.1%}",
                f"{short.masked}, {short.compacted}",
                str(refused),
            ]
        )
    return rows, well


async def _count(game: Any, wire: Any, turns: int, steps: int, window: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AMANU_HOME"] = f"{folder}/home"
        return await game.count(wire, Path(folder), turns, steps, window)


def main() -> int:
    """Returns 1 when the goal is missed, or a request was refused."""
    rows, well = asyncio.run(measure())
    lines = [f"| {' | '.join(row)} |" for row in ([*COLUMNS], ["---"] * len(COLUMNS), *rows)]
    how = f"<!-- `python -m bench.cache`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC -->"
    page = "\n\n".join([how, ABOUT, "\n".join(lines)]) + "\n"
    print(page)
    OUTPUT.write_text(page, "utf-8")
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
