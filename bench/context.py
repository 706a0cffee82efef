"""`python -m bench.context [--steps N]`: a session of 400 steps in a window of 32,000 tokens, in the three vendors'
shapes, with real tools and SDKs at strict services; what it took is printed and written to `bench/context.md`.

The same game is a test in short: `tests/wire/test_long_session.py`; how it goes is told in
`tests/support/long_session.py`.
"""

import argparse
import asyncio
import importlib
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.subjects.environment import ROOT

OUTPUT = Path(__file__).with_name("context.md")
COLUMNS = (
    "shape", "steps", "compactions", "maskings", "questions aside", "largest request", "over the window", "refused",
    "lost", "tokens sent", "of them cached", "error of the estimate", "seconds",
)  # fmt: skip


async def measure(steps: int, window: int) -> list[list[str]]:
    """A row per shape. Raises `AssertionError` when a turn did not end well."""
    sys.path.append(str(ROOT / "tests"))
    game: Any = importlib.import_module("support.long_session")
    rows: list[list[str]] = []
    for shape in game.SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["AMANU_HOME"] = f"{folder}/home"
            begun = time.monotonic()
            played = await game.play(shape, Path(folder), steps, window)
            took = time.monotonic() - begun
        rows.append(
            [
                shape.name,
                str(played.steps),
                str(played.compactions),
                str(played.masks),
                str(played.summaries),
                f"{played.largest:,}",
                str(played.overflows),
                str(len(played.refused)),
                str(len(played.lost)),
                f"{played.sent:,}",
                f"{played.cached / played.sent:.1%}",
                f"{played.error:.1%}",
                f"{took:.0f}",
            ]
        )
    return rows


def main() -> int:
    """Returns 1 when something was refused, over the window or lost."""
    parser = argparse.ArgumentParser(prog="python -m bench.context", description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--window", type=int, default=32_000, help="tokens, a quarter of them kept for the reply")
    arguments = parser.parse_args()
    rows = asyncio.run(measure(arguments.steps, arguments.window))
    page = _page(rows, f"python -m bench.context --steps {arguments.steps} --window {arguments.window}")
    print(page)
    OUTPUT.write_text(page)
    return int(any(row[column] != "0" for row in rows for column in (6, 7, 8)))


def _page(rows: list[list[str]], command: str) -> str:
    lines = [f"| {' | '.join(row)} |" for row in ([*COLUMNS], ["---"] * len(COLUMNS), *rows)]
    return "\n".join(
        [
            f"<!-- `{command}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC -->",
            "",
            "# Long sessions in a small window",
            "",
            "Generated. The service is ours and strict; it counts tokens its own way. *Lost*: words of the user, the",
            "goal or touched files that a request should have held. *Cached*: what stood the same at the start of the",
            "request before. *Error*: of the sizes foretold for each next request, mean of their absolute values.",
            "",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
