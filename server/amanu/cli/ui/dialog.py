"""A question on the screen: rows to choose from, and a line to type on. Knows no terminal."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from amanu_protocol.items import Line

_DIGITS = tuple("123456789")
"""Rows with these numbers are chosen by them."""
ROW_KEYS = ("c-x",)
"""Keys that a dialog may give a meaning, in prompt_toolkit's names."""
MOST_ROWS = 10
"""Rows that are seen at once."""
MOST_PREVIEW = 12
LEAST_PREVIEW = 3
NARROW = 60
"""Columns: a picker on a screen with fewer shows no preview."""
_BESIDE_LIST = 3
"""Rows for the line to type on, the status, and the end of the transcript."""
_BESIDE_PREVIEW = 6

Preview = Callable[[str], Awaitable[Sequence[Line]]]


@dataclass(frozen=True)
class Choice:
    """One row. `value` is the answer, which may be typed as well; `label` and `about` are one line each."""

    value: str
    label: str
    about: str = ""
    keywords: str = ""
    """A picker finds it by these words as well, which it does not show."""
    hidden: bool = False
    """A picker shows it only to who types."""

    def has(self, words: Sequence[str]) -> bool:
        """All of them, in small letters."""
        text = f"{self.label} {self.about} {self.keywords}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True)
class RowKey:
    """A key that answers with the marked row, as Enter does, but for something else: with `verb` and a blank before."""

    key: str
    """One of `ROW_KEYS`."""
    shown: str
    verb: str


@dataclass(frozen=True)
class Place:
    """Among the questions that can be gone to from each other."""

    number: int
    """Counted from 1; beyond the last: a look at all of them."""
    count: int

    def __str__(self) -> str:
        if self.number > self.count:
            return "Ctrl-P back"
        return f"{self.number} of {self.count}, Ctrl-N next" if self.count > 1 else ""


ALONE = Place(1, 1)


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
    typed: str = ""
    """The words that the user typed at it before, or the value of the row that was marked."""
    place: Callable[[], Place] = lambda: ALONE
    is_picker: bool = False
    """Typed words filter the rows."""
    selected: int = 0
    """The row that is marked at first."""
    row_keys: Sequence[RowKey] = ()
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
    marked: str | None = field(init=False)
    """The value of that row; None: the first is."""

    def __post_init__(self) -> None:
        rows = self.rows(self.text)
        at = next((at for at, each in enumerate(rows) if each.value == self.asked.typed), self.asked.selected)
        self.marked = rows[min(at, len(rows) - 1)].value if rows else None

    @property
    def text(self) -> str:
        """The text that stands there at first."""
        is_row = any(each.value == self.asked.typed for each in self.asked.choices)
        return self.asked.default or ("" if is_row else self.asked.typed)

    def left_with(self, typed: str) -> str:
        """The text that is to stand there when the user comes back."""
        rows = self.rows(typed)
        return typed or (rows[at].value if (at := self.index(rows)) > 0 else "")

    def rows(self, typed: str) -> Sequence[Choice]:
        words = typed.lower().split() if self.asked.is_picker else []
        found = [each for each in self.asked.choices if each.has(words) and (words or not each.hidden)]
        # "hi" is in "this model's default", too: what begins with it is meant.
        return sorted(found, key=lambda each: not each.label.lower().startswith(typed.lower())) if words else found

    def list_height(self, screen_rows: int) -> int:
        """Rows that are seen at once."""
        return max(1, min(MOST_ROWS, screen_rows - _BESIDE_LIST))

    def preview_height(self, columns: int, screen_rows: int) -> int:
        """Rows of a picker's preview: always as many, for the list not to jump; none where there is no room."""
        if not self.asked.is_picker or self.asked.preview is None or columns < NARROW:
            return 0
        room = screen_rows - min(len(self.asked.choices), self.list_height(screen_rows)) - _BESIDE_PREVIEW
        return min(room, MOST_PREVIEW) if room >= LEAST_PREVIEW else 0

    def move(self, by: int, typed: str) -> None:
        if rows := self.rows(typed):
            self.marked = rows[(self.index(rows) + by) % len(rows)].value

    def begin_again(self) -> None:
        """The rows are others: the first is chosen."""
        self.marked = None

    def index(self, rows: Sequence[Choice]) -> int:
        """The index of the marked row among these, wherever it has moved; that of the first if it is not among them."""
        at = next((at for at, each in enumerate(rows) if each.value == self.marked), 0)
        self.marked = rows[at].value if rows else None
        return at

    def numbered(self, typed: str) -> str | None:
        """The answer of the row that has this number; None where the text is no number of a row."""
        choices = self.asked.choices
        is_number = typed in _DIGITS and int(typed) <= len(choices)
        return choices[int(typed) - 1].value if is_number and not self.asked.is_picker else None

    def keyed(self, key: str, typed: str) -> str | None:
        """The answer that a key of the dialog's own gives; None where there is no row."""
        value = self.answer(typed)
        verbs = [each.verb for each in self.asked.row_keys if each.key == key]
        return f"{verbs[0]} {value}" if verbs and value is not None else None

    def footer(self) -> str:
        """The keys of a picker, for the status line."""
        own = [f"{each.shown} {each.verb}s" for each in self.asked.row_keys]
        return " · ".join(["Enter takes it", *own, "↑ ↓", "type to narrow"])

    def answer(self, typed: str) -> str | None:
        """The answer that Enter gives; None where there is nothing to answer with."""
        rows = self.rows(typed)
        if self.asked.choices and (self.asked.is_picker or not typed.strip()):
            return rows[self.index(rows)].value if rows else None
        return typed if (numbered := self.numbered(typed)) is None else numbered
