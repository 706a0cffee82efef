"""Make a command in bubblewrap wait until the daemon knows that its sandbox is complete.

bubblewrap ties its processes to the life of the daemon only once they exist (`--die-with-parent`, in its init
process). A daemon killed in the ten milliseconds before would leave a command that nothing ends.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager

_CREDENTIALS = struct.Struct("3i")
"""The credentials of `unix(7)`: process, user and group."""


class StartGate:
    """A socket pair: the command reports that it is there, then waits for the daemon's answer or its end."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, reported: Callable[[int], None]) -> None:
        self._ours = ours
        self._reported = reported
        self.handle = theirs.fileno()
        """The command's end, to be inherited by it."""

    @property
    def step(self) -> str:
        """The shell code that waits, to run before the command. Needs bash: POSIX shells allow no descriptor above
        9."""
        fd = self.handle
        return f"printf . >&{fd} && IFS= read -r -n 1 -u {fd} && exec {fd}>&- || exit 126"

    @contextmanager
    def answered(self) -> Generator[None]:
        """While this context is open, the command is answered when it reports. In the event loop."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._ours, self._answer, loop)
        try:
            yield
        finally:
            loop.remove_reader(self._ours)

    def _answer(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._ours)
        with contextlib.suppress(OSError):
            data, ancillary, _, _ = self._ours.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
            for level, kind, credentials in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    self._reported(_CREDENTIALS.unpack(credentials)[0])
            if data:
                self._ours.send(b"\n")


@contextmanager
def start_gate(reported: Callable[[int], None]) -> Generator[StartGate]:
    """Open a start gate; closed when the context is left. When the command reports, `reported` is called with the id
    of its process, as we know it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        yield StartGate(ours, theirs, reported)
