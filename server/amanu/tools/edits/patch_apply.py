"""The hunks of a patch → the file's new text. Where a hunk goes its own lines decide; one place, or it is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from amanu.core.tool import ToolError
from amanu.tools.edits.match import Matched, replace_hunk
from amanu.tools.edits.patch_lines import PatchHunk
from amanu.workspace.diff import common
from amanu.workspace.text_file import split_lines

_HOW = (
    "(old_text are the lines of the hunk that stay and go, new_text those that stay and come. What is there more than "
    "once a line '@@ def name' above the hunk tells apart.)"
)


@dataclass(frozen=True)
class _Placed:
    """Lines [start, end) of the file, 0-based, and what takes their place."""

    start: int
    end: int
    number: int
    lines: Sequence[str]
    how: str
    """What the matcher forgave."""


def patched(text: str, hunks: Sequence[PatchHunk], path: str) -> Matched:
    """The text with all hunks applied. Each is about the text as it was, not as the hunk before left it; what the
    hunks do not change keeps every byte. CPU-bound. Raises `ToolError` that names every hunk that does not fit."""
    lines = split_lines(text)
    placed: list[_Placed] = []
    faults: list[str] = []
    after = 0
    for number, hunk in enumerate(hunks, 1):
        if not hunk.changes:
            continue
        try:
            found = _placed(text, lines, hunk, after, path, number)
        except ToolError as error:
            faults.append(f"Hunk {number} of {len(hunks)} (line {hunk.line} of the patch): {error}")
            continue
        after = found.end
        placed.append(found)
    if faults:
        raise ToolError("\n".join([*faults, _HOW]))
    placed.sort(key=lambda each: (each.start, each.end))
    for before, each in pairwise(placed):
        if each.start < before.end or (each.start, each.end) == (before.start, before.end):
            raise ToolError(f"Hunk {each.number} overlaps hunk {before.number} in {path}. Make one of them.")
    out: list[str] = []
    at = 0
    for each in placed:
        out += lines[at : each.start]
        out += each.lines
        at = each.end
    return Matched("".join([*out, *lines[at:]]), [each.how for each in placed if each.how])


def added(hunks: Sequence[PatchHunk]) -> str:
    """The text of a file that a patch adds."""
    return _text(hunks[0].side("+"), bare=hunks[0].bare_after) if hunks else ""


def _placed(text: str, lines: Sequence[str], hunk: PatchHunk, after: int, path: str, number: int) -> _Placed:
    """What the hunk changes. It is looked for in the whole file; only what is there several times is looked for
    behind line `after`, where the hunk before it ended."""
    old = _text(hunk.side("-"), bare=hunk.bare_before)
    new = _text(hunk.side("+"), bare=hunk.bare_after)
    headings = [each for each in hunk.headings if each]
    if not old and lines and not hunk.at_end and (not headings or hunk.start is not None):
        raise ToolError("It has no line that is in the file, so it has no place. Add the lines around it.")
    if not old and lines and hunk.at_end:  # it comes after the last line, which may lack a line end
        old = _text([lines[-1].rstrip("\r\n")], bare=False)
        new = old + new
    fault: ToolError | None = None
    for heading, below in _ways(lines, hunk, after):
        try:
            edited = replace_hunk(text, old, new, after=below, heading=heading, at_end=hunk.at_end, path=path)
        except ToolError as error:
            fault = fault or error
            continue
        now = split_lines(edited.text)
        start = common(lines, now)
        behind = common(lines[start:][::-1], now[start:][::-1])
        return _Placed(start, len(lines) - behind, number, now[start : len(now) - behind], edited.how)
    assert fault is not None, "there is always a way to try"
    raise fault


def _ways(lines: Sequence[str], hunk: PatchHunk, after: int) -> list[tuple[str, int]]:
    """(heading, first line) to look with, in this order."""
    if hunk.start is not None:  # git's heading is cut, and no more than a hint
        headings = ["", *hunk.headings[-1:]]
        return [(heading, below) for heading in headings for below in dict.fromkeys([0, after])]
    outer = 0
    for each in hunk.headings[:-1]:
        outer = next((at + 1 for at in range(outer, len(lines)) if lines[at].strip() == each), outer)
    return [((hunk.headings or ("",))[-1], below) for below in dict.fromkeys([outer, max(outer, after)])]


def _text(lines: Sequence[str], *, bare: bool) -> str:
    text = "".join(f"{line}\n" for line in lines)
    return text.removesuffix("\n") if bare else text
