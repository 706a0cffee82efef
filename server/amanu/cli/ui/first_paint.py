"""The first line of a chat, drawn before anything is imported that takes time. Imports next to nothing.

What is typed meanwhile is kept for the composer, unechoed.
"""

import contextlib
import os
import sys
from collections.abc import Generator, Sequence

from amanu.cli.keyboard_mode import unechoed

_LINE = "\x1b[2m› starting …\x1b[0m"
_is_painted = False


@contextlib.contextmanager
def painted(arguments: Sequence[str]) -> Generator[None]:
    """The line, until `erase`, or the end."""
    global _is_painted
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    if not is_terminal or {"-h", "--help"} & {*arguments}:
        yield
        return
    with unechoed():
        _is_painted = True
        sys.stdout.write(_LINE)
        sys.stdout.flush()
        try:
            yield
        finally:
            erase()


def erase() -> None:
    global _is_painted
    if _is_painted:
        _is_painted = False
        sys.stdout.write("\r\x1b[K")
        sys.stdout.flush()
