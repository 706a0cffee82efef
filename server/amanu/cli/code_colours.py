"""Code in the terminal's own colours, which its user chose: readable on light and dark ones."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from amanu.cli.styles import Span, Style

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LONGEST_LINE = 1000
"""Characters; what has longer lines was written by a program, and takes long to read."""

STYLES: dict[str, Style] = {
    "Comment": "dim",
    "Keyword": "magenta",
    "Operator.Word": "magenta",
    "Keyword.Type": "cyan",
    "Name.Builtin": "cyan",
    "Name.Class": "cyan",
    "Name.Function": "cyan",
    "Name.Decorator": "cyan",
    "Name.Exception": "cyan",
    "Name.Tag": "cyan",
    "Literal.String": "yellow",
    "Literal.Number": "cyan",
    "Generic.Heading": "bold",
}
"""Kind of token, with the kinds below it → style."""


def coloured(lines: Sequence[str], name: str) -> list[list[Span]] | None:
    """The same lines in coloured pieces; None where the file's name tells no language. Nothing is added or left out."""
    lexer = _lexer(name)
    if lexer is None or any(len(line) > LONGEST_LINE for line in lines):
        return None
    text = "\n".join(lines)
    rows: list[list[Span]] = [[]]
    end = 0
    for start, kind, piece in lexer.get_tokens_unprocessed(text):
        if start != end:
            return None
        end += len(piece)
        style = _style(kind)
        first, *further = piece.split("\n")
        _append(rows[-1], style, first)
        for line in further:
            rows.append([])
            _append(rows[-1], style, line)
    return rows if end == len(text) else None


def _append(row: list[Span], style: Style, text: str) -> None:
    if row and row[-1][0] == style:
        row[-1] = (style, row[-1][1] + text)
    elif text:
        row.append((style, text))


@lru_cache(maxsize=32)
def _lexer(name: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_for_filename  # pyright: ignore[reportUnknownVariableType]
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _style(kind: Any) -> Style:
    parts = [*kind]
    while parts:
        if (style := STYLES.get(".".join(parts))) is not None:
            return style
        parts.pop()
    return ""
