"""Runs work with the garbage collector switched off."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Generator[None]:
    """For imports at start-up, which take a third less time this way: there is nothing to collect. The collector never
    visits the imported objects again."""
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
    """For milliseconds of work with a deadline: the collector runs in whichever thread allocates next, and can take
    longer than that in a process with many objects. If two threads are in here, the first to leave may switch it on
    for both, which only costs time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
