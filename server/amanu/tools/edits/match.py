"""Where `old` is in a file: exactly, else by the first rung of a ladder that finds it; one place, or refused.

Two ways in, for tools that compute new text of a file (CPU-bound; both raise `ToolError`, nothing is changed then):
- `replace_text(text, old, new, *, replace_all, path) -> Edited`: edit_file, several edits in one call.
- `replace_hunk(text, old, new, *, after=0, heading="", at_end=False, path) -> Edited`: a hunk of a patch. `old` are its
  context and removed lines, `new` its context and added lines, both with line ends; `heading` is what stands after
  `@@`; `after` is the first line it may be in (0-based), for the next hunk `TextReplacement.end` of the one before.

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
from amanu.tools.edits.matching.place import LineMatch, Unproven, bare
from amanu.tools.edits.matching.put import put
from amanu.tools.edits.matching.source import NAMED, Fold, SourceLines, indent_of
from amanu.workspace.text_file import split_lines


@dataclass(frozen=True)
class TextReplacement:
    text: str
    count: int
    """Places replaced."""
    how: str
    """"" when the text was found exactly, else what was forgiven, for the model."""
    end: int = 0
    """The first line (0-based, of `text`) behind the last place."""


@dataclass(frozen=True)
class MatchedText:
    """What several edits made of a text, and what was forgiven of them (`TextReplacement.how`)."""

    text: str
    forgiven: Sequence[str] = ()


@dataclass(frozen=True)
class _Asked:
    source: SourceLines
    old: str
    new: str
    every: bool = False
    """All places are wanted."""
    lines: bool = False
    """Whole lines only."""
    after: int = 0
    before: int | None = None
    """Lines [after, before) it may be in."""


Rung = Callable[[_Asked], Iterable[LineMatch]]


def replace_text(text: str, old: str, new: str, *, replace_all: bool, path: str) -> TextReplacement:
    """`text` with `old` replaced by `new`. Raises `ToolError` when `old` is not there, or in more places than one
    without `replace_all`, saying where, or what is there instead."""
    offsets = _find_all(text, old)
    if len(offsets) > 1 and not replace_all:
        lines_of = [text.count("\n", 0, offset) for offset in offsets[:NAMED]]
        raise ambiguous(path, lines_of, max(text.count(old), len(offsets)), "")
    several = "\n" in old.rstrip("\n") or "\n" in new.rstrip("\n")
    odd = several and any(bare(text[text.rfind("\n", 0, offset) + 1 : offset]) for offset in offsets)
    if offsets and "\r" not in text and not odd:
        if "\n" in text:
            new = new.replace("\r\n", "\n")  # the file's line ends, as on every other rung
        count = text.count(old)
        edited = text.replace(old, new)
        behind = offsets[0] + len(new) if count == 1 else len(edited)
        return TextReplacement(edited, count, "", edited.count("\n", 0, behind) + (not edited[:behind].endswith("\n")))
    return _climb(_Asked(SourceLines(text), old, new, every=replace_all), path)


def replace_hunk(
    text: str, old: str, new: str, *, after: int = 0, heading: str = "", at_end: bool = False, path: str
) -> TextReplacement:
    """`text` with the lines `old` replaced by `new`: whole lines only, at or behind line `after` (0-based). With a
    `heading`, behind the one line that says the same: if there are several places, the one in its block. `at_end`: the
    hunk says it ends the file. Without `old`, `new` goes behind the heading, or at the end. Raises `ToolError` unless
    there is one place."""
    source = SourceLines(text)
    block_end: int | None = None
    if heading.strip():
        after = _heading(source, heading.strip(), after, path) + 1
        block_end = _block_end(source, after - 1)
    if not old:
        line = after if heading.strip() else len(source.lines)
        actual = source.lines[line - 1 : line]
        return _edited(source, [LineMatch(line - len(actual), line, actual, [*actual, *split_lines(new)])], "")
    search = _Asked(source, old, new, lines=True, after=after)
    if at_end:
        size = len(split_lines(old))
        try:
            return _climb(_Asked(source, old, new, lines=True, after=max(after, len(source.lines) - size)), path)
        except ToolError:
            pass
    if block_end is not None:
        try:
            return _climb(_Asked(source, old, new, lines=True, after=after, before=block_end), path)
        except ToolError:
            pass
    return _climb(search, path)


def _climb(search: _Asked, path: str) -> TextReplacement:
    target = split_lines(search.old)
    try:
        for how, rung in _LADDER:
            places = _within(search, rung(search))
            if not places:
                continue
            if len(places) > 1 and not search.every and not _come_to_the_same(search.source, places, how):
                raise ambiguous(path, [place.start for place in places], len(places), how)
            edited = _edited(search.source, places if search.every else places[:1], how)
            if edited.text == search.source.text and search.old != search.new:
                raise Unproven("what new_text changes in old_text is no change of the file", places[0].start)
            return edited
    except Unproven as error:
        raise unproven(path, search.source, target, error.why, error.line) from None
    raise nowhere(path, search.source, target, search.new)


def _within(search: _Asked, places: Iterable[LineMatch]) -> list[LineMatch]:
    size = len(search.source.lines)
    end_limit = size if search.before is None else search.before
    inside = (place for place in places if search.after <= place.start and place.end <= end_limit)
    return list(inside if search.every else islice(inside, NAMED + 1))


def _come_to_the_same(source: SourceLines, places: Sequence[LineMatch], how: str) -> bool:
    return how == "lines left out" and len({_edited(source, [place], how).text for place in places}) == 1


def _edited(source: SourceLines, places: Sequence[LineMatch], how: str) -> TextReplacement:
    parts: list[str] = []
    line = 0
    end = 0
    count = 0
    for place in places:
        if place.start < line:
            continue
        parts += source.lines[line : place.start]
        written = put(source.lines[place.start : place.end], place, source.usual_end)
        end += place.start - line + len(written)
        parts += written
        line = place.end
        count += 1
    parts += source.lines[line:]
    return TextReplacement("".join(parts), count, how, end)


def _folded(search: _Asked, fold: Fold) -> Iterator[LineMatch]:
    return folds.folded(search.source, search.old, search.new, fold, apart=search.every, lines=search.lines)


def _indented(search: _Asked, fold: Fold, equal: Fold) -> Iterator[LineMatch]:
    return indented(search.source, split_lines(search.old), split_lines(search.new), fold, equal, apart=search.every)


def _read(search: _Asked, attempts: Sequence[readings.Reading]) -> list[LineMatch]:
    """What the strictest rung finds that finds a reading. Raises `Unproven` when two of them differ in `new`."""
    meant: list[_Asked] = []
    for read in attempts:
        with suppress(Unproven):  # half written so: not that way, then
            if (reading := read(search.old, search.new)) is not None:
                meant.append(replace(search, old=reading[0], new=reading[1]))
    for rung in (_ends, _trailing, _indent):
        results = [places for reading in meant if (places := _within(reading, rung(reading)))]
        if (
            len({_edited(search.source, places, "").text for places in results[: len(results) * (len(results) > 1)]})
            > 1
        ):
            raise Unproven("how new_text is to be read, too, is not certain", results[0][0].start)
        if results:
            return results[0]
    return []


def _elided(search: _Asked) -> list[LineMatch]:
    return elided(search.source, split_lines(search.old), split_lines(search.new), folds.blanks_around)


def _drifted(search: _Asked) -> list[LineMatch]:
    place = drifted(search.source, split_lines(search.old), split_lines(search.new))
    return [] if place is None else [place]


_ends: Rung = partial(_folded, fold=folds.line_ends)
_trailing: Rung = partial(_folded, fold=folds.trailing_blanks)
_indent: Rung = partial(_indented, fold=folds.blanks_around, equal=str)
_LADDER: tuple[tuple[str, Rung], ...] = (
    ("", _ends),
    ("blanks at line ends", _trailing),
    ("indentation", _indent),
    ("blank lines around it", partial(_read, attempts=(readings.without_blank_edges,))),
    ("escapes", partial(_read, attempts=(readings.as_json,))),
    ("escapes", partial(_read, attempts=readings.ESCAPES)),
    ("characters that look alike", partial(_folded, fold=folds.look_alikes)),
    (
        "characters that look alike, indentation",
        partial(_indented, fold=folds.look_alikes_and_blanks_around, equal=folds.alike),
    ),
    ("blanks inside lines", partial(_indented, fold=folds.all_blanks, equal=folds.single_blanks)),
    ("line numbers", partial(_read, attempts=(readings.without_numbers, readings.without_numbers_and_blank))),
    ("lines left out", _elided),
    ("small differences", _drifted),
)
"""What is forgiven, for the model, and the rung; from strict to tolerant. Exact text in a file without CR is found
before."""


def _find_all(text: str, old: str) -> list[int]:
    """Overlapping places too: "aa" is in "aaa" twice. No more than can be named: one could find millions."""
    offsets: list[int] = []
    offset = text.find(old)
    while offset >= 0 and len(offsets) <= NAMED:
        offsets.append(offset)
        offset = text.find(old, offset + 1)
    return offsets


def _heading(source: SourceLines, heading: str, after: int, path: str) -> int:
    """The one line that says the heading; of several, the one that says it whole."""
    named = [at for at in source.places([heading])[heading] if at >= after]
    if not named:
        named = [at for at, line in enumerate(source.lines) if at >= after and heading in line]
    if len(named) == 1:
        return named[0]
    if not named:
        raise nowhere(path, source, [heading], "")
    raise ambiguous(path, named, len(named), "")


def _block_end(source: SourceLines, opens: int) -> int:
    """The first line behind line `opens` that is no deeper."""
    depth = len(indent_of(source.lines[opens]))
    for at in range(opens + 1, len(source.lines)):
        line = source.lines[at]
        if line.strip() and len(indent_of(line)) <= depth:
            return at
    return len(source.lines)
