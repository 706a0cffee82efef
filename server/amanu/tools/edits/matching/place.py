"""An answer of a rung: which lines of the file `old` stands for, and what goes there."""

from collections.abc import Sequence
from dataclasses import dataclass

from amanu.tools.edits.matching.source import SourceLines, end_of, indent_of
from amanu.workspace.text_file import split_lines


class Unproven(Exception):
    """There is a place like `old`, but what the edit would do there is not certain. `line`: 0-based, of the file."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(frozen=True)
class LineMatch:
    """Lines [start, end) of the file. `old` and `new` are whole lines in the file's own way of writing: indentation
    and escapes are already the file's; what is still different is left to `put`."""

    start: int
    end: int
    old_lines: Sequence[str]
    new_lines: Sequence[str]
    spans: Sequence[tuple[int, int]] | None = None
    """For each line of `old`, the lines of the file it stands for, from `start`; empty: it is not there. None: one
    for one."""
    drifted: frozenset[int] = frozenset()
    """Lines of `old` that do not say quite the same: the edit must not touch them."""


def match_within_lines(
    source: SourceLines, start: int, end: int, old_text: str, new_text: str, prefix: str, suffix: str
) -> LineMatch:
    """The place of a text that begins behind `prefix` in line `start` and ends before `suffix` in line `end - 1`."""
    if is_in_indentation(prefix):
        new_text = _checked_depth(new_text, old_text, prefix, start)
    return LineMatch(start, end, _lines(prefix + old_text + suffix), _lines(prefix + new_text + suffix))


def is_in_indentation(prefix: str) -> bool:
    """What stands behind `prefix` in its line begins in, or behind, the line's indentation."""
    return bool(prefix) and not prefix.strip()


_OPENERS = (":", "{", "(", "[", ",", "=>", "then", "do")
_LEVELS = ("\t", "  ", "    ", "        ")


def _checked_depth(new_text: str, old_text: str, prefix: str, start: int) -> str:
    """`new` as it is where one line of `old` begins behind its indentation and the other lines of `new` are as deep as
    the file has it; behind a line that opens a block, one level deeper. Else nobody knows how deep they should be: as
    the file has it, or counted from where `old` begins."""
    first, *others = _lines(new_text) or [""]
    indents = [indent_of(line) for line in others if line.strip()]
    if len(_lines(old_text)) > 1 or not indents:
        return new_text
    deep = not indent_of(first) and all(indent.startswith(prefix) for indent in indents)
    if deep and first.rstrip().endswith(_OPENERS):
        level = indents[0].removeprefix(prefix)
        deep = level in _LEVELS and len(prefix) % len(level) == 0
    if not deep:
        raise Unproven(
            "it begins after the indentation of its line, so how far to indent the rest of new_text is uncertain",
            start,
        )
    return new_text


def match_whole_lines(source: SourceLines, start: int, old_lines: Sequence[str], new_lines: Sequence[str]) -> LineMatch:
    """The place of whole lines, one for one. Without a line end at the end of `old`, the file's is not touched."""
    end = start + len(old_lines)
    last = end_of(source.lines[end - 1])
    if old_lines and not end_of(old_lines[-1]) and last:
        old_lines = [*old_lines[:-1], old_lines[-1] + last]
        new_lines = (
            [*new_lines[:-1], new_lines[-1] + last]
            if new_lines and not end_of(new_lines[-1])
            else [*new_lines, *([] if new_lines else [last])]
        )
    return LineMatch(start, end, old_lines, new_lines)


def _lines(text: str) -> list[str]:
    return list(split_lines(text))
