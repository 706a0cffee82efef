"""A question as it is printed: what is asked about in full, each command of it, what contains it, who asks."""

import shutil
from collections.abc import Iterable, Mapping

from amanu.cli.console import Console, Style
from amanu.cli.text import one_line, visible
from amanu.text.sub_agents import asked_by
from amanu_protocol.items import Approval, Line, Tone

STYLES: dict[Tone, Style] = {"plain": "dim", "good": "green", "warning": "yellow", "bad": "red"}
FIRST, FURTHER = "  │ ", "  ┊ "
"""Before a line of what is asked about, and before a further row of it: nothing in it can pass for a line of ours."""
_INDENT = "  "


def show_question(approval: Approval, console: Console) -> None:
    """All of it but for a diff, which is shown by who asks."""
    show_title(approval, console)
    if approval.proposal_id is None:
        show_whole(approval.detail, console)


def show_title(approval: Approval, console: Console) -> None:
    """What is asked, and by which sub-agent, if it is one's."""
    title = one_line(approval.title)
    mark = "" if title.endswith((".", "?", "!", "…")) else "?"
    console.line(("heading", "? "), ("cyan", asked_by(approval)), ("bold", f"{title}{mark}"))


def show_reasons(approval: Approval, console: Console) -> None:
    show_lines(approval.lines, console)


def show_whole(text: str, console: Console, styles: Mapping[str, Style] | None = None) -> None:
    """To the letter, however long its lines are. `styles` are those of lines by their first character."""
    for line in visible(text).rstrip("\n").split("\n"):
        style: Style = "" if styles is None else styles.get(line[:1], "dim")
        first, *further = _chopped(line, _width(len(FIRST)))
        console.verbatim(("dim", FIRST), (style, first))
        for row in further:
            console.verbatim(("dim", FURTHER), (style, row))


def show_lines(lines: Iterable[Line], console: Console, indent: str = _INDENT) -> None:
    for line in lines:
        console.line((STYLES[line.tone], indent + visible(line.text).replace("\n", " ")), hang=len(indent) + 4)


def _width(taken: int) -> int:
    return max(20, shutil.get_terminal_size().columns - taken)


def _chopped(line: str, width: int) -> list[str]:
    """As the terminal would break it."""
    from rich.cells import chop_cells

    return chop_cells(line.replace("\t", "    "), width) or [""]
