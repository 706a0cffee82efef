"""A question as it stands on paper: what is asked about in full, each command of it, what holds it, who asks."""

import shutil
import textwrap
from collections.abc import Iterable, Mapping

from amanu.cli.paper import Paper, Style
from amanu.cli.text import one_line, visible
from amanu_protocol.items import Approval, Line, Tone

STYLES: dict[Tone, Style] = {"plain": "dim", "good": "green", "warning": "yellow", "bad": "red"}
FIRST, FURTHER = "  │ ", "  ┊ "
"""Before a line of what is asked about, and before a further row of it: nothing in it can pass for a line of ours."""
_INDENT = "  "


def show_question(approval: Approval, paper: Paper) -> None:
    """All of it but for a diff, which is shown by who asks."""
    paper.line(("heading", "? "), ("bold", one_line(approval.title)))
    if approval.proposal_id is None:
        show_whole(approval.detail, paper)


def show_reasons(approval: Approval, paper: Paper) -> None:
    show_lines(approval.lines, paper)


def show_whole(text: str, paper: Paper, styles: Mapping[str, Style] | None = None) -> None:
    """To the letter, however long its lines are. `styles` are those of lines by their first character."""
    for line in visible(text).rstrip("\n").split("\n"):
        style: Style = "" if styles is None else styles.get(line[:1], "dim")
        first, *further = _chopped(line, _width(len(FIRST)))
        paper.line(("dim", FIRST), (style, first))
        for row in further:
            paper.line(("dim", FURTHER), (style, row))


def show_lines(lines: Iterable[Line], paper: Paper, indent: str = _INDENT) -> None:
    for line in lines:
        width = _width(len(indent) + 4)
        wrapped = textwrap.wrap(visible(line.text), width, break_long_words=False, break_on_hyphens=False)
        first, *further = [row for part in wrapped or [""] for row in _chopped(part, width)]
        paper.line((STYLES[line.tone], indent + first))
        for row in further:
            paper.line((STYLES[line.tone], f"{indent}    {row}"))


def _width(taken: int) -> int:
    return max(20, shutil.get_terminal_size().columns - taken)


def _chopped(line: str, width: int) -> list[str]:
    """As the terminal would break it."""
    from rich.cells import chop_cells

    return chop_cells(line.replace("\t", "    "), width) or [""]
