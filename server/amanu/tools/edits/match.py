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
from amanu.tools.edits.matching.drift import match_drifted
from amanu.tools.edits.matching.elision import match_elided
from amanu.tools.edits.matching.indent import match_reindented
from amanu.tools.edits.matching.nearest import ambiguous_error, not_found_error, unproven_error
from amanu.tools.edits.matching.place import LineMatch, Unproven, is_in_indentation
from amanu.tools.edits.matching.put import write_change
from amanu.tools.edits.matching.source import NAMED, Fold, SourceLines, indent_of
from amanu.workspace.text_file import split_lines


@dataclass(frozen=True)
class TextReplacement:
    text: str
    count: int
    """Places replaced."""
    forgiven: str
    """"" when the text was found exactly, else what was forgiven, for the model."""
    end: int = 0
    """The first line (0-based, of `text`) behind the last place."""


@dataclass(frozen=True)
class MatchedText:
    """What several edits made of a text, and what was forgiven of them (`TextReplacement.how`)."""

    text: str
    forgiven: Sequence[str] = ()


@dataclass(frozen=True)
class _MatchSearch:
    source: SourceLines
    old_text: str
    new_text: str
    replace_all: bool = False
    """All places are wanted."""
    whole_lines: bool = False
    """Whole lines only."""
    first_line: int = 0
    end_line: int | None = None
    """Lines [after, before) it may be in."""


Rung = Callable[[_MatchSearch], Iterable[LineMatch]]


def replace_text(text: str, old_text: str, new_text: str, *, replace_all: bool, path: str) -> TextReplacement:
    """`text` with `old` replaced by `new`. Raises `ToolError` when `old` is not there, or in more places than one
    without `replace_all`, saying where, or what is there instead."""
    offsets = _find_all(text, old_text)
    if len(offsets) > 1 and not replace_all:
        lines_of = [text.count("\n", 0, offset) for offset in offsets[:NAMED]]
        raise ambiguous_error(path, lines_of, max(text.count(old_text), len(offsets)), "")
    several = "\n" in old_text.rstrip("\n") or "\n" in new_text.rstrip("\n")
    odd = several and any(is_in_indentation(text[text.rfind("\n", 0, offset) + 1 : offset]) for offset in offsets)
    if offsets and "\r" not in text and not odd:
        if "\n" in text:
            new_text = new_text.replace("\r\n", "\n")  # the file's line ends, as on every other rung
        count = text.count(old_text)
        edited = text.replace(old_text, new_text)
        behind = offsets[0] + len(new_text) if count == 1 else len(edited)
        return TextReplacement(edited, count, "", edited.count("\n", 0, behind) + (not edited[:behind].endswith("\n")))
    return _climb(_MatchSearch(SourceLines(text), old_text, new_text, replace_all=replace_all), path)


def replace_hunk(
    text: str, old_text: str, new_text: str, *, first_line: int = 0, heading: str = "", at_end: bool = False, path: str
) -> TextReplacement:
    """`text` with the lines `old` replaced by `new`: whole lines only, at or behind line `after` (0-based). With a
    `heading`, behind the one line that says the same: if there are several places, the one in its block. `at_end`: the
    hunk says it ends the file. Without `old`, `new` goes behind the heading, or at the end. Raises `ToolError` unless
    there is one place."""
    source = SourceLines(text)
    block_end: int | None = None
    if heading.strip():
        first_line = _heading(source, heading.strip(), first_line, path) + 1
        block_end = _block_end(source, first_line - 1)
    if not old_text:
        line = first_line if heading.strip() else len(source.lines)
        actual = source.lines[line - 1 : line]
        return _replaced(source, [LineMatch(line - len(actual), line, actual, [*actual, *split_lines(new_text)])], "")
    search = _MatchSearch(source, old_text, new_text, whole_lines=True, first_line=first_line)
    if at_end:
        size = len(split_lines(old_text))
        try:
            return _climb(
                _MatchSearch(
                    source, old_text, new_text, whole_lines=True, first_line=max(first_line, len(source.lines) - size)
                ),
                path,
            )
        except ToolError:
            pass
    if block_end is not None:
        try:
            return _climb(
                _MatchSearch(source, old_text, new_text, whole_lines=True, first_line=first_line, end_line=block_end),
                path,
            )
        except ToolError:
            pass
    return _climb(search, path)


def _climb(search: _MatchSearch, path: str) -> TextReplacement:
    target = split_lines(search.old_text)
    try:
        for how, rung in _LADDER:
            matches = _within(search, rung(search))
            if not matches:
                continue
            if len(matches) > 1 and not search.replace_all and not _have_same_result(search.source, matches, how):
                raise ambiguous_error(path, [match.start for match in matches], len(matches), how)
            edited = _replaced(search.source, matches if search.replace_all else matches[:1], how)
            if edited.text == search.source.text and search.old_text != search.new_text:
                raise Unproven("putting new_text there would not change the file", matches[0].start)
            return edited
    except Unproven as error:
        raise unproven_error(path, search.source, target, error.why, error.line) from None
    raise not_found_error(path, search.source, target, search.new_text)


def _within(search: _MatchSearch, matches: Iterable[LineMatch]) -> list[LineMatch]:
    size = len(search.source.lines)
    end_limit = size if search.end_line is None else search.end_line
    inside = (match for match in matches if search.first_line <= match.start and match.end <= end_limit)
    return list(inside if search.replace_all else islice(inside, NAMED + 1))


def _have_same_result(source: SourceLines, matches: Sequence[LineMatch], how: str) -> bool:
    return how == "lines left out" and len({_replaced(source, [match], how).text for match in matches}) == 1


def _replaced(source: SourceLines, matches: Sequence[LineMatch], how: str) -> TextReplacement:
    parts: list[str] = []
    line = 0
    end = 0
    count = 0
    for match in matches:
        if match.start < line:
            continue
        parts += source.lines[line : match.start]
        written = write_change(source.lines[match.start : match.end], match, source.usual_end)
        end += match.start - line + len(written)
        parts += written
        line = match.end
        count += 1
    parts += source.lines[line:]
    return TextReplacement("".join(parts), count, how, end)


def _folded(search: _MatchSearch, fold: Fold) -> Iterator[LineMatch]:
    return folds.match_folded(
        search.source, search.old_text, search.new_text, fold, apart=search.replace_all, whole_lines=search.whole_lines
    )


def _indented(search: _MatchSearch, fold: Fold, equal: Fold) -> Iterator[LineMatch]:
    return match_reindented(
        search.source, split_lines(search.old_text), split_lines(search.new_text), fold, equal, apart=search.replace_all
    )


def _read(search: _MatchSearch, attempts: Sequence[readings.Reading]) -> list[LineMatch]:
    """What the strictest rung finds that finds a reading. Raises `Unproven` when two of them differ in `new`."""
    meant: list[_MatchSearch] = []
    for read in attempts:
        with suppress(Unproven):  # half written so: not that way, then
            if (reading := read(search.old_text, search.new_text)) is not None:
                meant.append(replace(search, old_text=reading[0], new_text=reading[1]))
    for rung in (_ends, _trailing, _indent):
        results = [matches for reading in meant if (matches := _within(reading, rung(reading)))]
        if (
            len({_replaced(search.source, places, "").text for places in results[: len(results) * (len(results) > 1)]})
            > 1
        ):
            raise Unproven("new_text can be read in more than one way", results[0][0].start)
        if results:
            return results[0]
    return []


def _elided(search: _MatchSearch) -> list[LineMatch]:
    return match_elided(search.source, split_lines(search.old_text), split_lines(search.new_text), folds.blanks_around)


def _drifted(search: _MatchSearch) -> list[LineMatch]:
    match = match_drifted(search.source, split_lines(search.old_text), split_lines(search.new_text))
    return [] if match is None else [match]


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


def _find_all(text: str, old_text: str) -> list[int]:
    """Overlapping places too: "aa" is in "aaa" twice. No more than can be named: one could find millions."""
    offsets: list[int] = []
    offset = text.find(old_text)
    while offset >= 0 and len(offsets) <= NAMED:
        offsets.append(offset)
        offset = text.find(old_text, offset + 1)
    return offsets


def _heading(source: SourceLines, heading: str, first_line: int, path: str) -> int:
    """The one line that says the heading; of several, the one that says it whole."""
    indexes = [index for index in source.places([heading])[heading] if index >= first_line]
    if not indexes:
        indexes = [at for at, line in enumerate(source.lines) if at >= first_line and heading in line]
    if len(indexes) == 1:
        return indexes[0]
    if not indexes:
        raise not_found_error(path, source, [heading], "")
    raise ambiguous_error(path, indexes, len(indexes), "")


def _block_end(source: SourceLines, opens: int) -> int:
    """The first line behind line `opens` that is no deeper."""
    depth = len(indent_of(source.lines[opens]))
    for index in range(opens + 1, len(source.lines)):
        line = source.lines[index]
        if line.strip() and len(indent_of(line)) <= depth:
            return index
    return len(source.lines)
