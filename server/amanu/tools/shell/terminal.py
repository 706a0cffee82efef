"""The terminal of a command that asked for one: its screen has a size and no window."""

import asyncio
import contextlib
import fcntl
import os
import struct
import termios

ROWS, COLUMNS = 40, 120
BECOME_CONTROLLING = ": <>/proc/self/fd/0"
"""A step of the entry shell: the terminal it opens becomes that of its session, so that Ctrl-C reaches what runs."""


class Terminal:
    """Our end of a pseudoterminal, and until it is inherited the command's end, `slave`."""

    def __init__(self) -> None:
        """Raises `OSError`."""
        self._master, self.slave = os.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.set_blocking(self._master, False)
        self._transport: asyncio.ReadTransport | None = None

    async def reader(self) -> asyncio.StreamReader:
        """What the command prints. Closes the command's end here: it has its own now."""
        self._close_slave()
        stream = asyncio.StreamReader(limit=1 << 16)
        own = os.fdopen(os.dup(self._master), "rb", buffering=0)
        protocol = asyncio.StreamReaderProtocol(stream)
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, own)
        return stream

    def write(self, data: bytes) -> int:
        """Type it. Returns how many bytes were taken: fewer when the command does not read."""
        with contextlib.suppress(BlockingIOError):
            return os.write(self._master, data)
        return 0

    @property
    def has_foreground(self) -> bool:
        """Whether processes get a signal for what is typed, such as Ctrl-C."""
        with contextlib.suppress(OSError):
            return os.tcgetpgrp(self._master) > 0
        return False

    def close(self) -> None:
        self._close_slave()
        if self._transport is not None:
            self._transport.close()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _close_slave(self) -> None:
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1
