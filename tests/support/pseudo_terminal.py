"""A program at a pseudo terminal, and somebody who looks and types."""

import os
import pty
import re
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path

SECONDS = 40.0


class PseudoTerminal:
    def __init__(self, command: Sequence[str], *, cwd: Path, size: tuple[int, int] = (100, 40), **variables: str):
        columns, lines = size
        self._screen, side = pty.openpty()
        termios.tcsetwinsize(side, (lines, columns))
        self.process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm", "COLUMNS": f"{columns}", "LINES": f"{lines}", **variables},
            start_new_session=True,
        )
        os.close(side)
        self.shown = ""
        self._seen = 0

    def sees(self, text: str) -> None:
        """Read until the text stands there, colours and cursor movements aside, after what was seen before."""
        self.sees_match(re.escape(text))

    def sees_match(self, pattern: str) -> str:
        """Likewise; returns all that was shown since what was seen before, up to there."""
        until = time.monotonic() + SECONDS
        while (found := re.compile(pattern).search(self.shown, self._seen)) is None:
            assert time.monotonic() < until, f"no {pattern!r} in:\n{self.shown}"
            assert self._look(), f"it ended without {pattern!r}:\n{self.shown}"
        before = self.shown[self._seen : found.start()]
        self._seen = found.end()
        return before

    def takes_prompts(self) -> None:
        """Read until its status line says "Enter sends", of which letters that stood there already are not redrawn."""
        self.sees("sends")

    def types(self, text: str) -> None:
        os.write(self._screen, text.encode(errors="surrogateescape"))

    def leaves(self) -> int:
        while self._look():
            pass
        return self.process.wait(timeout=SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def _look(self) -> bool:
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # Linux says EIO at the end of a pseudo terminal
            return False
        if b"\x1b[6n" in data:  # prompt_toolkit asks where the cursor is
            self.types("\x1b[1;1R")
        text = re.sub(
            r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b.", "", data.decode("utf-8", "replace")
        )
        self.shown += text.replace("\r", "")
        return bool(data)
