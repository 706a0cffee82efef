"""The file as the rungs see it: lines, and the forms of it they compare; each made once, in linear time."""

from collections.abc import Callable, Iterator
from functools import cached_property

from amanu.workspace.files import split_lines

NAMED = 10
"""Places named in a refusal; more are not looked for."""
Key = Callable[[str], str]
"""What of a line (without its end) must be equal."""


def end_of(line: str) -> str:
    """The line end of a line: "", LF, CRLF or CR."""
    return line[len(line.rstrip("\r\n")) :]


def body_of(line: str) -> str:
    return line.rstrip("\r\n")


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class Source:
    def __init__(self, text: str) -> None:
        self.text = text
        self._joined: dict[Key, str] = {}
        self._folded: dict[Callable[[str], str], str] = {}

    @cached_property
    def lines(self) -> list[str]:
        return split_lines(self.text)

    @cached_property
    def usual_end(self) -> str:
        """What ends its first line."""
        return (end_of(self.lines[0]) if self.lines else "") or "\n"

    @cached_property
    def where(self) -> dict[str, list[int]]:
        """Line, blanks around it aside → the lines that say so."""
        places: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            if key := line.strip():
                places.setdefault(key, []).append(at)
        return places

    def folded(self, fold: Callable[[str], str]) -> str:
        if fold not in self._folded:
            self._folded[fold] = fold(self.text)
        return self._folded[fold]

    def windows(self, wanted: list[str], key: Key, *, apart: bool) -> Iterator[int]:
        """First lines of where `wanted` stands as whole lines, compared by `key`; `apart`: without overlap. One
        search in all keys joined, which is linear whatever they are."""
        if key not in self._joined:
            self._joined[key] = "\n" + "".join(key(body_of(line)) + "\n" for line in self.lines)
        joined = self._joined[key]
        asked = "\n" + "".join(key(body_of(line)) + "\n" for line in wanted)
        at = joined.find(asked)
        line = counted = 0
        while at >= 0:
            line += joined.count("\n", counted, at)
            counted = at
            yield line
            at = joined.find(asked, at + (len(asked) - 1 if apart else 1))
