"""What a refusal shows: the places there are, or the nearest text and in what it differs."""

from collections.abc import Sequence

from amanu.core.tool import ToolError
from amanu.tools.edits.matching.source import NAMED, SourceLines, indent_of

_SHOWN = 12  # lines of the nearest text
_WIDTH = 200  # characters of a line that are shown
_VOTERS = 200  # lines of `old` that are looked for
_ASTRAY = 3  # lines by which a line left out or too many moves the vote
_VOTES = 50  # places of a line that are looked at
_LINES = 50_000  # lines looked at for one alike


def ambiguous_error(path: str, lines: Sequence[int], total: int, how: str) -> ToolError:
    """`at`: 0-based lines. `how`: what was forgiven to find them."""
    named = ", ".join(str(line + 1) for line in lines[:NAMED]) + (", …" if total > len(lines[:NAMED]) else "")
    times = f"{total} times" if total <= NAMED or not how else f"more than {NAMED} times"
    but = f", {how} aside" if how else ""
    return ToolError(
        f"old_text is in {path} {times} (at lines {named}){but}. Nothing was changed. Add lines around it until it is "
        "unique, or set replace_all to true."
    )


def unproven_error(path: str, source: SourceLines, target: Sequence[str], why: str, line: int) -> ToolError:
    """There is a place, but not a certain one. `line` is 0-based, -1 if there is none to show."""
    head = f"old_text is in {path}, but not certainly so: {why}. Nothing was changed."
    start = line if 0 <= line < len(source.lines) else nearest(source, target)
    return ToolError(head if start is None else f"{head} {_shown(source, start, target)}")


def not_found_error(path: str, source: SourceLines, target: Sequence[str], new_text: str) -> ToolError:
    head = f"old_text is not in {path}. Nothing was changed."
    if len(new_text.strip()) > 8 and new_text in source.text:
        return ToolError(f"{head} The file has new_text already; perhaps this edit was made before.")
    start = nearest(source, target)
    if start is None:
        return ToolError(f"{head} Read the file and copy the text exactly, without line numbers.")
    return ToolError(f"{head} {_shown(source, start, target)}")


def _shown(source: SourceLines, start: int, target: Sequence[str]) -> str:
    excerpt = source.lines[start : start + min(len(target) + 1, _SHOWN)]
    near = "".join(f"{start + offset + 1:>6}  {line.rstrip()[:_WIDTH]}\n" for offset, line in enumerate(excerpt))
    why = difference(source, start, target)
    return f"The nearest text is (line numbers are not part of it):\n{near}{why}Copy it exactly and try again."


def difference(source: SourceLines, start: int, target: Sequence[str]) -> str:
    """The first line that is not the same, as a sentence; "" when all are."""
    for offset, expected in enumerate(target):
        actual = source.lines[start + offset] if start + offset < len(source.lines) else None
        if actual is None:
            return f"old_text has {len(target) - offset} lines more than the file there.\n"
        has, wrote = actual.rstrip("\r\n"), expected.rstrip("\r\n")
        if has == wrote:
            continue
        head = f"Line {offset + 1} of old_text differs: "
        if has.strip() == wrote.strip() and has.strip():
            if indent_of(has) != indent_of(wrote):
                return (
                    f"{head}the file indents it by {_blank(indent_of(has))}, old_text by {_blank(indent_of(wrote))}.\n"
                )
            return f"{head}blanks at its end.\n"
        return f"{head}the file has {_cut(has, wrote)}, old_text has {_cut(wrote, has)}.\n"
    return ""


def _blank(indent: str) -> str:
    tabs, spaces = indent.count("\t"), indent.count(" ")
    parts = [f"{count} {name}{'s' * (count != 1)}" for count, name in ((tabs, "tab"), (spaces, "space")) if count]
    return " and ".join(parts) or "nothing"


def _cut(line: str, counterpart: str) -> str:
    """In backquotes; of a long line the stretch where the other begins to differ."""
    line = line.strip()
    if len(line) <= 120:
        return f"`{line}`" if line else "a blank line"
    counterpart = counterpart.strip()
    index = next((index for index, (a, b) in enumerate(zip(line[:5000], counterpart, strict=False)) if a != b), 0)
    return f"`…{line[max(0, index - 40) : index + 60]}…`"


def nearest(source: SourceLines, target: Sequence[str]) -> int | None:
    """The first line of the window most like `wanted`: the one most of its lines vote for, else one alike."""
    votes: dict[int, int] = {}
    target = target[:_VOTERS]
    lines_of = source.places(target)
    for row, line in enumerate(target):
        key = line.strip()
        for start in lines_of.get(key, ())[:_VOTES]:
            votes[max(0, start - row)] = votes.get(max(0, start - row), 0) + len(key)
    if votes:
        best = max(votes, key=lambda start: (votes[start], -start))
        first = next((row for row, line in enumerate(target) if line.strip()), 0)
        begins = (line - first for line in lines_of.get(target[first].strip(), ())[:_VOTES])
        return next((start for start in begins if start >= 0 and abs(start - best) <= _ASTRAY), best)
    from rapidfuzz import fuzz, process

    row, longest = max(
        enumerate(line.strip() for line in target), key=lambda row_and_text: len(row_and_text[1]), default=(0, "")
    )
    longest = longest[:500]
    if len(longest) < 4:
        return None
    short = [line.strip()[:500] for line in source.lines[:_LINES]]
    closest = process.extractOne(longest, short, scorer=fuzz.ratio, score_cutoff=60)
    return None if closest is None else max(0, int(closest[2]) - row)
