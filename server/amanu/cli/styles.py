"""Pieces of a line on a terminal."""

from typing import Literal

Style = Literal["", "dim", "bold", "red", "green", "yellow", "magenta", "cyan", "heading"]
Span = tuple[Style, str]
