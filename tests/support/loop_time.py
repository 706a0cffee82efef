"""How long the event loop of a test was busy at a time."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

TRIES = 3
"""In how many the loop may be seen to be busy for too long: beside other processes the same work takes the processor
twice as long, now and then."""


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
