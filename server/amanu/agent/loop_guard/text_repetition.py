"""Does a text repeat itself? Watched as it streams: fresh for each reply, and for thoughts and text apart.

Two things are looked for. A *period*: the text goes round exactly, whatever the length of a round, from one character
to a few thousand, blanks and capitals aside. And a *closed vocabulary*: for a long stretch no word comes that was not
there shortly before, as when the same few sentences come in ever new order.

What may repeat honestly needs more rounds: lines of tables, quotes and markup, still more in code, most of all rules
and boxes without a letter in them. The text is looked at in blocks counted from its beginning, so how it was cut into
deltas changes nothing. Work is linear in the new text, memory does not grow.
"""

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

BLOCK = 128
"""Characters between two looks: how much later than possible a loop may be seen."""
_KEPT = 8192
"""Characters of the normalised text that are kept; a round can be half as long."""
_NEEDLE = 32
"""Characters of the end that are searched for in what came before."""
_TRIES = 4
"""Places where they stand that are tried as the end of the round before."""

Kind = Literal["prose", "list", "markup", "code"]
_ENOUGH: dict[Kind, tuple[tuple[int, int], ...]] = {
    # (rounds shorter than so many characters, so many of them in a row); bench/loops says what is gained and lost.
    "prose": ((100, 8), (200, 6), (400, 5), (_KEPT, 4)),
    "list": ((100, 8), (200, 6), (400, 5), (_KEPT, 4)),
    "markup": ((200, 20), (_KEPT, 10)),
    "code": ((_KEPT, 12),),
}
_AT_LEAST: dict[Kind, int] = {"prose": 360, "list": 600, "markup": 1500, "code": 6000}
"""Characters all rounds must have together: a laugh, a chorus, a zero matrix, sixty equal asserts are shorter."""
_MARKS_AT_LEAST = 3000
"""… when there is no letter and no digit in them: rules, boxes, leaders."""
_COUNTED = (160, 6)
"""Rounds that differ in numbers only are an enumeration, unless they are that long and so many, and prose."""
_FEW = 10
"""… in which no more than one character of so many is a digit: a table of figures is none."""
_ASKED_FOR = 12
"""Characters of a round that cannot stand in the user's words by chance."""

_WINDOW = 256
"""Characters whose words are compared with those before; some 45 words."""
_BEFORE, _QUIET = 6, 4
"""A word is new that is not in so many windows before; so many windows without one are a closed vocabulary …"""
_VOCABULARY = 50
"""… if they have no more different words than that. Ordinary prose has over 100 in as much text."""

_FENCE = ("```", "~~~")
_HEAD = 24
"""Characters of a line that tell what it is."""
_LIST = re.compile(r"\s{0,12}(?:(?:[-*+]|\d{1,4}[.)])\s|[•・])")
_MARKUP = re.compile(r"\s*[|>{}\[\]<]|\+[-=]|\t| {4}")
_WIDE_STOPS = str.maketrans(dict.fromkeys("。，、！？；：", " "))
"""Where no blanks part the words, a clause is as good."""
_MARKS = ".,;:!?…\"'()“”‘’`*"
_NUMBER = re.compile(r"\d+")


class TextRepetition:
    """Watches one text. `asked`: what the user said; a repetition of their own words was perhaps asked for."""

    def __init__(self, request: str = "") -> None:
        self._asked = _normal(request)
        self._pending = ""
        self._exact = _Period(_NEEDLE)
        self._counted = _Period(2 * _NEEDLE)
        self._words = _Vocabulary(self._asked)
        self._head = ""
        self._kind: Kind | None = None
        self._in_code = False
        self._size = 0
        self._last_of: dict[Kind, int] = {}
        """Where each kind of line was last seen, in normalised characters."""

    def feed(self, text: str) -> str | None:
        """What is being repeated, once the text has begun to; "" if it is no fixed wording."""
        self._pending += text
        if len(self._pending) < BLOCK:
            return None
        start, unit = 0, None
        while unit is None and len(self._pending) - start >= BLOCK:
            unit = self._look(self._pending[start : start + BLOCK])
            start += BLOCK
        self._pending = self._pending[start:]
        return unit

    def _look(self, block: str) -> str | None:
        text = _normal(block)
        if text.startswith(" ") and self._exact.text.endswith(" "):
            text = text[1:]
        if not text:
            return None
        self._size += len(text)
        kinds = self._kinds(block)
        for kind in kinds:
            self._last_of[kind] = self._size
        return self._period(text) or self._words.feed(block, counts=kinds <= {"prose"})

    def _period(self, text: str) -> str | None:
        self._exact.add(text)
        unit = self._exact.unit
        numbers = _NUMBER.sub("0", text)
        if numbers.startswith("0") and self._counted.text.endswith("0"):
            numbers = numbers[1:]
        self._counted.add(numbers)
        if unit:
            return unit if self._enough(unit, self._exact.run) else None
        length, (shortest, rounds) = len(self._counted.unit), _COUNTED
        if length < shortest or self._counted.run < rounds * length or self._strictest(length) != "prose":
            return None
        unit = self._exact.text[-length:]
        return unit if sum(map(str.isdigit, unit)) * _FEW < length else None

    def _enough(self, unit: str, run: int) -> bool:
        length = len(unit)
        kind = self._strictest(length)
        rounds = next(rounds for shorter, rounds in _ENOUGH[kind] if length < shorter)
        least = (
            _AT_LEAST[kind] if any(character.isalnum() for character in unit) else max(_MARKS_AT_LEAST, _AT_LEAST[kind])
        )
        return run >= max(rounds * length, least) and not self._was_asked_for(unit)

    def _was_asked_for(self, unit: str) -> bool:
        """Where a round begins is chance: each place is tried."""
        if not _ASKED_FOR <= len(unit) <= len(self._asked):
            return False
        return any((unit[shift:] + unit[:shift]).strip() in self._asked for shift in range(len(unit)))

    def _kinds(self, block: str) -> set[Kind]:
        """What the lines in a block are. A line is known by its beginning, wherever the block cuts it."""
        kinds: set[Kind] = set()
        for piece in block.splitlines(keepends=True):
            if self._kind is None:
                self._head += piece[:_HEAD]
                self._kind = "code" if self._in_code else _kind_of(self._head)
            if self._kind is not None:
                kinds.add(self._kind)
            if piece.endswith("\n"):
                if self._head.lstrip().startswith(_FENCE):
                    self._in_code = not self._in_code
                self._head, self._kind = "", None
        return kinds

    def _strictest(self, length: int) -> Kind:
        """The strictest kind among the lines of the last round: one that holds a line of prose is prose."""
        for kind in _ENOUGH:
            if self._size - self._last_of.get(kind, -_KEPT) < length:
                return kind
        return "code"


@dataclass
class _Period:
    """The length of the rounds in which a text goes now, and how much of its end does."""

    needle: int
    text: str = ""
    unit: str = ""
    """One round; "" while there is none."""
    run: int = 0

    def add(self, more_text: str) -> None:
        self.text = text = (self.text + more_text)[-_KEPT:]
        length = len(self.unit)
        if length and text.endswith(text[-len(more_text) - length : -length]):
            self.run += len(more_text)
            self.unit = text[-length:]
        else:
            self.unit, self.run = self._search()

    def _search(self) -> tuple[str, int]:
        text, end = self.text, self.text[-self.needle :]
        end_of_sentence = len(text)
        for _ in range(_TRIES):
            end_of_sentence = text.rfind(end, 0, end_of_sentence - 1)
            if end_of_sentence < 0:
                break
            end_of_sentence += len(end)
            length = len(text) - end_of_sentence
            same = self._same(length)
            if same >= length:
                return text[-length:], same + length
        return "", 0

    def _same(self, length: int) -> int:
        """How many characters of the end are equal to those `length` before them."""
        text = self.text
        least, most = 0, len(text) - length
        while least < most:
            middle = (least + most + 1) // 2
            if text[-middle:] == text[-middle - length : -length]:
                least = middle
            else:
                most = middle - 1
        return least


class _Vocabulary:
    """The words of the last windows, and how many of these brought no new one."""

    def __init__(self, request: str) -> None:
        self._asked = _words(request)
        self._open = ""
        self._counts = True
        self._windows: deque[frozenset[str]] = deque(maxlen=_BEFORE + _QUIET)
        self._quiet = 0

    def feed(self, text: str, *, counts: bool) -> str | None:
        """ "" when the vocabulary is closed. What does not `count` can only bring new words."""
        self._open += text
        self._counts = self._counts and counts
        if len(self._open) < _WINDOW:
            return None
        *whole, unfinished = (self._open if self._open.isascii() else self._open.translate(_WIDE_STOPS)).split(" ")
        if not whole and len(unfinished) < 4 * _WINDOW:
            return None
        vocabulary = frozenset(" ".join(whole).split())
        fresh = vocabulary.difference(*list(self._windows)[-_BEFORE:])
        self._quiet = self._quiet + 1 if self._counts and all(map(_aside, fresh)) else 0
        self._windows.append(vocabulary)
        self._open, self._counts = unfinished, True
        if self._quiet < _QUIET:
            return None
        used = _words(" ".join(word for words in list(self._windows)[-_QUIET:] for word in words if not _aside(word)))
        return "" if 0 < len(used) <= _VOCABULARY and not used <= self._asked else None


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(_MARKS) for word in text.lower().split())


def _aside(word: str) -> bool:
    """`Okay, …`, `Hmm, …`: a capital word before a comma mostly says nothing."""
    return word[-1] == "," and word[0].isupper()


def _kind_of(head: str) -> Kind | None:
    """What a line is, by its beginning; None while that is not known."""
    start = head.lstrip()
    if start.startswith(_FENCE):
        return "code"
    if _LIST.match(head):
        return "list"
    if _MARKUP.match(head):
        return "markup"
    return "prose" if len(start) > 4 else None


def _normal(text: str) -> str:
    """In small letters, any blanks as one."""
    normal = " ".join(text.lower().split())
    return f"{' ' * text[:1].isspace()}{normal}{' ' * (bool(normal) and text[-1:].isspace())}"
