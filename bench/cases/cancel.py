"""Cancel in the middle of a stream: when it is answered, and when the connection to the model is dropped."""

import asyncio
import time
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "cancel") as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "cancel", partial(_cancel, run, session))


async def _cancel(run: Run, session: Session) -> None:
    await run.seen()
    turn = session.prompt(Plan(chunks=20_000, pace=0.005))
    await turn.began.wait()
    await asyncio.sleep(0.1)
    cancelled = time.monotonic()
    await session.agent.cancel(session.id)
    answered = time.monotonic()
    await turn.over.wait()
    await asyncio.sleep(0.2)
    dropped = (await run.seen())[-1].dropped
    run.results.add("cancel.answered", session.subject.name, (answered - cancelled) * 1000)
    if dropped is None:
        raise Failed("the connection was still open 0.2 s after the cancel")
    run.results.add("cancel.dropped", session.subject.name, (dropped - cancelled) * 1000)
