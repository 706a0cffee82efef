"""Breaks work off after any number of steps of the event loop: each is a moment at which a user, a client that goes
or a daemon that leaves may come between."""

import asyncio
from collections.abc import Callable
from typing import Any


def after_loop_steps(steps: int, do: Callable[[], object]) -> Callable[[], bool]:
    """`do` it when the running loop has gone round so often. Returns how to ask whether that has happened; asking
    ends the counting."""
    loop: Any = asyncio.get_running_loop()
    once: Callable[[], None] = loop._run_once
    left = steps

    def counted() -> None:
        nonlocal left
        once()
        left -= 1
        if left == 0:
            loop.__dict__.pop("_run_once", None)
            do()

    def asked() -> bool:
        nonlocal left
        loop.__dict__.pop("_run_once", None)
        happened, left = left <= 0, 0
        return happened

    loop._run_once = counted
    return asked


async def cancelled_after(task: asyncio.Task[Any], steps: int, seconds: float = 30) -> bool:
    """Cancel a task that was just made after so many steps, and wait for its end. False when it ended before."""
    was_in_time = after_loop_steps(steps, task.cancel)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    assert done, f"cancelled after {steps} steps, it had not ended after {seconds:g} s: {task}"
    if not task.cancelled():
        task.exception()
    return was_in_time()
