"""What the C library does with memory that is not needed any more."""

import contextlib
import ctypes
import sys

BIG = 8 * 1024 * 1024
"""Bytes from which a piece of memory is the system's again the moment it is free. Taking it anew costs half a
millisecond for each of these megabytes: requests are seldom as big."""
SLACK = 2 * BIG
"""Free bytes at the end of the heap that are kept for later."""


def give_back() -> None:
    """Have memory given back when it is free. By default glibc keeps the more for later the bigger the pieces were it
    has seen (one request of 30 MB, and the process is 60 MB bigger until it ends), and keeps it for each thread apart,
    though ours take turns. (mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX.) Elsewhere this does nothing.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(-3, BIG)
            mallopt(-1, SLACK)
            mallopt(-8, 1)
