"""Tools at work: search in trees of 20,000 and 200,000 files, mentions in the latter, and a file of 1 MB."""

import asyncio
import time
from functools import partial
from pathlib import Path

from bench.plan import Plan
from bench.run import Failed, Run, Session
from bench.subject import Deed, Subject
from bench.subjects.amanu import AmanuAgent

SETTLE = 0.6
"""Seconds before an approval is answered: Amanu takes none earlier (half a second)."""


PAUSE = 0.1
"""Seconds between two keys: who types fast presses ten a second."""
LEAST = 1_000
"""Bytes that the result of a search adds to a request; an error message is shorter."""
POLL = 0.02
"""Seconds until it is asked again, while the files are still read."""
TYPED = ("@m", "@mo", "@mod", "@modu", "@module_1", "@p7", "@p7g3", "@p7g3m", "@group4/", "@9999.py", "@modlue_777")
"""What stands before the cursor, key after key: names, initials, folders, letters apart, a typing error."""


async def measure(run: Run) -> None:
    async with run.sessions(run.tree, "files") as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "grep", partial(_search, run, session, "grep", "needle"))
                await run.attempt(subject, "glob", partial(_search, run, session, "glob", "**/module_*7.py"))
                await run.attempt(subject, "1 MB file", partial(_big, run, session))


async def measure_many(run: Run) -> None:
    for subject in run.turns(min(run.repeat, 3)):
        if subject.name.startswith("Amanu"):
            await run.attempt(subject, "mention", partial(_mention, run, subject))
    async with run.sessions(run.big_tree, "many files") as sessions:
        for subject in run.turns():
            if session := sessions.get(subject.name):
                await run.attempt(subject, "grep", partial(_search, run, session, "grep", "needle", ".200k"))
                await run.attempt(subject, "glob", partial(_search, run, session, "glob", "**/module_*7.py", ".200k"))


async def _mention(run: Run, subject: Subject) -> None:
    """In a new daemon, which has listed no files yet."""
    session = await run.start(subject, run.big_tree)
    try:
        first = await _key(session, "@", incomplete=True)
        run.results.add("mention.first", subject.name, first)
        run.results.add("mention.all", subject.name, first + await _key(session, "@m"))
        rest = [await _key(session, text) for text in TYPED]
        for taken in rest:
            run.results.add("mention.key", subject.name, taken)
    finally:
        await session.agent.stop()


async def _key(session: Session, text: str, *, incomplete: bool = False) -> float:
    """Milliseconds until something is offered, of all files if it need not be `incomplete`."""
    assert isinstance(session.agent, AmanuAgent)
    await asyncio.sleep(0 if incomplete else PAUSE)
    began = time.monotonic()
    answer = await session.agent.call("amanu/mention/complete", session.id, text=text)
    while answer.get("incomplete") and not incomplete:
        await asyncio.sleep(POLL)
        answer = await session.agent.call("amanu/mention/complete", session.id, text=text)
    taken = (time.monotonic() - began) * 1000
    if not answer["items"]:
        raise Failed(f"nothing was offered for {text}")
    return taken


async def _search(run: Run, session: Session, deed: Deed, pattern: str, tree: str = "") -> None:
    run.results.add(deed + tree, session.subject.name, await _use(run, session, deed, {"pattern": pattern}, LEAST))


async def _big(run: Run, session: Session) -> None:
    path = _big_file(session)
    name = session.subject.name
    run.results.add("big.read", name, await _use(run, session, "read", {"path": str(path)}))
    old = _line(9000)
    uses = session.subject.uses("edit", {"path": str(path), "old": old, "new": old.upper()})
    if uses is None:
        return
    await run.seen()
    turn = session.prompt(Plan(steps=1, **uses))
    asked = asyncio.ensure_future(turn.question.wait())
    over = asyncio.ensure_future(turn.over.wait())
    await asyncio.wait({asked, over}, return_when=asyncio.FIRST_COMPLETED)
    if turn.asked is None:
        raise Failed(f"the edit was not asked about: {turn.reason}")
    await asyncio.sleep(SETTLE)
    approved = time.monotonic()
    session.agent.approve(session.id)
    await over
    if old.upper() not in path.read_text():
        raise Failed("the file was not changed")
    requests = await run.seen()
    run.results.add("big.preview", name, (turn.asked - (requests[0].ended or 0)) * 1000)
    run.results.add("big.edit", name, (requests[1].arrived - approved) * 1000)


async def _use(run: Run, session: Session, deed: Deed, what: dict[str, str], least: int = 0) -> float:
    """Milliseconds from the end of the reply that calls the tool to the request that brings the result, which has at
    least so many bytes."""
    uses = session.subject.uses(deed, what)
    if uses is None:
        raise Failed(f"it has no tool for {deed}")
    await run.seen()
    await session.say(Plan(steps=1, **uses))
    requests = await run.seen()
    if least and requests[1].size - requests[0].size < least:
        raise Failed(f"its tool for {deed} brought no result")
    return (requests[1].arrived - (requests[0].ended or 0)) * 1000


def _line(n: int) -> str:
    return f"line {n} of ten thousand ".ljust(99, ".")


def _big_file(session: Session) -> Path:
    """1 MB in lines of a hundred characters, the same for everyone, one each."""
    path = session.folder / f"big-{session.subject.name.replace(' ', '-').replace(',', '')}.txt"
    path.write_text("".join(_line(n) + "\n" for n in range(10_000)))
    return path
