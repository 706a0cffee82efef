"""Prompts of a warm session: what the agent adds to a first token, and many chunks at full speed."""

import asyncio
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session

BREATH = 0.1
"""Seconds after a turn: what is still done for it is not the next turn's, and nobody types faster."""


async def measure(run: Run) -> None:
    async with run.sessions(run.workspace, "stream") as sessions:
        for subject in run.turns(3 * run.repeat):
            if session := sessions.get(subject.name):
                await run.attempt(subject, "warm prompt", partial(_token, run, session))
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "stream", partial(_stream, run, session))
        await asyncio.sleep(1)
        for session in sessions.values():
            run.results.add("stream.memory", session.subject.name, session.agent.tree.memory())


async def added(run: Run, session: Session) -> float:
    """Milliseconds that the agent adds between a prompt and its first token."""
    return (await _prompt(run, session))[0]


async def _token(run: Run, session: Session) -> None:
    token, end = await _prompt(run, session)
    run.results.add("token", session.subject.name, token)
    run.results.add("end", session.subject.name, end)


async def _prompt(run: Run, session: Session) -> tuple[float, float]:
    """Milliseconds added to the first token, and to the end of the reply."""
    await run.seen()
    turn = await session.say(Plan())
    await asyncio.sleep(BREATH)
    request = (await run.seen())[-1]
    if turn.first is None or turn.ended is None or request.first is None or request.ended is None:
        raise Failed(f"no text came: {turn.reason}")
    token = request.arrived - turn.sent + turn.first - request.first
    return token * 1000, (turn.ended - request.ended) * 1000


async def _stream(run: Run, session: Session) -> None:
    before = session.agent.tree.cpu()
    turn = await session.say(Plan(chunks=run.chunks))
    wanted = sum(len(f"w{n} ") for n in range(run.chunks))
    if turn.ended is None or turn.first is None or turn.characters < wanted:
        raise Failed(f"{turn.characters} of {wanted} characters came")
    name = session.subject.name
    run.results.add("stream.wall", name, turn.ended - turn.sent)
    run.results.add("stream.cpu", name, session.agent.tree.cpu() - before)
    run.results.add("stream.rate", name, turn.updates / (turn.ended - turn.first))
