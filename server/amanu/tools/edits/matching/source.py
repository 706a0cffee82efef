"""The file as the rungs see it: lines, and the forms of it they compare; each made once, in linear time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from amanu.workspace.text_file import split_lines

NAMED = 10
"""Places named in a refusal; more are not looked for."""
Fold = Callable[[str], str]
"""Text → what is compared of it: as many lines as before, ended by LF."""


def end_of(line: str) -> str:
    """The line end of a line: "", LF, CRLF or CR."""
    return line[len(line.rstrip("\r\n")) :]


def body_of(line: str) -> str:
    return line.rstrip("\r\n")


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class SourceLines:
    def __init__(self, text: str) -> None:
        self.text = text
        self._folded: dict[Fold, str] = {}

    @cached_property
    def lines(self) -> Sequence[str]:
        return split_lines(self.text)

    @cached_property
    def usual_end(self) -> str:
        """What ends its first line."""
        return (end_of(self.lines[0]) if self.lines else "") or "\n"

    def places(self, target: Iterable[str]) -> dict[str, list[int]]:
        """Of each of these lines, blanks around them aside, where the file has it. Blank lines are left out."""
        line_numbers: dict[str, list[int]] = {key: [] for line in target if (key := line.strip())}
        for index, line in enumerate(self.lines):
            if (key := line.strip()) in line_numbers:
                line_numbers[key].append(index)
        return line_numbers

    def folded(self, fold: Fold) -> str:
        if fold not in self._folded:
            self._folded[fold] = fold(self.text)
        return self._folded[fold]

    def windows(self, target: Sequence[str], fold: Fold, *, apart: bool) -> Iterator[int]:
        """First lines of where `wanted` stands as whole lines, folded; `apart`: without overlap. One search in the
        whole text, which is linear whatever it says."""
        text = _closed(self.folded(fold))
        needle = _closed(fold("".join(target)))
        index = text.find(needle)
        line = counted = 0
        while index >= 0:
            line += text.count("\n", counted, index)
            counted = index
            if line + len(target) <= len(self.lines):
                yield line
            index = text.find(needle, index + (len(needle) - 1 if apart else 1))


def _closed(text: str) -> str:
    return f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
