"""What is written on: Rich on a terminal, plain text in a pipe. Neither ever gets an escape sequence from outside:
callers pass text through `amanu.cli.text` first."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

if TYPE_CHECKING:
    from rich.markdown import Markdown

Style = Literal["", "dim", "bold", "red", "green", "yellow", "cyan", "heading"]
Span = tuple[Style, str]


class Console(Protocol):
    """Prints whole lines, for good."""

    def line(self, *spans: Span) -> None:
        """One line (or several, when a text holds newlines) made of styled pieces."""
        ...

    def prose(self, *spans: Span) -> None:
        """As `line`, for sentences: a long one is broken between words. Not for what must be shown to the letter."""
        ...

    def markdown(self, text: str, style: Style = "") -> None:
        """A whole block of Markdown."""
        ...


class PlainConsole:
    """Text as it is: a pipe, a file, TERM=dumb."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def line(self, *spans: Span) -> None:
        self._out.write("".join(text for _, text in spans) + "\n")
        self._out.flush()

    prose = line

    def markdown(self, text: str, style: Style = "") -> None:
        if style == "dim":  # nothing else would tell a thought from an answer
            text = "\n".join(f"│ {line}".rstrip() for line in text.split("\n"))
        self._out.write(text + "\n\n")
        self._out.flush()


class RichConsole:
    """A terminal. `no_color` keeps bold and dim."""

    def __init__(self, out: TextIO, *, colour: bool, width: int | None = None) -> None:
        from rich.console import Console as RichOutput

        self._rich = RichOutput(
            file=out, force_terminal=True, no_color=not colour, highlight=False, markup=False, emoji=False
        )
        if width is not None:
            self._rich.width = width

    def line(self, *spans: Span) -> None:
        self._print(spans, soft_wrap=True)

    def prose(self, *spans: Span) -> None:
        self._print(spans, soft_wrap=False)

    def markdown(self, text: str, style: Style = "") -> None:
        from rich.padding import Padding

        self._rich.print(Padding(_markdown(text), (0, 0, 1, 0)), style=style)

    def _print(self, spans: tuple[Span, ...], *, soft_wrap: bool) -> None:
        from rich.text import Text

        text = Text()
        for style, piece in spans:
            text.append(piece, style="bold cyan" if style == "heading" else style)
        self._rich.print(text, soft_wrap=soft_wrap)


def open_console(out: TextIO, environ: Mapping[str, str] = os.environ) -> Console:
    """Rich when `out` is a terminal that can do it. NO_COLOR (no-color.org) takes the colours only."""
    if not out.isatty() or environ.get("TERM", "dumb") in ("", "dumb"):
        return PlainConsole(out)
    return RichConsole(out, colour=not environ.get("NO_COLOR"))


def _markdown(text: str) -> "Markdown":
    """Rich's Markdown, but HTML is shown instead of swallowed, and no link is clickable: what a link says and
    where it leads are both printed."""
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    rendered = Markdown("", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
    rendered.markup = text
    rendered.parsed = parser.parse(text)
    return rendered
