"""A status line at the bottom of a terminal, for commands that do not read from it while they run."""

import asyncio
import io
import shutil
from collections.abc import Callable, Sequence
from typing import TextIO

from amanu.cli.console import Console, Span, Style
from amanu.cli.status_line import Activity

TICK_SECONDS = 0.1


class LiveConsole:
    """A console with a last line that moves. Lines printed through it go above; what others print to the same
    screen must come after `clear`."""

    def __init__(self, console: Console, out: TextIO, status: Callable[[], Activity | None]) -> None:
        self._console = console
        self._out = out
        self._status = status
        self._current = ""
        self._ticking: asyncio.Task[None] | None = None

    def line(self, *spans: Span, hang: int | None = None) -> None:
        self.clear()
        self._console.line(*spans, hang=hang)

    def verbatim(self, *spans: Span) -> None:
        self.clear()
        self._console.verbatim(*spans)

    def diff(self, lines: Sequence[Span], name: str | None) -> None:
        self.clear()
        self._console.diff(lines, name)

    def markdown(self, text: str, style: Style = "") -> None:
        self.clear()
        self._console.markdown(text, style)

    def start(self) -> None:
        """Keep the line fresh until `stop`."""
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
            self._ticking = None
        self.clear()

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._current:
            self._current = ""
            self._out.write("\r\x1b[K")
            self._out.flush()

    async def _tick(self) -> None:
        while True:
            activity = self._status()
            status = "" if activity is None else activity.line(shutil.get_terminal_size().columns - 1)
            if status != self._current:
                self._current = status
                self._out.write(f"\r\x1b[K\x1b[2m{status}\x1b[0m" if status else "\r\x1b[K")
                self._out.flush()
            await asyncio.sleep(TICK_SECONDS)


def rows(lines: list[str], count: int, columns: int) -> list[str]:
    """The last `count` rows of the screen that these lines fill, wrapped between words. A long line goes on in the next
    row: cut off, it would seem to stand still while it grows."""
    from rich.console import Console as RichOutput
    from rich.text import Text

    output = RichOutput(width=columns, file=io.StringIO())
    screen_rows: list[str] = []
    for line in lines:
        start = max(0, len(line) // columns - 4 * count) * columns  # far more than can be seen, and no more
        wrapped = Text(line[start:]).wrap(output, columns, overflow="fold")
        screen_rows += [row.plain.rstrip() for row in wrapped] or [""]
    return screen_rows[-count:]
