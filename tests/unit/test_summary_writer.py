"""The list of sessions is true for whoever asks, though its entries are written a moment later."""

import asyncio

from amanu.session.summary_writer import SummaryWriter
from amanu_protocol.state import SessionState


def session(name: str) -> SessionState:
    return SessionState(session_id=name, title="", roots=[], mode="ask", model_id="m", trusted=False, read_only=False)


async def test_what_changes_within_a_moment_is_one_entry() -> None:
    put: list[str] = []

    async def write(state: SessionState) -> None:
        await asyncio.sleep(0)
        put.append(state.session_id)

    summaries = SummaryWriter(write)
    a, b = session("a"), session("b")
    for each in (a, b, a, a):
        summaries.changed(each)
    assert put == []
    await summaries.settled()
    assert put == ["a", "b"]

    summaries.changed(a)
    summaries.written(a)  # closed, perhaps: what waited says that it is open
    await summaries.settled()
    assert put == ["a", "b"]

    summaries.changed(b)
    async with asyncio.timeout(50):
        while put != ["a", "b", "b"]:
            await asyncio.sleep(0.01)


async def test_a_session_that_is_closed_just_then_is_not_noted_as_open() -> None:
    put: list[str] = []

    async def write(state: SessionState) -> None:
        put.append(state.session_id)

    summaries = SummaryWriter(write)
    summaries.changed(session("a"))
    settling = asyncio.ensure_future(summaries.settled())  # as the timer does: its task has yet to begin
    asyncio.get_running_loop().call_soon(summaries.written, session("a"))
    await settling
    assert put == []
