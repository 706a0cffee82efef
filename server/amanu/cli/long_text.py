"""Text that is too long for the screen: its title and files are repeated below it, next to the question."""

import io
import shutil
from collections.abc import Callable, Iterable, Sequence

from amanu.cli.console import Console, PlainConsole
from amanu.cli.diff import show_file_header
from amanu_protocol.items import ProposedFile

_QUESTION_ROWS = 14
"""Rows of the screen kept free for what is said and asked below the text."""
_FILES = 8
"""Files repeated below the text, at most."""


def printed(show: Callable[[Console], object]) -> str:
    """What that would print."""
    out = io.StringIO()
    show(PlainConsole(out))
    return out.getvalue()


def is_long(text: str) -> bool:
    """Whether its beginning has scrolled off the screen when a question is asked below it."""
    columns, lines = shutil.get_terminal_size()
    rows = sum(max(1, -(-len(line) // columns)) for line in text.splitlines())
    return rows > lines - _QUESTION_ROWS


def show_extent(text: str, console: Console) -> None:
    lines = f"{len(text.splitlines()):,} lines"
    console.line(("yellow", f"  The text above is {lines} long; its beginning may have scrolled off the screen."))


def show_files_again(files: Iterable[ProposedFile], roots: Sequence[str], console: Console) -> None:
    """Show again which files it is about, and how much of them changes."""
    files = list(files)
    for file in files[:_FILES]:
        show_file_header(console, file, roots)
    if len(files) > _FILES:
        console.line(("dim", f"  … and {len(files) - _FILES} more files"))
