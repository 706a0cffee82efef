"""Starts the sandbox, gathers what is found within."""

import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.soundness.sandbox import within

SOAKED = 100_000
"""Automatic lines of a long run."""
SAMPLE = 500
"""Of the fixed sample in the tests."""


@dataclass(frozen=True)
class Effect:
    """A line that was judged to have no effect, and what it did."""

    seed: int
    number: int
    kind: str
    line: str
    effects: list[str]

    def __str__(self) -> str:
        more = f" and {len(self.effects) - 3} more" if len(self.effects) > 3 else ""
        return f"{self.line!r} ({self.kind}, seed {self.seed}, line {self.number}): {', '.join(self.effects[:3])}{more}"


@dataclass
class Found:
    seed: int
    counts: Counter[str] = field(default_factory=Counter[str])
    programs: Counter[str] = field(default_factory=Counter[str])
    effects: list[Effect] = field(default_factory=list[Effect])
    seconds: float = 0.0
    """Of processor time, commands included."""

    def page(self) -> str:
        """All figures, and how often each program was among what ran."""
        rows = "\n".join(f"| {name} | {count:,} |" for name, count in sorted(self.programs.items()))
        figures = "\n".join(f"- {name}: {figure}" for name, figure in self.figures().items())
        made = f"<!-- `python -m bench.soak soundness`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC -->"
        programs = f"| in lines that ran | lines |\n| --- | --- |\n{rows}"
        return f"{made}\n\n# What automatic lines did\n\n{figures}\n\n{programs}\n"

    def figures(self) -> dict[str, str]:
        git = sum(name.startswith("git ") for name in self.programs)
        most = ", ".join(f"{name} {count:,}" for name, count in self.programs.most_common(12))
        return {
            "lines generated": f"{self.counts['lines']:,} (seed {self.seed})",
            "judged automatic, and run": f"{self.counts['automatic']:,}",
            "of them by argv": f"{self.counts['by argv']:,}",
            "exit code 0": f"{self.counts['succeeded']:,}",
            "ended in 2 s": f"{self.counts['ended']:,}",
            "effects": f"{len(self.effects)}",
            "a second of processor time": f"{self.counts['automatic'] / max(self.seconds, 0.001):.0f}",
            "programs": f"{len(self.programs) - git}, and {git} commands of git; most: {most}",
        }


async def run(automatic: int, *, seed: int, seconds: float, workers: int) -> Found:
    """Run that many automatic lines of the seed, as far as the seconds last. Raises `NoSandbox`."""
    found = Found(seed)
    shares = [automatic // workers + (each < automatic % workers) for each in range(workers)]
    await asyncio.gather(
        *(_worker(found, share, first, workers, seconds) for first, share in enumerate(shares) if share)
    )
    return found


async def _worker(found: Found, automatic: int, first: int, step: int, seconds: float) -> None:
    words = (
        *("-m", "bench.soundness.inside", "--seed", str(found.seed), "--first", str(first), "--step", str(step)),
        *("--automatic", str(automatic), "--seconds", str(seconds)),
    )
    process = await asyncio.create_subprocess_exec(
        *within(*words), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, limit=1 << 20
    )
    assert process.stdout is not None
    whole = False
    async for line in process.stdout:
        told: dict[str, Any] = json.loads(line)
        if "figures" in told:
            whole = True
            found.counts.update(told["figures"]["counts"])
            found.programs.update(told["figures"]["programs"])
            found.seconds += told["figures"]["processor"]
        else:
            found.effects.append(Effect(**told))
            print(found.effects[-1], file=sys.stderr, flush=True)
    if await process.wait() or not whole:
        raise RuntimeError(f"what runs the lines ended early, with {process.returncode}")
