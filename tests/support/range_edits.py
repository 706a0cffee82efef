"""Edits of the wire made to a text."""

from collections.abc import Sequence
from typing import Any

from amanu.text.code_units import Encoding
from amanu.text.span_edits import edited
from amanu.workspace.range_edits import placed_edits, with_line_ends_of
from amanu_protocol.base import Position, Range
from amanu_protocol.requests import TextEdit


def text_edit(first: tuple[int, int], last: tuple[int, int], new_text: str) -> TextEdit:
    """Places are line and character, from 0."""
    start, end = (Position(line=line, character=character) for line, character in (first, last))
    return TextEdit(range=Range(start=start, end=end), new_text=new_text)


def apply_range_edits(text: str, edits: Sequence[TextEdit], encoding: Encoding) -> str:
    """The text with the edits made, in the text's own line ends."""
    return edited(text, with_line_ends_of(text, placed_edits(text, edits, encoding)))


def apply_wire_edits(text: str, edits: Sequence[Any], encoding: Encoding = "utf-16") -> str:
    """The text after a client has done what `amanu/editor/apply` asks for."""
    return edited(text, placed_edits(text, [TextEdit.model_validate(edit) for edit in edits], encoding))
