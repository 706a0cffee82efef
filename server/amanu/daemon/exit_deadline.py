"""Who is told to go goes, whatever still runs: else whoever told it waits, and kills it in the end without a word."""

import asyncio
import logging
import os
import threading
from typing import Any

LEAVE_SECONDS = 60.0
"""More than anything takes that comes to its end: a command that ignores signals has 4 (`system/process_tree.py`)."""

log = logging.getLogger(__name__)


def leave_by(seconds: float = LEAVE_SECONDS) -> None:
    """From now on the process ends within so many seconds, at the latest with exit code 1 and a line in the log that
    says what did not come to its end. What was acknowledged is on disk by then, and a command's sandbox fall with
    us."""
    watching = threading.Timer(seconds, _give_up, (asyncio.get_running_loop(), seconds))
    watching.daemon = True
    watching.start()


def _give_up(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    waiting = ", ".join(sorted(f"{task.get_name()} at {_where(task)}" for task in asyncio.all_tasks(loop)))
    log.error("leaving anyway: after %g s these had not ended: %s", seconds, waiting or "threads")
    logging.shutdown()
    os._exit(1)


def _where(task: asyncio.Task[Any]) -> str:
    """The innermost place that it waits at, in whoever's code that is."""
    location, inner = "?", task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "ag_frame", None)
        if frame is not None:
            location = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
        inner = getattr(inner, "cr_await", None) or getattr(inner, "ag_await", None)
    return location
