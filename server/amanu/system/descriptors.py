"""Bytes from and to an operating-system file descriptor, blocking. Standard library only."""

import os
from collections.abc import Callable


def read_descriptor(descriptor: int) -> Callable[[], bytes]:
    """A function that reads some bytes from it, none at its end."""
    return lambda: os.read(descriptor, 65536)


def write_descriptor(descriptor: int) -> Callable[[bytes], None]:
    """A function that writes all it is given to it."""

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    return write
