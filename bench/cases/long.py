"""Sessions that have been going on for long: opening them, their next request, what they take of memory."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2

from bench import past
from bench.plan import Plan, prompt
from bench.run import Failed, Run, Session
from bench.subject import Subject
from bench.subjects.amanu import MODELS, AmanuAgent

BREATH = 0.05
"""Seconds after a turn or an opening before the next thing: what is still done for one is not the other's."""


async def measure(run: Run) -> None:
    for subject in run.turns():
        if subject.name.startswith("Amanu"):
            await run.attempt(subject, "long session", partial(_long, run, subject))
    for subject in run.turns(max(1, run.repeat // 2)):
        if subject.name.startswith("Amanu"):
            await run.attempt(subject, "heavy session", partial(_heavy, run, subject))


async def _long(run: Run, subject: Subject) -> None:
    """2,000 messages and 20, side by side in one daemon."""
    long, short = await _write(run, subject, past.LONG), await _write(run, subject, past.SHORT)

    async def opened(agent: AmanuAgent) -> None:
        run.results.add("long.cold", subject.name, await _milliseconds(agent.attach(long)))
        await agent.close(long)
        of_short, of_long = Session(subject, agent, short, run.workspace), Session(subject, agent, long, run.workspace)
        await agent.attach(short)
        await of_short.say(Plan())  # the vendor's SDK is there, the connection open
        run.results.add("long.open", subject.name, await _milliseconds(agent.attach(long)))
        run.results.add("long.again", subject.name, await _milliseconds(agent.attach(long)))
        await asyncio.sleep(BREATH)
        first = await _request(run, of_long)
        pairs = [(await _request(run, of_short), await _request(run, of_long)) for _ in range(9)]
        usual = statistics.median(brief.added for brief, _ in pairs)
        run.results.add("long.first", subject.name, first.spent)
        run.results.add("long.next", subject.name, statistics.median(ours.spent for _, ours in pairs))
        run.results.add("long.next.bare", subject.name, statistics.median(ours.bare for _, ours in pairs))
        run.results.add("long.next.short", subject.name, statistics.median(brief.spent for brief, _ in pairs))
        run.results.add("long.next.growth", subject.name, statistics.median(ours.added for _, ours in pairs) / usual)
        run.results.add("long.first.growth", subject.name, first.added / usual)

    await _with_editor(run, subject, opened)


async def _heavy(run: Run, subject: Subject) -> None:
    """60 MB of journal."""
    heavy, short = await _write(run, subject, past.HEAVY), await _write(run, subject, past.SHORT)

    async def opened(agent: AmanuAgent) -> None:
        await agent.attach(short)
        await Session(subject, agent, short, run.workspace).say(Plan())  # the vendor's SDK is there

        async def beside(other: AmanuAgent) -> None:
            """Another editor, so that nothing stands in its way but what the daemon does."""
            await other.ping()
            spent, longest = await _asking(other, agent.attach(heavy))
            run.results.add("heavy.open", subject.name, spent)
            run.results.add("heavy.wait", subject.name, longest)
            _, longest = await _asking(other, asyncio.sleep(spent / 1000))
            run.results.add("heavy.wait.idle", subject.name, longest)

        await _with_editor(run, subject, beside)
        run.results.add("heavy.memory", subject.name, agent.tree.memory())
        await Session(subject, agent, heavy, run.workspace).say(Plan())
        await asyncio.sleep(0.5)
        run.results.add("heavy.memory.turn", subject.name, agent.tree.memory())
        run.results.add("heavy.memory.peak", subject.name, agent.tree.peak())

    await _with_editor(run, subject, opened)


async def _with_editor(run: Run, subject: Subject, deed: Callable[[AmanuAgent], Awaitable[None]]) -> None:
    agent = await subject.start(run.stage.place(subject, run.workspace))
    assert isinstance(agent, AmanuAgent)
    try:
        await agent.initialize()
        await deed(agent)
    finally:
        await agent.stop()


async def _write(run: Run, subject: Subject, size: past.Size) -> str:
    """A session of its own of that size, in the subject's home; its id."""
    home: Path = run.stage.place(subject, run.workspace).home / "amanu"
    session = uuid.uuid4().hex
    await past.write(home, session, run.workspace, MODELS[subject.wire], size)
    return session


@dataclass(frozen=True)
class _Request:
    spent: float
    """Milliseconds from a prompt to the moment the request is at the service, whole."""
    bare: float
    """What a client takes for as many bytes that has nothing else to do."""

    @property
    def added(self) -> float:
        return self.spent - self.bare


async def _request(run: Run, session: Session) -> _Request:
    await run.seen()
    turn = await session.say(Plan())
    requests = await run.seen()
    if len(requests) != 1:
        raise Failed(f"{len(requests)} requests for a prompt that needs one")
    await asyncio.sleep(BREATH)
    return _Request((requests[0].arrived - turn.sent) * 1000, await _bare(run, requests[0].size))


async def _bare(run: Run, size: int) -> float:
    tail = b'"tools":[],"messages":"%b"}' % prompt(Plan()).encode()
    body = b"{" + b" " * (size - len(tail) - 1) + tail
    async with httpx2.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{run.stage.port}"
        await client.get(f"{url}/bench/log")  # connected, as the agent is
        sent = time.monotonic()
        await client.post(f"{url}/v1/messages", content=body)
    return ((await run.seen())[-1].arrived - sent) * 1000


async def _asking(agent: AmanuAgent, deed: Awaitable[object]) -> tuple[float, float]:
    """Milliseconds for the deed, and the longest that a request took meanwhile."""
    waits = [0.0]
    asking = asyncio.create_task(_keep_asking(agent, waits))
    try:
        spent = await _milliseconds(deed)
        return spent, max(waits)
    finally:
        asking.cancel()


async def _keep_asking(agent: AmanuAgent, waits: list[float]) -> None:
    """How long the daemon takes for something that takes it no time."""
    while True:
        waits.append(await _milliseconds(agent.ping()))
        await asyncio.sleep(0.002)


async def _milliseconds(deed: Awaitable[object]) -> float:
    started = time.monotonic()
    await deed
    return (time.monotonic() - started) * 1000
