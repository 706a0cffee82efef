"""The first prompt of a session beside its second: in an agent that works already, and in one just started whose user
has typed for three seconds."""

import asyncio
import statistics
from functools import partial

from bench.cases.stream import added
from bench.run import Run, Session
from bench.subject import Subject

TYPING = 3.0
"""Seconds."""


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "first prompt") as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "first prompt", partial(_new_session, run, session))
    for subject in run.turns(max(1, run.repeat // 2)):
        await run.attempt(subject, "first prompt of an agent", partial(_new_agent, run, subject))


async def _new_session(run: Run, session: Session) -> None:
    new = Session(session.subject, session.agent, await session.agent.open(session.folder), session.folder)
    await _compare(run, new, "first")


async def _new_agent(run: Run, subject: Subject) -> None:
    agent = await subject.start(run.stage.place(subject, run.workspace))
    try:
        await agent.initialize()
        session = Session(subject, agent, await agent.open(run.workspace), run.workspace)
        await asyncio.sleep(TYPING)
        await _compare(run, session, "first.typed")
    finally:
        await agent.stop()


async def _compare(run: Run, session: Session, row: str) -> None:
    first, *later = [await added(run, session) for _ in range(4)]
    run.results.add(row, session.subject.name, first)
    run.results.add(f"{row}.growth", session.subject.name, first / statistics.median(later))
