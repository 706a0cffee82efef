"""Lines that a model rewrites, as text: what it is told, and what its reply makes of them.

The reply says the lines between two marks, and the lines around them to show that it means the right place:

    <before>
    the line above
    </before>
    <rewrite>
    the lines, rewritten
    </rewrite>
    <after>
    the line below
    </after>
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from amanu.core.tool import ToolError
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu.workspace.diff import compose, differences
from amanu.workspace.text_file import FileText, split_lines

MAX_LINES = 2_000
"""Lines that are rewritten at once."""
_AROUND = 150
"""Lines above and below that the model is shown."""
_HEAD = 60
"""Lines of the file's beginning: its imports."""
_WIDTH = 500
"""Characters of a line around; what is longer was not written by hand."""

_REWRITE = re.compile(
    r"^[ \t]*<rewrite>[ \t]*\r?\n?(.*?)\r?\n?[ \t]*</rewrite>[ \t]*$(?!.*</rewrite>)", re.DOTALL | re.M
)
_OPEN = re.compile(r"^[ \t]*<rewrite>", re.M)
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)\n?^```[ \t]*$", re.DOTALL | re.M)
_AGAIN = "This is how the lines stand in the file now. Change your last rewrite as the user says, and write all of it."
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True)
class RewriteTarget:
    """Lines [start, end) of a file as it was when the user asked, 0-based. None when new lines go in before `start`."""

    file: FileText
    start: int
    end: int

    @property
    def lines(self) -> Sequence[str]:
        return split_lines(self.file.text)

    @property
    def region(self) -> Sequence[str]:
        return self.lines[self.start : self.end]

    def moved_to(self, file: FileText) -> "RewriteTarget | None":
        """The same lines, untouched, in the file as it is now; None when they were changed."""
        shift = 0
        for change in differences(self.lines, split_lines(file.text)):
            if change.old_end <= self.start:
                shift += change.new_end - change.new_start - (change.old_end - change.old_start)
            elif change.old_start < self.end:
                return None
        return replace(self, file=file, start=self.start + shift, end=self.end + shift)

    def grown_to(self, file: FileText) -> "RewriteTarget | None":
        """What has become of the lines in the file as it is now; None when a change reaches beyond them."""
        shift = growth = 0
        for change in differences(self.lines, split_lines(file.text)):
            difference = change.new_end - change.new_start - (change.old_end - change.old_start)
            if self.start <= change.old_start and change.old_end <= self.end:
                growth += difference
            elif change.old_end <= self.start:
                shift += difference
            elif change.old_start < self.end:
                return None
        return replace(self, file=file, start=self.start + shift, end=self.end + shift + growth)

    def with_text(self, text: str) -> str:
        """The whole file with that text in the place of the lines."""
        return compose(self.lines, [(self.start, self.end - self.start, text)])


# For the model ---------------------------------------------------------------------------------------


def first_prompt(
    target: RewriteTarget, path: str, instruction: str, findings: Sequence[str], mask: Callable[[str], str]
) -> str:
    """What the model is told first. `findings` are lines for it; `mask` hides secrets."""
    lines = target.lines
    above = max(0, target.start - _AROUND)
    parts = [
        _shown("beginning_of_file", lines[: min(_HEAD, above)], path, mask) if above else "",
        _shown("above", lines[above : target.start], path, mask),
        _region(target, path, mask),
        _shown("below", lines[target.end : target.end + _AROUND], path, mask),
        block("findings", mask("\n".join(findings))) if findings else "",
        _task(target, instruction),
    ]
    return "\n\n".join(filter(None, parts))


def next_prompt(target: RewriteTarget, path: str, instruction: str, mask: Callable[[str], str]) -> str:
    """What the model is told when the user wants its last rewrite changed."""
    return "\n\n".join([_AGAIN, _region(target, path, mask), _task(target, instruction)])


def _region(target: RewriteTarget, path: str, mask: Callable[[str], str]) -> str:
    text = mask("".join(target.region)).rstrip("\r\n")
    return block("lines_to_rewrite", text, f"{path} lines {target.start + 1}-{max(target.end, target.start + 1)}")


def _task(target: RewriteTarget, instruction: str) -> str:
    if "".join(target.region).strip():
        return block("instruction", instruction)
    return f"{block('instruction', instruction)}\n\nThere is nothing in the lines yet: write what belongs there."


def _shown(kind: str, lines: Sequence[str], path: str, mask: Callable[[str], str]) -> str:
    text = mask("".join(line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…\n" for line in lines)).rstrip("\r\n")
    return block(kind, text, path) if text.strip() else ""


# What the reply makes of them ------------------------------------------------------------------------


def read_reply(target: RewriteTarget, reply: str) -> str:
    """The text that takes the place of the lines. Raises `ToolError` saying why there is none."""
    match = _REWRITE.search(reply)
    if match is not None:
        _check_context(target, reply[: match.start()], reply[match.end() :])
        text = _without_fence(match[1], target)
    elif _OPEN.search(reply):
        raise ToolError("The model's reply was cut off, so nothing is changed. Select fewer lines.")
    elif len(fenced := _FENCED.findall(reply)) == 1:
        text = fenced[0]
    else:
        raise ToolError(f"The model wrote no edit: {one_line(' '.join(reply.split()))}")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if match is not None and "<before>" not in reply and "<after>" not in reply:
        lines = _without_neighbours(target, lines)
    if not "".join(lines).strip():
        raise ToolError(
            "The model's rewrite was empty, so nothing is changed. To delete lines, select some around them."
        )
    return _with_line_ends(target, _indented(target, lines))


def _check_context(target: RewriteTarget, head: str, tail: str) -> None:
    """What the model gives as the lines around must be these: else it rewrote others."""
    lines = target.lines
    before = re.search(r"<before>(.*?)</before>", head, re.DOTALL)
    after = re.search(r"<after>(.*?)</after>", tail, re.DOTALL)
    above = lines[target.start - 1] if target.start > 0 else ""
    below = lines[target.end] if target.end < len(lines) else ""
    fits = (before is None or _ends(before[1], above, -1)) and (after is None or _ends(after[1], below, 0))
    if not fits:
        raise ToolError("The model rewrote other lines than these, so nothing is changed. Try again.")


def _ends(quoted: str, line: str, at: int) -> bool:
    """Whether what is quoted of the lines around touches the region with that line; blank lines are often left out."""
    rows = [row.split() for row in quoted.splitlines() if row.strip()]
    return not rows or not line.strip() or rows[at] == line.split() or len(line) > _WIDTH


def _without_fence(text: str, target: RewriteTarget) -> str:
    """A fence around all of it is the model's, unless the lines had one."""
    if target.region and target.region[0].lstrip().startswith("```"):
        return text
    match = _FENCED.fullmatch(text.strip("\n"))
    return text if match is None else match[1]


def _without_neighbours(target: RewriteTarget, lines: list[str]) -> list[str]:
    """Without the lines around, where the model put them between the marks."""
    around, region = target.lines, [line.strip() for line in target.region] or [""]
    above = around[target.start - 1].strip() if target.start > 0 else ""
    below = around[target.end].strip() if target.end < len(around) else ""
    first = 1 if _tells(above) and lines[0].strip() == above != region[0] else 0
    last = -1 if _tells(below) and lines[-1].strip() == below != region[-1] and len(lines) > first + 1 else None
    return lines[first:last]


def _tells(line: str) -> bool:
    """Whether a line is one of its kind: not a brace alone."""
    return any(character.isalnum() for character in line)


def _with_line_ends(target: RewriteTarget, lines: Sequence[str]) -> str:
    end = target.file.line_end or ("\r\n" if "\r\n" in "".join(target.region) else "\n")
    text = end.join(lines)
    at_end_without = bool(target.region) and not target.region[-1].endswith(("\n", "\r"))
    return text.removesuffix(end) if at_end_without else text + end


# Indentation -----------------------------------------------------------------------------------------


def _indented(target: RewriteTarget, lines: Sequence[str]) -> list[str]:
    """The lines indented as the region is: with its tabs or spaces, and as deep."""
    region = [line for line in target.region if line.strip()]
    neighbours = target.lines[max(0, target.start - _AROUND) : target.end + _AROUND]
    lines = [line.rstrip("\r") for line in _in_file_style(neighbours, lines)]
    written = [line for line in lines if line.strip()]
    wanted = _common(region) if region else ""
    if not wanted or not written:
        return [*lines]
    if _lost_first(written, wanted):
        first = next(at for at, line in enumerate(lines) if line.strip())
        return [_indent(region[0]) + line if at == first else line for at, line in enumerate(lines)]
    has = _common(written)
    if has.startswith(wanted) or not wanted.startswith(has):
        return [*lines]
    lacks = wanted[len(has) :]
    return [lacks + line if line.strip() else line for line in lines]


def _lost_first(lines: Sequence[str], wanted: str) -> bool:
    """Whether only the first line lost its indentation. Lines as deep as all were, below one that opens a block, lost
    theirs, too."""
    if _indent(lines[0]) or len(lines) == 1:
        return False
    rest = _common(lines[1:])
    opens = lines[0].rstrip().endswith((":", "{", "(", "[", "=>", " do", " then"))
    return rest.startswith(wanted) and not (opens and rest == wanted)


def _in_file_style(file_lines: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    """With the tabs of a file that is indented with tabs, or the spaces of one that is not."""
    tabs, spaces = _by_tabs(file_lines), _by_tabs(lines)
    if tabs is None or spaces is None or tabs == spaces:
        return lines
    if tabs:
        unit = _unit(lines)
        return [_tabbed(line, unit) for line in lines]
    return [_indent(line).replace("\t", " " * _unit(file_lines)) + line.lstrip(" \t") for line in lines]


def _tabbed(line: str, unit: int) -> str:
    width = len(_indent(line).expandtabs(unit))
    return "\t" * (width // unit) + " " * (width % unit) + line.lstrip(" \t")


def _by_tabs(lines: Sequence[str]) -> bool | None:
    """Whether they are indented with tabs; None when none is indented, or some this way and some that."""
    firsts = {line[0] for line in lines if line[:1] in (" ", "\t") and line.strip() and not line.startswith(" *")}
    return None if len(firsts) != 1 else firsts == {"\t"}


def _unit(lines: Sequence[str]) -> int:
    """Spaces of one level."""
    widths = {len(_indent(line)) for line in lines if line.strip()} - {0, 1}
    return 2 if any(width % 4 for width in widths) else 4


def _common(lines: Sequence[str]) -> str:
    """The white space they all begin with."""
    indents = sorted(map(_indent, lines), key=len)
    return indents[0] if indents and all(indent.startswith(indents[0]) for indent in indents) else ""


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return "" if match is None else match[0]
