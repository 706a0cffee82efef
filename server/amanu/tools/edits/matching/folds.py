"""Rungs 2, 3 and 6: the text is there, but for line ends, blanks at line ends, or characters that look alike.

Proof: with both texts folded the same way, `old` is in the file as one piece; it does not begin or end inside a word
(unless it is there to the letter but for line ends); where blanks at its end were dropped, the line ends there.
"""

import re
import unicodedata
from collections.abc import Iterator

from amanu.tools.edits.matching.place import LineMatch, is_in_indentation, match_within_lines
from amanu.tools.edits.matching.source import Fold, SourceLines, body_of, end_of

_TRIES = 10_000  # places inside words that are passed over


def line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def trailing_blanks(text: str) -> str:
    return "\n".join([line.rstrip() for line in line_ends(text).split("\n")])


def blanks_around(text: str) -> str:
    return "\n".join([line.strip() for line in line_ends(text).split("\n")])


def all_blanks(text: str) -> str:
    return line_ends(text).replace(" ", "").replace("\t", "")


def look_alikes(text: str) -> str:
    return trailing_blanks(alike(text))


def look_alikes_and_blanks_around(text: str) -> str:
    return blanks_around(alike(text))


_ALIKE = {
    **dict.fromkeys(map(ord, "‘’‚‛′´ʼʹ＇"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″ʺ＂"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-"),
    **dict.fromkeys([0xA0, 0x3000, 0x202F, 0x205F, 0x1680, *range(0x2000, 0x200B)], " "),
    **dict.fromkeys([0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0xAD], None),
    ord("…"): "...",
    **{wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F) if chr(wide) not in "＇＂－"},
}
"""Characters models mix up: quotes, dashes, blanks, marks nobody sees, full width."""


def alike(text: str) -> str:
    """Line by line: most are ASCII, and the others are slow."""
    if text.isascii():
        return text
    return "\n".join(
        [
            line if line.isascii() else unicodedata.normalize("NFC", line.translate(_ALIKE))
            for line in line_ends(text).split("\n")
        ]
    )


_AROUND = re.compile(r" ?([^\w\s]) ?")


def single_blanks(line: str) -> str:
    """One blank for several, none beside a mark: what is left between words is there in both or in neither."""
    return _AROUND.sub(r"\1", " ".join(line.split()))


def same(text: str) -> str:
    return text


CHARACTERS: dict[Fold, Fold] = {line_ends: same, trailing_blanks: same, look_alikes: alike}
"""Fold → what it does to the characters of a line."""


def match_folded(
    source: SourceLines, old_text: str, new_text: str, fold: Fold, *, apart: bool, whole_lines: bool
) -> Iterator[LineMatch]:
    """Where `old` is, both folded; `apart`: without overlap; `lines`: as whole lines only."""
    needle = fold(old_text)
    if not needle.strip() or (fold is look_alikes and source.text.isascii() and old_text.isascii()):
        return
    text = source.folded(fold)
    if needle.endswith("\n") and not text.endswith("\n"):
        text += "\n"  # the file's last line may have no end
    to_line_end = fold is not line_ends and old_text[-1:].isspace() and not end_of(old_text)
    several = "\n" in old_text.rstrip("\n") or "\n" in new_text.rstrip("\n")
    index, counted, line, tries = text.find(needle), 0, 0, 0
    while index >= 0 and tries < _TRIES:
        end = index + len(needle)
        fits = (index == 0 or text[index - 1] == "\n") and (end == len(text) or "\n" in (text[end - 1], text[end]))
        if not whole_lines and not fits:
            fits = fold is line_ends or not (_inside_word(text, index) or _inside_word(text, end))
        if fits and to_line_end:
            fits = end == len(text) or text[end] == "\n"
        if (
            fits
            and several
            and old_text[0] in " \t"
            and is_in_indentation(text[text.rfind("\n", 0, index) + 1 : index])
        ):
            fits = False  # the file has the line deeper than `old` says: that is for the rung of indentation
        if fits:
            line += text.count("\n", counted, index)
            counted = index
            yield _match_of(
                source, line, index - text.rfind("\n", 0, index) - 1, needle, old_text, new_text, CHARACTERS[fold]
            )
        else:
            tries += 1
        index = text.find(needle, end if fits and apart else index + 1)


def _match_of(
    source: SourceLines, start: int, column: int, needle: str, old_text: str, new_text: str, fold: Fold
) -> LineMatch:
    """The place of a text found in line `start` at the folded `column`."""
    rows = needle.count("\n")
    prefix = source.lines[start][: _column(body_of(source.lines[start]), column, fold)]
    if needle.endswith("\n"):
        return match_within_lines(source, start, start + rows, old_text, new_text, prefix, "")
    last = source.lines[start + rows]
    ends = len(needle) - needle.rfind("\n") - 1 + (0 if rows else column)
    suffix = last[_column(body_of(last), ends, fold, behind=True) :]
    if not suffix.strip():  # blanks at the line's end are no part of what was asked
        suffix = end_of(last)
    return match_within_lines(source, start, start + rows + 1, old_text, new_text, prefix, suffix)


def _column(body: str, column: int, fold: Fold, *, behind: bool = False) -> int:
    """Where in `body` the folded `column` is; `behind` what folds to nothing there."""
    if fold is same or body.isascii():
        return column
    low, high = 0, len(body)
    while low < high:
        middle = (low + high + behind) // 2
        length = len(fold(body[:middle]))
        if behind:
            low, high = (middle, high) if length <= column else (low, middle - 1)
        else:
            low, high = (low, middle) if length >= column else (middle + 1, high)
    return low


_WORD = re.compile(r"\w\w")


def _inside_word(text: str, index: int) -> bool:
    return 0 < index < len(text) and _WORD.match(text, index - 1) is not None
