"""Edits of big files, one after the other, and an edit of many hunks."""

import asyncio
import statistics
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path

from bench.plan import Plan, filled
from bench.run import Failed, Run, Session
from bench.service import Seen
from bench.subject import Turn

EDITS = 30
LINES = 10_000
"""Of a file of 1 MB."""
BYTES_EDITS = 5
HUNKS = (1_000, 5_000)
_numbers = count()


SUBJECTS = ("Amanu", "Codex", "raw HTTP", "genai", "anthropic")
"""Beginnings of the names of those that take part: the others need minutes for thirty edits of a megabyte."""


async def measure(run: Run) -> None:
    run = replace(run, subjects=[subject for subject in run.subjects if subject.name.startswith(SUBJECTS)])
    async with run.sessions(run.workspace, "edits", asks=False) as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "edits of 1 MB", partial(_many, run, session))
                await run.attempt(subject, "bytes of edits", partial(_bytes, run, session))
                await run.attempt(subject, "edits of 10 MB", partial(_huge, run, session))
    async with run.sessions(run.workspace, "hunks") as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "many hunks", partial(_hunks, run, session))


async def _many(run: Run, session: Session) -> None:
    spent = await _edits(run, session, LINES, EDITS)
    run.results.add("edits.first", session.subject.name, spent[0])
    run.results.add("edits.last", session.subject.name, spent[-1])
    growth = statistics.mean(spent[-5:]) / statistics.mean(spent[:5])
    run.results.add("edits.growth", session.subject.name, growth)


async def _bytes(run: Run, session: Session) -> None:
    before = session.agent.received
    await _edits(run, session, LINES, BYTES_EDITS)
    run.results.add("edits.bytes", session.subject.name, (session.agent.received - before) / 1e6)


async def _huge(run: Run, session: Session) -> None:
    spent = await _edits(run, session, 10 * LINES, 3)
    run.results.add("edits.10mb", session.subject.name, spent[2])


async def _edits(run: Run, session: Session, lines: int, times: int) -> list[float]:
    """Milliseconds of each edit of one line of such a file: from the end of the reply that calls for it to the request
    that brings the result."""
    path = _file(session, "".join(_line(n, lines // EDITS) + "\n" for n in range(lines)))
    old = _line(0, 1).replace("place 0", "place {n}")
    uses = session.subject.uses("edit", {"path": str(path), "old": old, "new": old.upper().replace("{N}", "{n}")})
    if uses is None:
        raise Failed("it has no tool for edits")
    await run.seen()
    async with _approving(session, session.prompt(Plan(steps=times, **uses))) as turn:
        await turn.over.wait()
    requests = await run.seen()
    changed = path.read_text().count("PLACE")
    if changed != times:
        raise Failed(f"{changed} of {times} edits were made: {turn.reason}")
    path.unlink()
    return [(after.arrived - _ended(before)) * 1000 for before, after in pairwise(requests)]


async def _hunks(run: Run, session: Session) -> None:
    few, many = [await _shown(run, session, hunks) for hunks in HUNKS]
    run.results.add("hunks.1000", session.subject.name, few)
    run.results.add("hunks.5000", session.subject.name, many)
    run.results.add("hunks.growth", session.subject.name, many / few)


async def _shown(run: Run, session: Session, hunks: int) -> float:
    """Milliseconds from the end of a reply that changes every second line of a file to the question about it."""
    path = _file(session, filled("kept {i}\nold {i}\n", hunks))
    lines = {"kept": "kept {i}", "old": "old {i}", "new": "new {i}"}
    uses = session.subject.uses("hunks", {"path": str(path), **lines})
    if uses is None:
        raise Failed("it has no tool for that")
    await run.seen()
    turn = session.prompt(Plan(steps=1, each=hunks, **uses))
    waits = [asyncio.ensure_future(event.wait()) for event in (turn.question, turn.over)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if turn.asked is None:
        raise Failed(f"the edit was not asked about: {turn.reason}")
    await asyncio.sleep(0.2)
    await session.agent.cancel(session.id)
    await turn.over.wait()
    path.unlink()
    return (turn.asked - _ended((await run.seen())[0])) * 1000


@asynccontextmanager
async def _approving(session: Session, turn: Turn) -> AsyncGenerator[Turn]:
    """Approve at once what the subject asks about during the turn: not every subject has a mode that does not ask."""

    async def approve() -> None:
        while True:
            await turn.question.wait()
            turn.question.clear()
            session.agent.approve(session.id)

    approving = asyncio.create_task(approve())
    try:
        yield turn
    finally:
        approving.cancel()


def _ended(request: Seen) -> float:
    if request.ended is None:
        raise Failed("a reply did not end")
    return request.ended


def _line(n: int, apart: int) -> str:
    if n % apart == 0:
        return f"place {n // apart} of a big file"
    return f"line {n} of a big file ".ljust(99, ".")


def _file(session: Session, text: str) -> Path:
    """A file that no earlier edit was about."""
    path = session.folder / f"{session.subject.name.replace(' ', '-').replace(',', '')}-{next(_numbers)}.txt"
    path.write_text(text)
    return path
