"""A question on the screen: rows to choose from, and a line to type on. Knows no terminal."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from amanu_protocol.items import Line

MOST_DIGITS = 9
"""Rows that a digit chooses."""

Preview = Callable[[str], Awaitable[Sequence[Line]]]


@dataclass(frozen=True)
class Choice:
    """One row. `value` is the answer, which may be typed as well; `label` and `about` are one line each."""

    value: str
    label: str
    about: str = ""


@dataclass(frozen=True)
class Dialog:
    """All there is to ask. Digits, arrows and Enter choose a row; a letter begins words of the user's own."""

    prompt: str
    """Stands before what is typed."""
    choices: Sequence[Choice] = ()
    _: KW_ONLY
    valid: Callable[[], bool]
    """Once it no longer holds, nothing is asked any more."""
    default: str = ""
    """Stands there as if the user had typed it."""
    is_picker: bool = False
    """What is typed filters the rows."""
    preview: Preview | None = None
    """Tells below the question what the answer would do that Enter gives now."""
    again: Callable[[], None] | None = None
    """Prints what stands above the question, after something else was printed."""
    roots: Sequence[str] = ()
    """Paths below them are completed."""


@dataclass
class OpenDialog:
    """A dialog, and the row that is marked."""

    asked: Dialog
    selected: int = 0
    """Index into `rows`."""

    def rows(self, typed: str) -> Sequence[Choice]:
        words = typed.lower().split() if self.asked.is_picker else []
        return [
            each for each in self.asked.choices if all(word in f"{each.label} {each.about}".lower() for word in words)
        ]

    def move(self, by: int, typed: str) -> None:
        if rows := self.rows(typed):
            self.selected = (self.selected + by) % len(rows)

    def begin_again(self) -> None:
        """The rows are others: the first is chosen."""
        self.selected = 0

    def numbered(self, digit: str, typed: str) -> str | None:
        """The answer that a digit gives; None where it is a character like any other."""
        choices = self.asked.choices
        if typed or self.asked.is_picker or not 1 <= int(digit) <= min(MOST_DIGITS, len(choices)):
            return None
        return choices[int(digit) - 1].value

    def answer(self, typed: str) -> str | None:
        """The answer that Enter gives; None where there is nothing to answer with."""
        rows = self.rows(typed)
        if self.asked.choices and (self.asked.is_picker or not typed.strip()):
            return rows[min(self.selected, len(rows) - 1)].value if rows else None
        return typed
