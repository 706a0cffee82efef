"""How long the event loop of a test was busy at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from amanu.system.loop_monitor import STALL

_TRIES = 3
"""Tries, of which one must hold the loop short enough: beside other processes the same work takes the processor twice
as long, now and then."""
_ORDINARY = 0.02
"""Seconds of processor time that `_fixed_work` takes on an ordinary machine."""


async def goes_on(longest: Callable[[int], Awaitable[float]]) -> None:
    """Assert that `longest` holds the loop for less than 50 ms on an ordinary machine; a slower one, or one that others
    use, has more time. `longest` is given the number of the try, and returns the longest hold in seconds."""
    tried: list[tuple[float, float]] = []
    while len(tried) < _TRIES and not any(held < limit for held, limit in tried):
        tried.append((await longest(len(tried)), STALL * max(1, _fixed_work() / _ORDINARY)))
    assert any(held < limit for held, limit in tried), tried


@contextmanager
def loop_times() -> Generator[list[float]]:
    """Yields what is filled with the seconds between two waits of the running loop, of its thread's processor: other
    processes do not count."""
    loop: Any = asyncio.get_running_loop()
    selector: Any = loop._selector
    select: Callable[[float | None], Any] = selector.select
    times: list[float] = []
    began: float | None = None

    def timed(timeout: float | None = None) -> Any:
        nonlocal began
        if began is not None:
            times.append(time.thread_time() - began)
        ready = select(timeout)
        began = time.thread_time()
        return ready

    selector.select = timed
    try:
        yield times
    finally:
        selector.select = select


def _fixed_work() -> float:
    began, texts = time.thread_time(), dict[int, str]()
    for number in range(100_000):
        texts[number % 512] = str(number)
    return time.thread_time() - began
