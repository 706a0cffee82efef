"""The hunks of a patch → the file's new text. Where a hunk goes its own lines decide; one place, or it is refused."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from amanu.tools.base import ToolError
from amanu.tools.patch import PatchHunk
from amanu.workspace.files import line_end, split_lines

_NAMED = 10  # places named in a refusal


def patched(text: str, hunks: Sequence[PatchHunk], path: str) -> str:
    """The text with all hunks applied. Each is about the text as it was, not as the hunk before left it; what the
    hunks do not change keeps every byte. CPU-bound. Raises `ToolError` that names every hunk that does not fit."""
    lines = split_lines(text)
    usual = line_end(text) or next((end for line in lines if (end := _end(line))), "\n")
    placed: list[tuple[int, int, int, list[str]]] = []
    faults: list[str] = []
    after = 0
    for number, hunk in enumerate(hunks, 1):
        if not hunk.changes:
            continue
        if hunk.at_end and lines and not hunk.side("-"):  # it comes after the last line, which may lack a line end
            hunk = replace(hunk, lines=((" ", lines[-1].rstrip("\r\n")), *hunk.lines))
        try:
            start = _locate(lines, hunk, after, path)
        except ToolError as error:
            faults.append(f"Hunk {number} of {len(hunks)} (line {hunk.line} of the patch): {error}")
            continue
        start, after, new = _trimmed(lines, start, hunk, _lines(lines, start, hunk, usual))
        placed.append((start, after, number, new))
    placed.sort(key=lambda each: each[:3])
    for before, each in pairwise(placed):
        if each[0] < before[1] or each[:2] == before[:2]:
            faults.append(f"Hunk {each[2]} overlaps hunk {before[2]} in {path}; make one of them.")
    if faults:
        raise ToolError("\n".join(["Nothing was changed.", *faults] if len(faults) > 1 else faults))
    out: list[str] = []
    at = 0
    for start, end, _, new in placed:
        out += lines[at:start]
        out += new
        at = end
    return "".join([*out, *lines[at:]])


def added(hunks: Sequence[PatchHunk]) -> str:
    """The text of a file that a patch adds."""
    if not hunks:
        return ""
    text = "\n".join(hunks[0].side("+"))
    return text if hunks[0].bare_after else text + "\n"


def _lines(lines: Sequence[str], start: int, hunk: PatchHunk, usual: str) -> list[str]:
    """What stands there afterwards: lines that stay as the file has them, new ones with the line end beside them."""
    at, out, end = start, list[str](), ""
    for mark, text in hunk.lines:
        if mark == "+":
            out.append(text + (end or (_end(lines[at]) if at < len(lines) else "") or usual))
            continue
        end = _end(lines[at])
        if mark == " ":
            out.append(lines[at])
        at += 1
    if at < len(lines) or not out:
        return out
    out = [line if _end(line) else line + usual for line in out[:-1]] + out[-1:]
    was_bare = bool(lines) and not _end(lines[-1])
    if hunk.lines[-1][0] == "+":  # the file ends with it
        bare = hunk.bare_after or (was_bare and not hunk.bare_before)
        out[-1] = out[-1].rstrip("\r\n") if bare else out[-1]
    return out


def _trimmed(lines: Sequence[str], start: int, hunk: PatchHunk, new: list[str]) -> tuple[int, int, list[str]]:
    """(first line, the one after the last, what stands there afterwards) without the lines that stay around it: two
    hunks may share those."""
    end = start + len(hunk.side("-"))
    first, last = 0, len(new)
    while start < end and first < last and lines[start] == new[first]:
        start, first = start + 1, first + 1
    while start < end and first < last and lines[end - 1] == new[last - 1]:
        end, last = end - 1, last - 1
    return start, end, new[first:last]


def _locate(lines: Sequence[str], hunk: PatchHunk, after: int, path: str) -> int:
    """The first line of the hunk, 0-based."""
    wanted = hunk.side("-")
    if not wanted:
        if not lines:
            return 0
        raise ToolError("it has no line that is in the file, so it has no place. Add the lines around it.")
    found = _places(lines, wanted)
    if hunk.at_end and len(found) > 1:
        found = [start for start in found if start + len(wanted) == len(lines)] or found
    headings = [at for each in hunk.headings[-1:] for at, line in enumerate(lines) if line.strip() == each.strip()]
    if headings and hunk.start is None:
        below = [start for start in found if start >= headings[0]]
        if found and not below:
            raise ToolError(f"its lines are in {path} only above its heading {hunk.headings[-1]!r}.")
        found = below
    if len(found) > 1:
        found = [start for start in found if start >= after] or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise ToolError(f"its lines are not in {path}. Read the file and copy the lines that stay and go exactly.")
    named = ", ".join(str(start + 1) for start in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
    raise ToolError(f"its lines are in {path} {len(found)} times (at lines {named}). Add lines around it.")


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where those lines stand: exactly, or else but for blanks at their ends."""
    plain = [line.rstrip() for line in wanted]
    key = next((at for at, line in enumerate(plain) if line), 0)
    starts = [at - key for at, line in enumerate(lines) if line.rstrip() == plain[key] and at >= key]
    loose = [start for start in starts if [line.rstrip() for line in lines[start : start + len(plain)]] == plain]
    exact = [s for s in loose if [line.rstrip("\r\n") for line in lines[s : s + len(plain)]] == list(wanted)]
    return exact or loose


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
