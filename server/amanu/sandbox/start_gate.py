"""A command behind bubblewrap begins when the daemon knows that its sandbox stands.

bubblewrap ties them to the life of its parent only when they are made (`--die-with-parent`, in its init process). Who
is killed in the ten milliseconds before would leave a command that nobody ends.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from contextlib import contextmanager


class StartGate:
    """Two ends of a line: the command says that it is there, and waits for the daemon's answer, or for its end."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self._ours = ours
        self.handle = theirs.fileno()
        """Of the command's end; to be inherited."""

    @property
    def step(self) -> str:
        """On the way into the command. POSIX shells know no handle above 9, bash does."""
        fd = self.handle
        return f"printf . >&{fd} && IFS= read -r -n 1 -u {fd} && exec {fd}>&- || exit 126"

    @contextmanager
    def answered(self) -> Generator[None]:
        """While it is open, the command is answered when it calls. In the event loop."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._ours, self._answer, loop)
        try:
            yield
        finally:
            loop.remove_reader(self._ours)

    def _answer(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._ours)
        with contextlib.suppress(OSError):
            if self._ours.recv(1):
                self._ours.send(b"\n")


@contextmanager
def start_gate() -> Generator[StartGate]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield StartGate(ours, theirs)
