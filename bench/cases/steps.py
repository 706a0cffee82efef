"""Many steps of one turn, and of many sessions at once."""

import asyncio
import time
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session

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


async def _steps(run: Run, session: Session) -> None:
    session.id = await session.agent.open(session.folder)
    await session.say(Plan())
    await run.seen()
    await session.say(reads(session, run.steps))
    arrived = [request.arrived for request in await run.seen()]
    if len(arrived) != run.steps + 1:
        raise Failed(f"{len(arrived) - 1} of {run.steps} steps were taken")
    first, last = (arrived[10] - arrived[0]) / 10, (arrived[-1] - arrived[-11]) / 10
    name = session.subject.name
    run.results.add("steps.first", name, first * 1000)
    run.results.add("steps.last", name, last * 1000)
    run.results.add("steps.growth", name, last / first)


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
