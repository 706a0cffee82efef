"""What is seen to its end though who awaits it is cancelled: then the cancellation goes on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Process = asyncio.subprocess.Process
KERNEL = 5.0
"""Seconds after which a process that was killed hangs in the kernel (a file system that does not answer): nobody can
end it, and nothing may wait for it."""


async def run_to_completion(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end even when cancelled; then the cancellation goes on."""
    task = asyncio.ensure_future(coroutine)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except Exception:
            break
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    return task.result()


async def start_process(end: Callable[[Process], Awaitable[object]], *argv: str, **options: Any) -> Process:
    """`asyncio.create_subprocess_exec(*argv, **options)`; but if it is cancelled, a process that did start is ended by
    `end` before the cancellation goes on. `end` must end everything that holds its pipes.

    asyncio itself, cancelled there, kills the one process it started and waits until nobody else holds its pipes
    either: that may be never, and whatever holds them runs on unseen.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await run_to_completion(_end(starting, end))
        raise


async def wait_killed(process: Process, seconds: float = KERNEL) -> None:
    """Return when that process, which was killed, is no more, or after so many seconds. What it said and nobody read is
    lost.

    Its own `wait` also waits for the ends of its pipes. They never come of one that another process holds, nor of one
    so full that asyncio has stopped reading it.
    """
    transport = getattr(process, "_transport", None)
    if transport is not None:
        for attempt in (1, 2):
            if (reading := transport.get_pipe_transport(attempt)) is not None:
                reading.close()
        writing = transport.get_pipe_transport(0)
        if writing is not None and (not writing.is_closing() or writing.get_write_buffer_size()):
            writing.abort()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.wait()
    if transport is not None:
        transport.close()


async def _end(starting: "asyncio.Task[Process]", end: Callable[[Process], Awaitable[object]]) -> None:
    try:
        process = await starting
    except (OSError, ValueError):
        return  # nothing started
    await end(process)
