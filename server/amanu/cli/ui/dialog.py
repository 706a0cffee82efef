"""A question on the screen: rows to choose from, and a line to type on. Knows no terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_DIGITS = 9
"""Rows that a digit chooses."""


@dataclass(frozen=True)
class Choice:
    """One row. `value` is the answer, which may be typed as well; `label` and `about` are one line each."""

    value: str
    label: str
    about: str = ""


@dataclass
class Dialog:
    """Digits, arrows and Enter choose a row; a letter begins words of the user's own. In a picker (`is_picker`) what is
    typed filters the rows instead."""

    prompt: str
    """Stands before what is typed."""
    choices: Sequence[Choice] = ()
    is_picker: bool = False
    selected: int = field(default=0, init=False)
    """Index into `rows`."""

    def rows(self, typed: str) -> Sequence[Choice]:
        words = typed.lower().split() if self.is_picker else []
        return [each for each in self.choices if all(word in f"{each.label} {each.about}".lower() for word in words)]

    def move(self, by: int, typed: str) -> None:
        if rows := self.rows(typed):
            self.selected = (self.selected + by) % len(rows)

    def begin_again(self) -> None:
        """The rows are others: the first is chosen."""
        self.selected = 0

    def numbered(self, digit: str, typed: str) -> str | None:
        """The answer that a digit gives; None where it is a character like any other."""
        if typed or self.is_picker or not 1 <= int(digit) <= min(MOST_DIGITS, len(self.choices)):
            return None
        return self.choices[int(digit) - 1].value

    def answer(self, typed: str) -> str | None:
        """The answer that Enter gives; None where there is nothing to answer with."""
        rows = self.rows(typed)
        if self.choices and (self.is_picker or not typed.strip()):
            return rows[min(self.selected, len(rows) - 1)].value if rows else None
        return typed
