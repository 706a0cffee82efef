"""Work with the garbage collector off."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Generator[None]:
    """Around imports at start-up, a third less time: there is nothing to collect. What they made is never looked at by
    the collector again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()
            gc.enable()


@contextmanager
def uncollected() -> Generator[None]:
    """Around milliseconds of work that a clock stops. The collector runs in whichever thread makes the next object, and
    takes longer than that in a process with many. Of two threads in here the last to leave may do without: it only
    saves time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
