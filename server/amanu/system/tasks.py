"""Async work that is finished even when whoever awaits it is cancelled; the cancellation then goes on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Process = asyncio.subprocess.Process
KERNEL = 5.0
"""Seconds after which a killed process counts as hanging in the kernel (say, on a file system that does not answer).
Nobody can end it, so nothing may wait for it."""


async def run_to_completion(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await `coroutine` until it has ended, even when cancelled; then the cancellation goes on."""
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
    """`asyncio.create_subprocess_exec(*argv, **options)`, except that when cancelled, a process that did start is ended
    by `end` before the cancellation goes on. `end` must end everything that holds the process's pipes.

    asyncio alone would kill only the process it started, and wait until nobody else holds its pipes: that may be never,
    and whatever holds them would go on running unseen.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await run_to_completion(_end(starting, end))
        raise


async def kill(process: Process) -> None:
    """Kill the process, not its children, and wait for its end as `wait_killed` does."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await wait_killed(process)


async def wait_killed(process: Process, seconds: float = KERNEL) -> None:
    """Return when that killed process has ended, or after so many seconds. Output that nobody has read is lost.

    `Process.wait` also waits for the ends of the pipes, which never come when another process holds a pipe, or when a
    pipe is so full that asyncio has stopped reading it.
    """
    transport = getattr(process, "_transport", None)
    if transport is not None:
        for descriptor in (1, 2):
            if (reading := transport.get_pipe_transport(descriptor)) is not None:
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
