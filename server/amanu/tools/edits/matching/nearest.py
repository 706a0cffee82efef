"""What a refusal shows: the places there are, or the nearest text and in what it differs."""

from collections.abc import Sequence

from amanu.core.tool import ToolError
from amanu.tools.edits.matching.source import NAMED, Source, indent_of

_SHOWN = 12  # lines of the nearest text
_WIDTH = 200  # characters of a line that are shown
_VOTERS = 200  # lines of `old` that are looked for
_ASTRAY = 3  # lines by which a line left out or too many moves the vote
_VOTES = 50  # places of a line that are looked at
_LINES = 50_000  # lines looked at for one alike


def ambiguous(path: str, at: Sequence[int], total: int, how: str) -> ToolError:
    """`at`: 0-based lines. `how`: what was forgiven to find them."""
    named = ", ".join(str(line + 1) for line in at[:NAMED]) + (", …" if total > len(at[:NAMED]) else "")
    times = f"{total} times" if total <= NAMED or not how else f"more than {NAMED} times"
    but = f", {how} aside" if how else ""
    return ToolError(
        f"old_text is in {path} {times} (at lines {named}){but}. Nothing was changed. Add lines around it until it is "
        "unique, or set replace_all to true."
    )


def unproven(path: str, source: Source, wanted: Sequence[str], why: str, line: int) -> ToolError:
    """There is a place, but not a certain one. `line` is 0-based, -1 if there is none to show."""
    head = f"old_text is in {path}, but not certainly so: {why}. Nothing was changed."
    start = line if 0 <= line < len(source.lines) else nearest(source, wanted)
    return ToolError(head if start is None else f"{head} {_shown(source, start, wanted)}")


def nowhere(path: str, source: Source, wanted: Sequence[str], new: str) -> ToolError:
    head = f"old_text is not in {path}. Nothing was changed."
    if len(new.strip()) > 8 and new in source.text:
        return ToolError(f"{head} The file has new_text already; perhaps this edit was made before.")
    start = nearest(source, wanted)
    if start is None:
        return ToolError(f"{head} Read the file and copy the text exactly, without line numbers.")
    return ToolError(f"{head} {_shown(source, start, wanted)}")


def _shown(source: Source, start: int, wanted: Sequence[str]) -> str:
    shown = source.lines[start : start + min(len(wanted) + 1, _SHOWN)]
    near = "".join(f"{start + at + 1:>6}  {line.rstrip()[:_WIDTH]}\n" for at, line in enumerate(shown))
    why = difference(source, start, wanted)
    return f"The nearest text is (line numbers are not part of it):\n{near}{why}Copy it exactly and try again."


def difference(source: Source, start: int, wanted: Sequence[str]) -> str:
    """The first line that is not the same, as a sentence; "" when all are."""
    for at, asked in enumerate(wanted):
        there = source.lines[start + at] if start + at < len(source.lines) else None
        if there is None:
            return f"old_text has {len(wanted) - at} lines more than the file there.\n"
        has, said = there.rstrip("\r\n"), asked.rstrip("\r\n")
        if has == said:
            continue
        head = f"Line {at + 1} of old_text differs: "
        if has.strip() == said.strip() and has.strip():
            if indent_of(has) != indent_of(said):
                return (
                    f"{head}the file indents it by {_blank(indent_of(has))}, old_text by {_blank(indent_of(said))}.\n"
                )
            return f"{head}blanks at its end.\n"
        return f"{head}the file has {_cut(has, said)}, old_text has {_cut(said, has)}.\n"
    return ""


def _blank(indent: str) -> str:
    tabs, spaces = indent.count("\t"), indent.count(" ")
    parts = [f"{count} {name}{'s' * (count != 1)}" for count, name in ((tabs, "tab"), (spaces, "space")) if count]
    return " and ".join(parts) or "nothing"


def _cut(line: str, other: str) -> str:
    """In backquotes; of a long line the stretch where the other begins to differ."""
    line = line.strip()
    if len(line) <= 120:
        return f"`{line}`" if line else "a blank line"
    other = other.strip()
    at = next((at for at, (a, b) in enumerate(zip(line[:5000], other, strict=False)) if a != b), 0)
    return f"`…{line[max(0, at - 40) : at + 60]}…`"


def nearest(source: Source, wanted: Sequence[str]) -> int | None:
    """The first line of the window most like `wanted`: the one most of its lines vote for, else one alike."""
    votes: dict[int, int] = {}
    wanted = wanted[:_VOTERS]
    where = source.places(wanted)
    for row, line in enumerate(wanted):
        key = line.strip()
        for at in where.get(key, ())[:_VOTES]:
            votes[max(0, at - row)] = votes.get(max(0, at - row), 0) + len(key)
    if votes:
        best = max(votes, key=lambda at: (votes[at], -at))
        first = next((row for row, line in enumerate(wanted) if line.strip()), 0)
        begins = (at - first for at in where.get(wanted[first].strip(), ())[:_VOTES])
        return next((at for at in begins if at >= 0 and abs(at - best) <= _ASTRAY), best)
    from rapidfuzz import fuzz, process

    row, asked = max(enumerate(line.strip() for line in wanted), key=lambda each: len(each[1]), default=(0, ""))
    asked = asked[:500]
    if len(asked) < 4:
        return None
    short = [line.strip()[:500] for line in source.lines[:_LINES]]
    found = process.extractOne(asked, short, scorer=fuzz.ratio, score_cutoff=60)
    return None if found is None else max(0, int(found[2]) - row)
