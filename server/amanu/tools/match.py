"""Where `old_text` is in a file: exactly, else forgiving blanks and indentation; unique, or refused.

Never a silent wrong place: each step is tried on the whole file, and more than one place is an error that names
them. Nothing here guesses by likeness; likeness only helps to say what is there instead.

Two ways in, for tools that compute new text of a file (CPU-bound; both raise `ToolError`, nothing is changed then):
- `replace_text(text, old, new, *, replace_all, path) -> Edited`: edit_file, several edits in one call.
- `replace_hunk(text, old, new, *, after=0, heading="", at_end=False, path) -> Edited`: a hunk of a patch. `old` are its
  context and removed lines, `new` its context and added lines, both with line ends; `heading` is what stands after
  `@@`; `after` is the first line it may be in (0-based), for the next hunk `Edited.end` of the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amanu.tools.base import ToolError
from amanu.workspace.files import line_end, split_lines

_NAMED = 10  # places named in a refusal
_CONTEXT = 12  # lines shown of the nearest text


@dataclass(frozen=True)
class Edited:
    text: str
    count: int
    """Places replaced."""
    how: str
    """"" when the text was found exactly, else what was forgiven, for the model."""
    end: int = 0
    """The first line (0-based, of `text`) behind the last place."""


@dataclass(frozen=True)
class _Place:
    """Lines [start, end) of the file, and the indentation they have more (or, `less`, have not) than asked for."""

    start: int
    end: int
    indent: str = ""
    less: bool = False


def replace_text(text: str, old: str, new: str, *, replace_all: bool, path: str) -> Edited:
    """`text` with `old` replaced by `new`. CPU-bound; linear in the text. Raises `ToolError` when `old` is not there,
    or in more places than one without `replace_all`, saying where, or what is there instead."""
    style = line_end(text)
    if style == "\r\n" and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    exact = _find_all(text, old)
    if len(exact) == 1 or (exact and replace_all):
        return Edited(text.replace(old, new), text.count(old), "")
    if exact:
        lines_of = [text.count("\n", 0, at) + 1 for at in exact[:_NAMED]]
        raise _ambiguous(path, lines_of, max(text.count(old), len(exact)))
    lines = split_lines(text)
    wanted = split_lines(old)
    for find, how in ((_same_but_blanks, "blanks at line ends"), (_same_but_indent, "indentation")):
        places = _apart(find(lines, wanted)) if any(line.strip() for line in wanted) else []
        if len(places) == 1 or (places and replace_all):
            return Edited(_put(lines, places, old, new), len(places), how)
        if places:
            raise _ambiguous(path, [place.start + 1 for place in places[:_NAMED]], len(places))
    raise ToolError(_nowhere(lines, wanted, text, new, path))


def replace_hunk(
    text: str, old: str, new: str, *, after: int = 0, heading: str = "", at_end: bool = False, path: str
) -> Edited:
    """`text` with the lines `old` replaced by `new`: whole lines only, at or behind line `after` (0-based). With a
    `heading`, behind the one line that says the same. `at_end`: the hunk says it ends the file. Without `old`, `new`
    goes behind the heading, or at the end. Raises `ToolError` unless there is one place."""
    lines = split_lines(text)
    wanted = split_lines(old)
    if heading:
        named = [at for at, line in enumerate(lines) if at >= after and line.strip() == heading.strip()]
        if len(named) != 1:
            raise ToolError(f"The heading is in {path} {len(named)} times. Nothing was changed.")
        after = named[0] + 1
    if not wanted:
        places = [after if heading else len(lines)]
    else:
        places = [at for at in range(after, len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted]
    if len(places) != 1:
        raise ToolError(f"The hunk is in {path} {len(places)} times. Nothing was changed.")
    at = places[0]
    head = "".join(lines[:at]) + new
    return Edited(head + "".join(lines[at + len(wanted) :]), 1, "", len(split_lines(head)))


def _find_all(text: str, old: str) -> list[int]:
    """Overlapping places too: "aa" is in "aaa" twice. No more than can be named: one could find millions."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) <= _NAMED:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _candidates(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """First lines of windows whose first line that is not blank says the same, blanks aside."""
    first = next(at for at, line in enumerate(wanted) if line.strip())
    key = wanted[first].strip()
    starts = (at - first for at, line in enumerate(lines) if key in line and line.strip() == key)
    return [start for start in starts if start >= 0 and start + len(wanted) <= len(lines)]


def _same_but_blanks(lines: Sequence[str], wanted: Sequence[str]) -> list[_Place]:
    plain = [line.rstrip() for line in wanted]
    return [
        _Place(start, start + len(wanted))
        for start in _candidates(lines, wanted)
        if all(lines[start + at].rstrip() == line for at, line in enumerate(plain))
    ]


def _same_but_indent(lines: Sequence[str], wanted: Sequence[str]) -> list[_Place]:
    """Every line that is not blank is shifted by the same indentation, to the right or to the left."""
    plain = [line.rstrip() for line in wanted]
    first = next(at for at, line in enumerate(plain) if line)
    found: list[_Place] = []
    for start in _candidates(lines, wanted):
        there, asked = lines[start + first].rstrip(), plain[first]
        if there.endswith(asked):
            place = _Place(start, start + len(wanted), there[: len(there) - len(asked)])
        elif asked.endswith(there):
            place = _Place(start, start + len(wanted), asked[: len(asked) - len(there)], less=True)
        else:
            continue
        if all(_shifted(lines[start + at].rstrip(), line, place) for at, line in enumerate(plain)):
            found.append(place)
    return found


def _shifted(there: str, asked: str, place: _Place) -> bool:
    if not there or not asked:
        return there == asked
    return place.indent + there == asked if place.less else there == place.indent + asked


def _apart(places: Sequence[_Place]) -> list[_Place]:
    """Of overlapping places the first."""
    kept: list[_Place] = []
    for place in places:
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept if len(kept) > 1 or len(places) == len(kept) else list(places)


def _put(lines: Sequence[str], places: Sequence[_Place], old: str, new: str) -> str:
    parts: list[str] = []
    at = 0
    for place in places:
        parts += lines[at : place.start]
        parts.append(_fitted(lines[place.start : place.end], place, old, new))
        at = place.end
    parts += lines[at:]
    return "".join(parts)


def _fitted(there: Sequence[str], place: _Place, old: str, new: str) -> str:
    """The new text with the indentation and line ends of the lines it replaces; what it leaves as `old` has it stays
    as it is in the file, blanks at its end included."""
    asked = split_lines(old)
    written = split_lines(new)
    ends = [_end(line) for line in there]
    usual = next((end for end in ends if end), "\n")
    keep = 0
    while keep < min(len(asked), len(written)) and asked[keep].rstrip() == written[keep].rstrip():
        keep += 1
    out: list[str] = list(there[:keep])
    if keep and not _end(out[-1]) and keep < len(written):
        out[-1] += usual
    for at in range(keep, len(written)):
        body = written[at].rstrip("\r\n")
        end = (ends[at] if at < len(ends) - 1 and ends[at] else usual) if _end(written[at]) else ""
        if body.strip():
            body = body.removeprefix(place.indent) if place.less else place.indent + body
        out.append(body + end)
    # Without a line end at the end of `old`, the one that is in the file stays.
    if old and not _end(old) and ends[-1] and out and not _end(out[-1]):
        out[-1] += ends[-1]
    elif old and not _end(old) and ends[-1] and not out:
        out.append(ends[-1])
    # The file ends without a line end although `old` has one: it stays so.
    elif _end(old) and not ends[-1] and out and _end(new):
        out[-1] = out[-1].rstrip("\r\n")
    return "".join(out)


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _ambiguous(path: str, at: Sequence[int], total: int) -> ToolError:
    named = ", ".join(map(str, at)) + (", …" if total > len(at) else "")
    return ToolError(
        f"old_text is in {path} {total} times (at lines {named}). Nothing was changed. Add lines around it until "
        "it is unique, or set replace_all to true."
    )


def _nowhere(lines: Sequence[str], wanted: Sequence[str], text: str, new: str, path: str) -> str:
    head = f"old_text is not in {path}. Nothing was changed."
    if len(new.strip()) > 8 and new in text:
        return f"{head} The file has new_text already; perhaps this edit was made before."
    start = _nearest(lines, wanted)
    if start is None:
        return f"{head} Read the file and copy the text exactly, without line numbers."
    shown = lines[start : start + min(len(wanted) + 1, _CONTEXT)]
    near = "".join(f"{start + at + 1:>6}  {line.rstrip()[:200]}\n" for at, line in enumerate(shown))
    return f"{head} The nearest text is (line numbers are not part of it):\n{near}Copy it exactly and try again."


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The first line of the window most like `wanted`: the one most of its lines vote for, else one alike."""
    votes: dict[int, int] = {}
    places: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(at)
    for offset, line in enumerate(wanted):
        for at in places.get(line.strip(), ())[:50] if line.strip() else ():
            votes[max(0, at - offset)] = votes.get(max(0, at - offset), 0) + len(line)
    if votes:
        return max(votes, key=lambda at: (votes[at], -at))
    from rapidfuzz import fuzz, process

    asked = max((line.strip() for line in wanted), key=len, default="")[:500]
    if len(asked) < 4:
        return None
    short = [line.strip()[:500] for line in lines[:50_000]]
    found = process.extractOne(asked, short, scorer=fuzz.ratio, score_cutoff=60)
    return None if found is None else int(found[2])
