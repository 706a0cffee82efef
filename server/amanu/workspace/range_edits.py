"""Edits of a language server, which name lines and characters, made to a text; all of them, or none."""

from collections.abc import Sequence

from amanu.text.code_units import Encoding, code_points, units
from amanu.workspace.text_file import line_end, split_lines
from amanu_protocol.requests import RangeEdit


class MisplacedEdit(Exception):
    """The edits cannot be meant for this text. The message is a clause for "the edits …"."""


def apply_range_edits(text: str, edits: Sequence[RangeEdit], encoding: Encoding) -> str:
    """The text with the edits made, each at its place in the text as it was. As in LSP a character past the end of its
    line is the end of the line, and several texts put in at one place come in their order. Line ends of new text become
    the file's. Raises `MisplacedEdit`."""
    lines = list(split_lines(text))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, character: int) -> int:
        if not 0 <= line < len(lines) or character < 0:
            raise MisplacedEdit(f"name a place in line {line + 1} that does not exist")
        content = lines[line].rstrip("\r\n")
        column = code_points(content, character, encoding)
        if units(content[:column], encoding) != min(character, units(content, encoding)):
            raise MisplacedEdit(f"cut a character of line {line + 1} in two")
        return starts[line] + column

    newline = line_end(text)
    placed = sorted(
        (
            (
                offset(edit.start_line, edit.start_character),
                offset(edit.end_line, edit.end_character),
                _with_line_ends(edit.new_text, newline),
            )
            for edit in edits
        ),
        key=lambda each: each[:2],
    )
    parts: list[str] = []
    behind = 0
    for start, end, new_text in placed:
        if end < start:
            raise MisplacedEdit("end before they begin")
        if start < behind:
            raise MisplacedEdit("overlap")
        parts += [text[behind:start], new_text]
        behind = end
    return "".join([*parts, text[behind:]])


def _with_line_ends(text: str, newline: str | None) -> str:
    return (
        text
        if newline is None
        else "".join(
            line if line == (content := line.rstrip("\r\n")) else content + newline for line in split_lines(text)
        )
    )
