"""One timer for the waits of a stream: each has its own limit, and what else cancels is no silence."""

import asyncio
from contextlib import closing

import pytest

from amanu.models.idle_timer import IdleTimer

LONG = 1000.0


async def part(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([(0, LONG)], "all"),
        ([(LONG, 0.01)], "silent at 0"),
        ([(0, LONG), (0, LONG), (LONG, 0.01)], "silent at 2"),
        ([(0, 0.01), (0.03, LONG), (0, LONG)], "all"),
        ([(0, LONG), (LONG, 0.01)], "silent at 1"),
        ([(0.05, 0.2)] * 6, "all"),
    ],
)
async def test_each_wait_has_its_limit(waits: list[tuple[float, float]], expected: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    came = "all"
    with closing(IdleTimer()) as timer:
        for index, (seconds, limit) in enumerate(waits):
            try:
                assert await timer.wait(part(seconds), limit) == seconds
            except TimeoutError:
                came = f"silent at {index}"
    assert (came, task.cancelling()) == (expected, 0)


async def test_what_happens_between_two_waits_takes_its_time() -> None:
    with closing(IdleTimer()) as timer:
        await timer.wait(part(0), 0.01)
        await asyncio.sleep(0.03)
        assert await timer.wait(part(0.001), LONG) == 0.001


async def test_a_cancel_is_no_silence() -> None:
    async def waiting() -> None:
        with closing(IdleTimer()) as timer:
            await timer.wait(part(LONG), LONG)

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_part_that_came_although_it_was_cancelled_counts() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            return "came"
        return "never"

    task = asyncio.current_task()
    assert task is not None
    with closing(IdleTimer()) as timer:
        assert await timer.wait(stubborn(), 0.01) == "came"
    assert task.cancelling() == 0
