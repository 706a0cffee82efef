"""A disk that is full, as a process meets it."""

import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def full_from(size: int) -> Generator[None]:
    """Writing a file beyond so many bytes fails (EFBIG; Python ignores the signal)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
