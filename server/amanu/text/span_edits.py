"""Edits of a text, in the daemon's own counting."""

from collections.abc import Iterable
from typing import NamedTuple


class SpanEdit(NamedTuple):
    """Replaces the characters [start, end) of a text, counted in code points."""

    start: int
    end: int
    new_text: str


def edited(text: str, edits: Iterable[SpanEdit]) -> str:
    """The text with the edits made: in order, not overlapping, places in the text as it was."""
    parts: list[str] = []
    behind = 0
    for edit in edits:
        parts += [text[behind : edit.start], edit.new_text]
        behind = edit.end
    return "".join([*parts, text[behind:]])
