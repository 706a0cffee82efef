"""Start-up and memory: a process, its handshake, a prompt sent at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run
from bench.subject import Agent, Place, Subject
from bench.subjects import amanu

Start = Callable[[Place], Awaitable[Agent]]


async def measure(run: Run) -> None:
    for subject in run.subjects:  # caches, bytecode, first-run files: not counted
        await run.attempt(subject, "start", partial(_begin, run, subject, subject.start, None))
    for subject in run.turns():
        await run.attempt(subject, "start", partial(_begin, run, subject, subject.start, ""))
        if subject.name.startswith("Amanu"):
            alone = partial(amanu.start, subject.wire, alone=True)
            await run.attempt(subject, "start alone", partial(_begin, run, subject, alone, ".alone"))
            await run.attempt(subject, "start with a daemon", partial(_second, run, subject))
            await run.attempt(subject, "initialize of ACP", partial(_initialize_acp, run, subject))


async def _begin(run: Run, subject: Subject, start: Start, variant: str | None) -> None:
    place = run.stage.place(subject, run.workspace)
    started = time.monotonic()
    agent = await start(place)
    try:
        await agent.initialize()
        answered = time.monotonic()
        session = await agent.open(run.workspace)
        ready = time.monotonic()
        turn = agent.prompt(session, Plan())
        await turn.over.wait()
        if turn.first is None:
            raise Failed(turn.reason)
        if variant is not None:
            run.results.add(f"initialize{variant}", subject.name, (answered - started) * 1000)
            run.results.add(f"session{variant or '.cold'}", subject.name, (ready - started) * 1000)
            run.results.add(f"cold{variant}", subject.name, (turn.first - started) * 1000)
        if variant == "":
            await asyncio.sleep(1)
            run.results.add("memory", subject.name, agent.tree.memory())
    finally:
        await agent.stop()


async def _second(run: Run, subject: Subject) -> None:
    """The same while an earlier editor's daemon runs, which has answered a prompt."""
    first = await run.start(subject, run.workspace)
    try:
        await _begin(run, subject, subject.start, ".warm")
    finally:
        await first.agent.stop()


async def _initialize_acp(run: Run, subject: Subject) -> None:
    started = time.monotonic()
    agent = await amanu.start_acp(subject.wire, run.stage.place(subject, run.workspace))
    try:
        await agent.initialize()
        run.results.add("initialize.acp", subject.name, (time.monotonic() - started) * 1000)
    finally:
        await agent.stop()
