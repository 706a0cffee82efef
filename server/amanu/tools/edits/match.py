"""Where `old` is in a file: exactly, else by the first rung of a ladder that finds it; one place, or refused.

Two ways in, for tools that compute new text of a file (CPU-bound; both raise `ToolError`, nothing is changed then):
- `replace_text(text, old, new, *, replace_all, path) -> Edited`: edit_file, several edits in one call.
- `replace_hunk(text, old, new, *, after=0, heading="", at_end=False, path) -> Edited`: a hunk of a patch. `old` are its
  context and removed lines, `new` its context and added lines, both with line ends; `heading` is what stands after
  `@@`; `after` is the first line it may be in (0-based), for the next hunk `Edited.end` of the one before.

A rung says in its docstring (`matching/`) what it must prove. It is tried only when all stricter ones found nothing;
two places are a refusal that names them, never a choice. What is put there is the *change* from `old` to `new`
(`matching/put.py`), so that what a rung forgave stays as the file has it. All work is linear in the file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from amanu.core.tool import ToolError
from amanu.tools.edits.matching import folds, readings
from amanu.tools.edits.matching.drift import drifted
from amanu.tools.edits.matching.elision import elided
from amanu.tools.edits.matching.indent import indented
from amanu.tools.edits.matching.nearest import ambiguous, nowhere, unproven
from amanu.tools.edits.matching.place import Place, Unproven, bare
from amanu.tools.edits.matching.put import put
from amanu.tools.edits.matching.source import NAMED, Fold, Source, indent_of
from amanu.workspace.text_file import split_lines


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
class Matched:
    """What several edits made of a text, and what was forgiven of them (`Edited.how`)."""

    text: str
    forgiven: Sequence[str] = ()


@dataclass(frozen=True)
class _Asked:
    source: Source
    old: str
    new: str
    every: bool = False
    """All places are wanted."""
    lines: bool = False
    """Whole lines only."""
    after: int = 0
    before: int | None = None
    """Lines [after, before) it may be in."""


Rung = Callable[[_Asked], Iterable[Place]]


def replace_text(text: str, old: str, new: str, *, replace_all: bool, path: str) -> Edited:
    """`text` with `old` replaced by `new`. Raises `ToolError` when `old` is not there, or in more places than one
    without `replace_all`, saying where, or what is there instead."""
    found = _find_all(text, old)
    if len(found) > 1 and not replace_all:
        lines_of = [text.count("\n", 0, at) for at in found[:NAMED]]
        raise ambiguous(path, lines_of, max(text.count(old), len(found)), "")
    several = "\n" in old.rstrip("\n") or "\n" in new.rstrip("\n")
    odd = several and any(bare(text[text.rfind("\n", 0, at) + 1 : at]) for at in found)
    if found and "\r" not in text and not odd:
        if "\n" in text:
            new = new.replace("\r\n", "\n")  # the file's line ends, as on every other rung
        count = text.count(old)
        edited = text.replace(old, new)
        behind = found[0] + len(new) if count == 1 else len(edited)
        return Edited(edited, count, "", edited.count("\n", 0, behind) + (not edited[:behind].endswith("\n")))
    return _climb(_Asked(Source(text), old, new, every=replace_all), path)


def replace_hunk(
    text: str, old: str, new: str, *, after: int = 0, heading: str = "", at_end: bool = False, path: str
) -> Edited:
    """`text` with the lines `old` replaced by `new`: whole lines only, at or behind line `after` (0-based). With a
    `heading`, behind the one line that says the same: if there are several places, the one in its block. `at_end`: the
    hunk says it ends the file. Without `old`, `new` goes behind the heading, or at the end. Raises `ToolError` unless
    there is one place."""
    source = Source(text)
    before: int | None = None
    if heading.strip():
        after = _heading(source, heading.strip(), after, path) + 1
        before = _block_end(source, after - 1)
    if not old:
        at = after if heading.strip() else len(source.lines)
        there = source.lines[at - 1 : at]
        return _edited(source, [Place(at - len(there), at, there, [*there, *split_lines(new)])], "")
    asked = _Asked(source, old, new, lines=True, after=after)
    if at_end:
        size = len(split_lines(old))
        try:
            return _climb(_Asked(source, old, new, lines=True, after=max(after, len(source.lines) - size)), path)
        except ToolError:
            pass
    if before is not None:
        try:
            return _climb(_Asked(source, old, new, lines=True, after=after, before=before), path)
        except ToolError:
            pass
    return _climb(asked, path)


def _climb(asked: _Asked, path: str) -> Edited:
    wanted = split_lines(asked.old)
    try:
        for how, rung in _LADDER:
            places = _within(asked, rung(asked))
            if not places:
                continue
            if len(places) > 1 and not asked.every and not _come_to_the_same(asked.source, places, how):
                raise ambiguous(path, [place.start for place in places], len(places), how)
            edited = _edited(asked.source, places if asked.every else places[:1], how)
            if edited.text == asked.source.text and asked.old != asked.new:
                raise Unproven("what new_text changes in old_text is no change of the file", places[0].start)
            return edited
    except Unproven as error:
        raise unproven(path, asked.source, wanted, error.why, error.line) from None
    raise nowhere(path, asked.source, wanted, asked.new)


def _within(asked: _Asked, places: Iterable[Place]) -> list[Place]:
    size = len(asked.source.lines)
    before = size if asked.before is None else asked.before
    inside = (place for place in places if asked.after <= place.start and place.end <= before)
    return list(inside if asked.every else islice(inside, NAMED + 1))


def _come_to_the_same(source: Source, places: Sequence[Place], how: str) -> bool:
    return how == "lines left out" and len({_edited(source, [place], how).text for place in places}) == 1


def _edited(source: Source, places: Sequence[Place], how: str) -> Edited:
    parts: list[str] = []
    done = 0
    end = 0
    count = 0
    for place in places:
        if place.start < done:
            continue
        parts += source.lines[done : place.start]
        written = put(source.lines[place.start : place.end], place, source.usual_end)
        end += place.start - done + len(written)
        parts += written
        done = place.end
        count += 1
    parts += source.lines[done:]
    return Edited("".join(parts), count, how, end)


def _folded(asked: _Asked, fold: Fold) -> Iterator[Place]:
    return folds.folded(asked.source, asked.old, asked.new, fold, apart=asked.every, lines=asked.lines)


def _indented(asked: _Asked, fold: Fold, equal: Fold) -> Iterator[Place]:
    return indented(asked.source, split_lines(asked.old), split_lines(asked.new), fold, equal, apart=asked.every)


def _read(asked: _Asked, ways: Sequence[readings.Reading]) -> list[Place]:
    """What the strictest rung finds that finds a reading. Raises `Unproven` when two of them differ in `new`."""
    meant: list[_Asked] = []
    for read in ways:
        with suppress(Unproven):  # half written so: not that way, then
            if (each := read(asked.old, asked.new)) is not None:
                meant.append(replace(asked, old=each[0], new=each[1]))
    for rung in (_ends, _trailing, _indent):
        found = [places for each in meant if (places := _within(each, rung(each)))]
        if len({_edited(asked.source, places, "").text for places in found[: len(found) * (len(found) > 1)]}) > 1:
            raise Unproven("how new_text is to be read, too, is not certain", found[0][0].start)
        if found:
            return found[0]
    return []


def _elided(asked: _Asked) -> list[Place]:
    return elided(asked.source, split_lines(asked.old), split_lines(asked.new), folds.blanks_around)


def _drifted(asked: _Asked) -> list[Place]:
    place = drifted(asked.source, split_lines(asked.old), split_lines(asked.new))
    return [] if place is None else [place]


_ends: Rung = partial(_folded, fold=folds.line_ends)
_trailing: Rung = partial(_folded, fold=folds.trailing_blanks)
_indent: Rung = partial(_indented, fold=folds.blanks_around, equal=str)
_LADDER: tuple[tuple[str, Rung], ...] = (
    ("", _ends),
    ("blanks at line ends", _trailing),
    ("indentation", _indent),
    ("blank lines around it", partial(_read, ways=(readings.without_blank_edges,))),
    ("escapes", partial(_read, ways=(readings.as_json,))),
    ("escapes", partial(_read, ways=readings.ESCAPES)),
    ("characters that look alike", partial(_folded, fold=folds.look_alikes)),
    (
        "characters that look alike, indentation",
        partial(_indented, fold=folds.look_alikes_and_blanks_around, equal=folds.alike),
    ),
    ("blanks inside lines", partial(_indented, fold=folds.all_blanks, equal=folds.single_blanks)),
    ("line numbers", partial(_read, ways=(readings.without_numbers, readings.without_numbers_and_blank))),
    ("lines left out", _elided),
    ("small differences", _drifted),
)
"""What is forgiven, for the model, and the rung; from strict to tolerant. Exact text in a file without CR is found
before."""


def _find_all(text: str, old: str) -> list[int]:
    """Overlapping places too: "aa" is in "aaa" twice. No more than can be named: one could find millions."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) <= NAMED:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _heading(source: Source, heading: str, after: int, path: str) -> int:
    """The one line that says the heading; of several, the one that says it whole."""
    named = [at for at in source.places([heading])[heading] if at >= after]
    if not named:
        named = [at for at, line in enumerate(source.lines) if at >= after and heading in line]
    if len(named) == 1:
        return named[0]
    if not named:
        raise nowhere(path, source, [heading], "")
    raise ambiguous(path, named, len(named), "")


def _block_end(source: Source, opens: int) -> int:
    """The first line behind line `opens` that is no deeper."""
    depth = len(indent_of(source.lines[opens]))
    for at in range(opens + 1, len(source.lines)):
        line = source.lines[at]
        if line.strip() and len(indent_of(line)) <= depth:
            return at
    return len(source.lines)
