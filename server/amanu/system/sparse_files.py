"""Copies files so that holes stay holes: a file of 10 GB may take up no space. Blocking."""

import errno
import os
from typing import BinaryIO

_PART = 1 << 20


def copy_data(source: int, file: BinaryIO) -> None:
    """Copy the whole file that the descriptor refers to. Raises `OSError`."""
    end = 0
    while (start := _next_data(source, end)) is not None:
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(source, start, os.SEEK_SET)
        file.seek(start)
        while part := os.read(source, min(_PART, end - file.tell())):
            file.write(part)
    file.truncate(os.fstat(source).st_size)


def _next_data(source: int, start: int) -> int | None:
    try:
        return os.lseek(source, start, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole follows
            return None
        raise
