"""Edits that name lines and characters, found in the text they are for; all of them, or none."""

from collections.abc import Sequence

from amanu.text.code_units import Encoding, code_points, units
from amanu.text.span_edits import SpanEdit
from amanu.workspace.text_file import line_end, split_lines
from amanu_protocol.base import Position
from amanu_protocol.requests import TextEdit


class MisplacedEdit(Exception):
    """The edits cannot be meant for this text. The message is a clause for "the edits …"."""


def placed_edits(text: str, edits: Sequence[TextEdit], encoding: Encoding) -> list[SpanEdit]:
    """The edits in the order of their places, each at its place in the text as it was. As in LSP a character past the
    end of its line is the end of the line, and several texts put in at one place come in their order. Raises
    `MisplacedEdit`."""
    lines = list(split_lines(text))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(position: Position) -> int:
        line, character = position.line, position.character
        if line >= len(lines):
            raise MisplacedEdit(f"name a place in line {line + 1} that does not exist")
        content = lines[line].rstrip("\r\n")
        column = code_points(content, character, encoding)
        if units(content[:column], encoding) != min(character, units(content, encoding)):
            raise MisplacedEdit(f"cut a character of line {line + 1} in two")
        return starts[line] + column

    placed = [SpanEdit(offset(edit.range.start), offset(edit.range.end), edit.new_text) for edit in edits]
    placed.sort(key=lambda edit: (edit.start, edit.end))
    behind = 0
    for edit in placed:
        if edit.start < behind:
            raise MisplacedEdit("overlap")
        behind = edit.end
    return placed


def with_line_ends_of(text: str, edits: Sequence[SpanEdit]) -> list[SpanEdit]:
    """The edits with the line ends of the text in what they put in, where all its lines end alike."""
    newline = line_end(text)
    if newline is None:
        return list(edits)
    return [edit._replace(new_text=_ended(edit.new_text, newline)) for edit in edits]


def _ended(text: str, newline: str) -> str:
    return "".join(
        line if line == (content := line.rstrip("\r\n")) else content + newline for line in split_lines(text)
    )
