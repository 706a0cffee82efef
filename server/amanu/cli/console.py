"""What is written on: Rich on a terminal, plain text in a pipe. Neither ever gets an escape sequence from outside:
callers pass text through `amanu.cli.text` first."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import TYPE_CHECKING, Protocol, TextIO

from amanu.cli.styles import LOOKS, Span, Style, Theme, rich_style, sgr

if TYPE_CHECKING:
    from rich.markdown import Markdown
    from rich.text import Text

_STYLE, _RESET = re.compile(r"\x1b\[[0-9;]*m"), "\x1b[0m"
_LEAD = re.compile(r"\s*(?:(?:\d{1,5}:?|\[\d+\]|[^\w\s\"'“‘(/@$~.-]{1,2})\s+)?")
"""Spaces and the mark at the beginning of a line: a bullet, a number, a sign."""


class Console(Protocol):
    """Prints whole lines, for good."""

    def line(self, *spans: Span, hang: int | None = None) -> None:
        """One line (or several, when a text holds newlines) made of styled pieces. On a terminal a long one is broken
        between words and goes on below its text: `hang` columns from the left, by default behind its spaces and its
        mark."""
        ...

    def verbatim(self, *spans: Span) -> None:
        """As `line`, for what must be shown to the letter: code, output."""
        ...

    def diff(self, lines: Sequence[Span], name: str | None) -> None:
        """A unified diff, to the letter. `name` is the file's, for the language of its code; "" if the diff itself
        names its files, None for code without colours."""
        ...

    def markdown(self, text: str, style: Style = "") -> None:
        """A whole block of Markdown."""
        ...


class PlainConsole:
    """Text as it is: a pipe, a file, TERM=dumb."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def line(self, *spans: Span, hang: int | None = None) -> None:
        self._out.write("".join(text for _, text in spans) + "\n")
        self._out.flush()

    verbatim = line

    def diff(self, lines: Sequence[Span], name: str | None) -> None:
        self.line(("", "\n".join(text for _, text in lines)))

    def markdown(self, text: str, style: Style = "") -> None:
        if style == "dim":  # nothing else would tell a thought from an answer
            text = "\n".join(f"│ {line}".rstrip() for line in text.split("\n"))
        self._out.write(text + "\n\n")
        self._out.flush()


class RichConsole:
    """A terminal. Without `colour`, every theme is the plain one, which keeps bold and dim. A theme is that of what is
    printed from now on."""

    def __init__(self, out: TextIO, *, colour: bool, width: int | None = None, theme: Theme = "neutral") -> None:
        from rich.console import Console as RichOutput

        self._rich = RichOutput(
            file=out, force_terminal=True, no_color=not colour, highlight=False, markup=False, emoji=False
        )
        if width is not None:
            self._rich.width = width
        self._out = out
        self._colour = colour
        self.theme = theme

    @property
    def theme(self) -> Theme:
        return self._theme

    @theme.setter
    def theme(self, theme: Theme) -> None:
        self._theme: Theme = theme if self._colour else "plain"
        # Rich takes thirty times as long for a long diff.
        self._codes = {style: code for style in LOOKS if (code := sgr(style, self._theme))}

    def line(self, *spans: Span, hang: int | None = None) -> None:
        for part in _text(spans, self._theme).split("\n", allow_blank=True):
            for row in self._rows(part, hang):
                self._rich.print(row, soft_wrap=True)

    def verbatim(self, *spans: Span) -> None:
        self._write([spans])

    def diff(self, lines: Sequence[Span], name: str | None) -> None:
        from amanu.cli.numbered_diff import numbered

        self._write(numbered(lines, name if self._theme != "plain" else None, self._rich.width))

    def _write(self, rows: Iterable[Sequence[Span]]) -> None:
        text = "\n".join("".join(self._styled(style, piece) for style, piece in row) for row in rows)
        self._out.write(f"{text}\n")
        self._out.flush()

    def _styled(self, style: Style, text: str) -> str:
        code = self._codes.get(style)
        return text if code is None else "\n".join(f"\x1b[{code}m{line}{_RESET}" for line in text.split("\n"))

    def markdown(self, text: str, style: Style = "") -> None:
        from rich.padding import Padding
        from rich.theme import Theme as RichTheme

        text, indent = _dedented(text)
        named = {name: rich_style(name, self._theme) for name in LOOKS if name.startswith("markdown.")}
        block = Padding(_markdown(text, self._theme), (0, 0, 1, indent))
        with self._rich.use_theme(RichTheme(named)), self._rich.capture() as captured:
            self._rich.print(block, style=rich_style(style, self._theme))
        rows = dropwhile(lambda row: not row, map(_without_fill, captured.get().split("\n")))
        self._out.write("\n".join(rows))
        self._out.flush()

    def _rows(self, line: "Text", hang: int | None) -> "Iterator[Text]":
        from rich.cells import cell_len
        from rich.text import Text

        width = self._rich.width
        if line.cell_len <= width:
            yield line
            return
        lead = _LEAD.match(line.plain)
        cut = lead.end() if lead is not None else 0
        if hang is not None and line.plain[hang - 1 : hang] == " ":  # a column before the text
            cut = hang
        head, body = line.divide([cut])
        indent = cell_len(head.plain)
        hang = min(indent if hang is None else hang, width // 2)
        first, *further = rows = body.wrap(self._rich, max(1, width - max(hang, indent)), overflow="fold")
        for row in rows:
            row.rstrip()
        yield Text.assemble(head, first)
        for row in further:
            yield Text.assemble(" " * hang, row)


def is_dumb(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal can only print lines."""
    return environ.get("TERM", "dumb") in ("", "dumb")


def open_console(out: TextIO, environ: Mapping[str, str] = os.environ) -> Console:
    """Rich when `out` is a terminal that can do it. NO_COLOR (no-color.org) takes the colours only."""
    if not out.isatty() or is_dumb(environ):
        return PlainConsole(out)
    return RichConsole(out, colour=not environ.get("NO_COLOR"))


def _text(spans: tuple[Span, ...], theme: Theme) -> "Text":
    from rich.text import Text

    text = Text()
    for style, piece in spans:
        text.append(piece, style=rich_style(style, theme))
    return text


def _dedented(text: str) -> tuple[str, int]:
    """A block below an item of a list that was printed before it: the text, and the columns it is indented by. Four
    and more are code."""
    indent = len(text) - len(text.lstrip(" "))
    return (text, 0) if indent > 3 else (re.sub(rf"(?m)^ {{1,{indent}}}", "", text) if indent else text, indent)


def _without_fill(line: str) -> str:
    """A line that Rich has drawn, without the spaces up to the edge: whoever copies it does not want them, and a
    terminal that gets narrower wraps them."""
    line = line.rstrip(" ")
    while line.endswith(_RESET):
        text = line.removesuffix(_RESET).rstrip(" ")
        start = max(0, text.rfind("\x1b"))
        if not _STYLE.fullmatch(text, start):
            return text + _RESET
        line = text[:start].rstrip(" ")
    return line


def _markdown(text: str, theme: Theme) -> "Markdown":
    """Rich's Markdown in the terminal's own colours; but HTML is shown instead of swallowed, and no link is clickable:
    what a link says and where it leads are both printed."""
    from markdown_it import MarkdownIt

    from amanu.cli.terminal_markdown import TerminalMarkdown

    rendered = TerminalMarkdown("", code_theme=theme, hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
    rendered.markup = text
    rendered.parsed = parser.parse(text)
    return rendered
