"""Learn how each command of a line's last pipe ended, which bash alone knows."""

import contextlib
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from amanu.shell.pipes import PipedCommand

_LONGEST = 4096  # bytes of what is read: the command can write there too


@dataclass(frozen=True)
class PipeStatuses:
    """A pipe of the system's, into which bash writes `PIPESTATUS` as its last act."""

    handle: int
    """The end to be inherited by the command."""
    _ours: int

    def reported(self, line: str) -> str:
        """The line for bash, which writes the statuses when it ends. Its line numbers stay as they are."""
        return f"trap 'printf %s \"${{PIPESTATUS[*]}}\" >&{self.handle}' EXIT; {line}"

    def read(self) -> Sequence[int]:
        """The statuses, once the command has ended; () if it wrote none: a trap of its own may have replaced ours."""
        try:
            words = os.read(self._ours, _LONGEST).split()
            return [int(word) for word in words]
        except (OSError, ValueError):
            return ()


@contextlib.contextmanager
def pipe_statuses(pipe: Sequence[PipedCommand]) -> Generator[PipeStatuses | None]:
    """Open while a command runs whose line ends with such a pipe; None where it does not."""
    if len(pipe) < 2:
        yield None
        return
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    try:
        yield PipeStatuses(theirs, ours)
    finally:
        os.close(ours)
        os.close(theirs)
