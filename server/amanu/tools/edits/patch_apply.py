"""The hunks of a patch → the file's new text. Where a hunk goes its own lines decide; one place, or it is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from amanu.core.tool import ToolError
from amanu.tools.edits.match import MatchedText, replace_hunk
from amanu.tools.edits.patch_lines import PatchHunk
from amanu.workspace.diff import common_prefix_length
from amanu.workspace.text_file import split_lines

_OLD_TEXT_NOTE = (
    "(old_text means the unchanged and removed lines of the hunk, new_text the unchanged and added ones. If they occur "
    "more than once, a line '@@ def name' above the hunk says which place is meant.)"
)


@dataclass(frozen=True)
class _PlacedHunk:
    """Lines [start, end) of the file, 0-based, and what takes their place."""

    start: int
    end: int
    number: int
    lines: Sequence[str]
    how: str
    """What the matcher forgave."""


def apply_hunks(text: str, hunks: Sequence[PatchHunk], path: str) -> MatchedText:
    """The text with all hunks applied. Each is about the text as it was, not as the hunk before left it; what the
    hunks do not change keeps every byte. CPU-bound. Raises `ToolError` that names every hunk that does not fit."""
    lines = split_lines(text)
    placed: list[_PlacedHunk] = []
    faults: list[str] = []
    line = 0
    for number, hunk in enumerate(hunks, 1):
        if not hunk.changes:
            continue
        try:
            placed_hunk = _place_hunk(text, lines, hunk, line, path, number)
        except ToolError as error:
            faults.append(f"Hunk {number} of {len(hunks)} (line {hunk.line} of the patch): {error}")
            continue
        line = placed_hunk.end
        placed.append(placed_hunk)
    if faults:
        raise ToolError("\n".join([*faults, _OLD_TEXT_NOTE]))
    placed.sort(key=lambda item: (item.start, item.end))
    for previous, current in pairwise(placed):
        if current.start < previous.end or (current.start, current.end) == (previous.start, previous.end):
            raise ToolError(f"Hunk {current.number} overlaps hunk {previous.number} in {path}. Make them one hunk.")
    out: list[str] = []
    consumed = 0
    for current in placed:
        out += lines[consumed : current.start]
        out += current.lines
        consumed = current.end
    return MatchedText("".join([*out, *lines[consumed:]]), [item.how for item in placed if item.how])


def added_text(hunks: Sequence[PatchHunk]) -> str:
    """The text of a file that a patch adds."""
    return _text(hunks[0].side("+"), bare=hunks[0].bare_after) if hunks else ""


def _place_hunk(text: str, lines: Sequence[str], hunk: PatchHunk, line: int, path: str, number: int) -> _PlacedHunk:
    """What the hunk changes. It is looked for in the whole file; only what is there several times is looked for
    behind line `after`, where the hunk before it ended."""
    old_text = _text(hunk.side("-"), bare=hunk.bare_before)
    new_text = _text(hunk.side("+"), bare=hunk.bare_after)
    headings = [heading for heading in hunk.headings if heading]
    if not old_text and lines and not hunk.at_end and (not headings or hunk.start is not None):
        raise ToolError("It has only added lines, so its place is unknown. Add some unchanged lines around them.")
    if not old_text and lines and hunk.at_end:  # it comes after the last line, which may lack a line end
        old_text = _text([lines[-1].rstrip("\r\n")], bare=False)
        new_text = old_text + new_text
    first_error: ToolError | None = None
    for heading, first_line in _search_starts(lines, hunk, line):
        try:
            edited = replace_hunk(
                text, old_text, new_text, first_line=first_line, heading=heading, at_end=hunk.at_end, path=path
            )
        except ToolError as error:
            first_error = first_error or error
            continue
        edited_lines = split_lines(edited.text)
        start = common_prefix_length(lines, edited_lines)
        behind = common_prefix_length(lines[start:][::-1], edited_lines[start:][::-1])
        return _PlacedHunk(
            start, len(lines) - behind, number, edited_lines[start : len(edited_lines) - behind], edited.forgiven
        )
    assert first_error is not None, "there is always a way to try"
    raise first_error


def _search_starts(lines: Sequence[str], hunk: PatchHunk, line: int) -> list[tuple[str, int]]:
    """(heading, first line) to look with, in this order."""
    if hunk.start is not None:  # git's heading is cut, and no more than a hint
        headings = ["", *hunk.headings[-1:]]
        return [(heading, below) for heading in headings for below in dict.fromkeys([0, line])]
    outer = 0
    for outer_heading in hunk.headings[:-1]:
        outer = next((index + 1 for index in range(outer, len(lines)) if lines[index].strip() == outer_heading), outer)
    return [((hunk.headings or ("",))[-1], first_line) for first_line in dict.fromkeys([outer, max(outer, line)])]


def _text(lines: Sequence[str], *, bare: bool) -> str:
    text = "".join(f"{line}\n" for line in lines)
    return text.removesuffix("\n") if bare else text
