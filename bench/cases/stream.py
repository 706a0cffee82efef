"""Prompts of a warm session: what the agent adds to a first token, and many chunks at full speed."""

import asyncio
from functools import partial

from bench.plan import Plan
from bench.run import Failed, Run, Session


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


async def _token(run: Run, session: Session) -> None:
    await run.seen()
    turn = await session.say(Plan())
    await asyncio.sleep(0.01)  # what it still does after the turn is not the next turn's
    request = (await run.seen())[-1]
    if turn.first is None or turn.ended is None or request.first is None or request.ended is None:
        raise Failed(f"no text came: {turn.reason}")
    added = request.arrived - turn.sent + turn.first - request.first
    run.results.add("token", session.subject.name, added * 1000)
    run.results.add("end", session.subject.name, (turn.ended - request.ended) * 1000)


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
