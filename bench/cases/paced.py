"""A reply at a fast model's pace: how long a piece of it is on its way to the client."""

import statistics
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session

CHUNKS = 600
PACE = 0.005
"""Seconds between two pieces: 200 a second."""


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "paced") as sessions:
        for subject in run.turns(max(1, run.repeat // 2)):
            if session := sessions.get(subject.name):
                await run.attempt(subject, "paced stream", partial(_paced, run, session))


async def _paced(run: Run, session: Session) -> None:
    before = session.agent.tree.cpu()
    turn = await session.say(Plan(chunks=CHUNKS, pace=PACE, stamped=True))
    spent = session.agent.tree.cpu() - before
    delays = [
        came - int(stamp[1:]) / 1e9
        for came, text in turn.stamps or ()
        for stamp in text.split()
        if stamp.startswith("t") and stamp[1:].isdigit()
    ]
    if len(delays) < CHUNKS * 0.95:  # a piece may be cut in two
        raise Failed(f"{len(delays)} of {CHUNKS} pieces came whole")
    hundredths = statistics.quantiles(delays, n=100)
    name = session.subject.name
    run.results.add("paced.usual", name, hundredths[49] * 1000)
    run.results.add("paced.late", name, hundredths[98] * 1000)
    run.results.add("paced.cpu", name, spent / (CHUNKS * PACE) * 100)
