"""Many steps of one turn, and of many sessions at once; what they leave on the disk."""

import asyncio
import itertools
import os
import statistics
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.plan import Plan
from bench.run import Failed, Run, Session
from bench.subject import Subject
from bench.subjects.amanu import AmanuAgent

ASIDE = 2.0
"""Seconds that a model takes to judge whether a turn goes in circles."""
KEPT_STEPS = 100
TEXT = 2_000
"""Characters of a file, at most."""
LONG = 4
"""Times the usual steps, for what grows with history."""
CROWD = 8
CROWD_STEPS = 20


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "steps") as sessions:
        for subject in run.turns(max(1, run.repeat // 2)):
            if session := sessions.get(subject.name):
                await run.attempt(subject, "steps", partial(_steps, run, session))
        await asyncio.sleep(1)
        for session in sessions.values():
            run.results.add("steps.memory", session.subject.name, session.agent.tree.memory())
        for subject in run.turns(max(1, run.repeat // 2)):
            if session := sessions.get(subject.name):
                await run.attempt(subject, "crowd", partial(_crowd, run, session))
        for subject in run.turns(max(1, run.repeat // 2)):
            if subject.name.startswith("Amanu") and (session := sessions.get(subject.name)):
                await run.attempt(subject, "judged steps", partial(_judged, run, session))
        for subject in run.turns(max(1, run.repeat // 2)):
            if subject.name.startswith("Amanu") and (session := sessions.get(subject.name)):
                await run.attempt(subject, "steps after steps", partial(_after_steps, run, session))
    for subject in run.turns(1):
        if subject.name.startswith("Amanu"):
            await run.attempt(subject, "kept steps", partial(_kept, run, subject))


async def _steps(run: Run, session: Session) -> None:
    spent = await _taken(run, session)
    first, last = statistics.median(spent[:10]), statistics.median(spent[-10:])
    name = session.subject.name
    run.results.add("steps.first", name, first)
    run.results.add("steps.last", name, last)
    run.results.add("steps.growth", name, last / first)
    run.results.add("steps.each", name, statistics.mean(spent))


async def _after_steps(run: Run, session: Session) -> None:
    """The cost of a step that is due to the steps before it, and not to the bytes that are sent again."""
    steps, compared = LONG * run.steps, run.steps // 2
    session = replace(session, folder=_lines(run, steps))
    after_steps, size = await _timed(session, run, reads(session, steps))
    line = "a line of a text that the user has pasted\n"
    pasted = replace(reads(session, compared), before=line * (size // len(line.encode("unicode_escape"))))
    after_prompt, _ = await _timed(session, run, pasted)
    growth = statistics.median(after_steps[-compared:]) / statistics.median(after_prompt)
    run.results.add("steps.history", session.subject.name, growth)


async def _judged(run: Run, session: Session) -> None:
    """Right after steps whose requests beside the conversation were answered at once."""
    usual = statistics.mean(await _taken(run, session))
    await run.stage.answer_aside_in(ASIDE)
    try:
        judged = statistics.mean(await _taken(run, session))
    finally:
        await run.stage.answer_aside_in(0)
    run.results.add("steps.judged", session.subject.name, judged)
    run.results.add("steps.judged.growth", session.subject.name, judged / usual)


async def _taken(run: Run, session: Session) -> list[float]:
    """Milliseconds of each step of a turn of read steps, in a session of its own: from a reply to the next request.
    What the service takes to look at a request, longer for a long one, is not the agent's."""
    spent, _ = await _timed(session, run, reads(session, run.steps))
    return spent


async def _timed(session: Session, run: Run, plan: Plan) -> tuple[list[float], int]:
    """The same of any plan, and the bytes of the request before the last hundred steps."""
    session.id = await session.agent.open(session.folder)
    await session.say(Plan())
    await run.seen()
    await session.say(plan)
    requests = await run.seen()
    if len(requests) != plan.steps + 1:
        raise Failed(f"{len(requests) - 1} of {plan.steps} steps were taken")
    pairs = itertools.pairwise(requests)
    spent = [(after.arrived - before.first) * 1000 for before, after in pairs if before.first is not None]
    return spent, requests[-min(100, len(requests))].size


async def _kept(run: Run, subject: Subject) -> None:
    """How much the state folder grows: journal, audit log and index."""
    folder = _texts(run)
    place = run.stage.place(subject, folder)
    agent = await subject.start(place)
    assert isinstance(agent, AmanuAgent)
    try:
        await agent.initialize()
        session = Session(subject, agent, await agent.open(folder), folder)
        await session.say(Plan())
        await agent.close(session.id)
        before = _size(place.home / "amanu" / "state")
        await agent.attach(session.id)
        await session.say(reads(session, KEPT_STEPS))
        await agent.close(session.id)
        run.results.add("steps.disk", subject.name, (_size(place.home / "amanu" / "state") - before) / 1e6)
    finally:
        await agent.stop()


def _lines(run: Run, count: int) -> Path:
    folder = run.stage.folder / "lines"
    if not folder.exists():
        folder.mkdir()
        for n in range(count):
            (folder / f"file{n}.txt").write_text("".join(f"line {line} of file {n}\n" for line in range(12)))
    return folder


def _texts(run: Run) -> Path:
    """Files as a model reads them: real source, for it is kept compressed."""
    folder = run.stage.folder / "texts"
    if not folder.exists():
        folder.mkdir()
        sources = sorted(Path(os.__file__).parent.glob("*.py"))
        texts = (source.read_text(errors="replace")[5_000 : 5_000 + TEXT] for source in sources)
        for n, text in enumerate(itertools.islice((text for text in texts if len(text) == TEXT), KEPT_STEPS)):
            (folder / f"file{n}.txt").write_text(text)
    return folder


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def _crowd(run: Run, session: Session) -> None:
    ids = [await session.agent.open(session.folder) for _ in range(CROWD)]
    crowd = [Session(session.subject, session.agent, each, session.folder) for each in ids]
    await asyncio.gather(*(each.say(Plan()) for each in crowd))
    started = time.monotonic()
    await asyncio.gather(*(each.say(reads(each, CROWD_STEPS)) for each in crowd))
    spent = time.monotonic() - started
    run.results.add("crowd", session.subject.name, spent * 1000 / (CROWD * CROWD_STEPS))


def reads(session: Session, steps: int) -> Plan:
    uses = session.subject.uses("read", {"path": str(session.folder / "file{n}.txt")})
    if uses is None:
        raise Failed("it has no tool to read")
    return Plan(steps=steps, **uses)
