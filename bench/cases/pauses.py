"""Prompts with thought between them, over a line with a long way: is the connection still there?"""

import asyncio
import time
from contextlib import AsyncExitStack
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session
from bench.slow_line import SlowLine
from bench.subject import Subject

PAUSE = 8.0
"""Seconds between two prompts of a subject."""
PROMPTS = 4


async def measure(run: Run) -> None:
    sessions: dict[str, Session] = {}
    lines: dict[str, SlowLine] = {}
    async with AsyncExitStack() as stack:

        async def begin(subject: Subject) -> None:
            line = await stack.enter_async_context(SlowLine(run.stage.port))
            session = await run.start(subject, run.workspace, url=f"http://127.0.0.1:{line.port}")
            stack.push_async_callback(session.agent.stop)
            sessions[subject.name], lines[subject.name] = session, line

        for subject in run.subjects:
            await run.attempt(subject, "pauses", partial(begin, subject))
        for _ in range(PROMPTS):
            resume = time.monotonic() + PAUSE
            await asyncio.sleep(PAUSE)
            for name, session in sessions.items():
                await run.attempt(session.subject, "pauses", partial(_prompt, run, session, lines[name]))
            await asyncio.sleep(resume - time.monotonic())


async def _prompt(run: Run, session: Session, line: SlowLine) -> None:
    before = line.connections
    turn = await session.say(Plan())
    if turn.first is None:
        raise Failed(turn.reason)
    run.results.add("pause.token", session.subject.name, (turn.first - turn.sent) * 1000)
    run.results.add("pause.connections", session.subject.name, line.connections - before)
