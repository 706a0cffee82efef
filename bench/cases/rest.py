"""What an agent costs that does nothing, and what many sessions and several clients cost one that works."""

import asyncio
import statistics
from contextlib import AsyncExitStack
from functools import partial

from bench.cases.stream import added
from bench.run import Run, Session
from bench.subjects.amanu import AmanuAgent

SETTLING = 8.0
"""Seconds after the last one has started: what agents look after in their first seconds is not their rest."""
REST = 10.0
"""Seconds that nothing is asked of it."""
SESSIONS = 50
CLIENTS = 5


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "rest") as sessions:
        await asyncio.sleep(SETTLING)
        before = {name: _spent(session) for name, session in sessions.items()}
        await asyncio.sleep(REST)
        for name, session in sessions.items():
            wakeups, cpu = _spent(session)
            run.results.add("idle.wakeups", name, (wakeups - before[name][0]) / REST)
            run.results.add("idle.cpu", name, (cpu - before[name][1]) / REST * 100)
        for subject in run.subjects:
            if subject.name.startswith("Amanu") and (session := sessions.get(subject.name)):
                await run.attempt(subject, "many sessions", partial(_sessions, run, session))
                await run.attempt(subject, "many clients", partial(_clients, run, session))


def _spent(session: Session) -> tuple[int, float]:
    return session.agent.tree.wakeups(), session.agent.tree.cpu()


async def _sessions(run: Run, session: Session) -> None:
    name = session.subject.name
    alone, memory = await _usual(run, session), session.agent.tree.memory()
    for _ in range(SESSIONS):
        await session.agent.open(session.folder)
    await asyncio.sleep(0.5)
    run.results.add("sessions.memory", name, (session.agent.tree.memory() - memory) / SESSIONS)
    run.results.add("sessions.growth", name, await _usual(run, session) / alone)


async def _clients(run: Run, session: Session) -> None:
    """Others that look at the same session."""
    alone = await _usual(run, session)
    async with AsyncExitStack() as stack:
        for _ in range(CLIENTS - 1):
            agent = await session.subject.start(run.stage.place(session.subject, session.folder))
            assert isinstance(agent, AmanuAgent)
            stack.push_async_callback(agent.stop)
            await agent.initialize()
            await agent.attach(session.id)
        run.results.add("clients.growth", session.subject.name, await _usual(run, session) / alone)


async def _usual(run: Run, session: Session) -> float:
    return statistics.median([await added(run, session) for _ in range(9)])
