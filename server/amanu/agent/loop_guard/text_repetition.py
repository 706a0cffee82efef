"""Detects a text that repeats itself while it streams. Each reply gets new detectors, for its text and for its
thoughts.

Two things are detected. A *period*: the text repeats exactly, ignoring blanks and capitals, in rounds of one character
to a few thousand. And a *closed vocabulary*: for a long stretch there is no word that did not occur shortly before, as
when the same few sentences come in a different order each time.

What legitimately repeats needs more rounds: lines of tables, quotes and markup, still more in code, and most of all
rules and boxes without any letters. The text is examined in blocks counted from its beginning, so how it is cut into
deltas makes no difference. The work is linear in the new text, and memory does not grow.
"""

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

BLOCK = 128
"""Characters between two examinations, which is how late a loop may be detected."""
_MAX_KEPT = 8192
"""Characters kept of the normalised text; a round can be half as long."""
_NEEDLE = 32
"""Characters at the end of the text that are searched for in the text before."""
_TRIES = 4
"""How many of their occurrences are tried as the end of the previous round."""

Kind = Literal["prose", "list", "markup", "code"]
_ENOUGH: dict[Kind, tuple[tuple[int, int], ...]] = {
    # (rounds shorter than this many characters, this many in a row); bench/loops measures what they catch.
    "prose": ((100, 8), (200, 6), (400, 5), (_MAX_KEPT, 4)),
    "list": ((100, 8), (200, 6), (400, 5), (_MAX_KEPT, 4)),
    "markup": ((200, 20), (_MAX_KEPT, 10)),
    "code": ((_MAX_KEPT, 12),),
}
_AT_LEAST: dict[Kind, int] = {"prose": 360, "list": 600, "markup": 1500, "code": 6000}
"""Characters that all rounds must have together: a laugh, a chorus, a zero matrix or sixty equal asserts are
shorter."""
_MARKS_AT_LEAST = 3000
"""… when they hold no letter and no digit: rules, boxes, leaders."""
_NUMBERED = (160, 6)
"""(characters, rounds): prose whose rounds differ only in numbers counts from this length and number on; anything
shorter is an enumeration."""
_MAX_DIGIT_SHARE = 10
"""… if at most one character in this many is a digit: a table of figures does not count."""
_MIN_REQUESTED = 12
"""A round of this many characters does not occur in the user's words by chance."""

_WINDOW = 256
"""Characters whose words are compared with those before them: about 45 words."""
_BEFORE, _QUIET = 6, 4
"""A word is new if it is not in the last `_BEFORE` windows; `_QUIET` windows without one are a closed vocabulary …"""
_VOCABULARY = 50
"""… if they hold at most this many different words. Ordinary prose has over 100 in as much text."""

_FENCE = ("```", "~~~")
_HEAD = 24
"""Characters of a line that tell what it is."""
_LIST = re.compile(r"\s{0,12}(?:(?:[-*+]|\d{1,4}[.)])\s|[•・])")
_MARKUP = re.compile(r"\s*[|>{}\[\]<]|\+[-=]|\t| {4}")
_WIDE_STOPS = str.maketrans(dict.fromkeys("。，、！？；：", " "))
"""Where no blanks separate words, clauses take their place."""
_MARKS = ".,;:!?…\"'()“”‘’`*"
_NUMBER = re.compile(r"\d+")


class TextRepetition:
    """Watches one text. `request`: what the user said; a repetition of their own words may be what they asked for."""

    def __init__(self, request: str = "") -> None:
        self._request = _normalise(request)
        self._pending = ""
        self._exact = _Period(_NEEDLE)
        self._numbered = _Period(2 * _NEEDLE)
        self._vocabulary = _Vocabulary(self._request)
        self._head = ""
        self._kind: Kind | None = None
        self._in_code = False
        self._size = 0
        self._last_of: dict[Kind, int] = {}
        """Kind of line → where it was last seen, in normalised characters."""

    def feed(self, text: str) -> str | None:
        """The text that is being repeated, once there is one; "" for a repetition without fixed wording. None: no
        loop."""
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
        text = _normalise(block)
        if text.startswith(" ") and self._exact.text.endswith(" "):
            text = text[1:]
        if not text:
            return None
        self._size += len(text)
        kinds = self._kinds(block)
        for kind in kinds:
            self._last_of[kind] = self._size
        return self._period(text) or self._vocabulary.feed(block, counts=kinds <= {"prose"})

    def _period(self, text: str) -> str | None:
        self._exact.add(text)
        unit = self._exact.unit
        numbers = _NUMBER.sub("0", text)
        if numbers.startswith("0") and self._numbered.text.endswith("0"):
            numbers = numbers[1:]
        self._numbered.add(numbers)
        if unit:
            return unit if self._enough(unit, self._exact.run) else None
        length, (shortest, rounds) = len(self._numbered.unit), _NUMBERED
        if length < shortest or self._numbered.run < rounds * length or self._strictest(length) != "prose":
            return None
        unit = self._exact.text[-length:]
        return unit if sum(map(str.isdigit, unit)) * _MAX_DIGIT_SHARE < length else None

    def _enough(self, unit: str, run: int) -> bool:
        length = len(unit)
        kind = self._strictest(length)
        rounds = next(rounds for shorter, rounds in _ENOUGH[kind] if length < shorter)
        least = (
            _AT_LEAST[kind] if any(character.isalnum() for character in unit) else max(_MARKS_AT_LEAST, _AT_LEAST[kind])
        )
        return run >= max(rounds * length, least) and not self._was_requested(unit)

    def _was_requested(self, unit: str) -> bool:
        """Whether the round is in the user's words, wherever the round begins."""
        if not _MIN_REQUESTED <= len(unit) <= len(self._request):
            return False
        return any((unit[shift:] + unit[:shift]).strip() in self._request for shift in range(len(unit)))

    def _kinds(self, block: str) -> set[Kind]:
        """The kinds of the lines in a block. A line's kind shows at its beginning, wherever the block cuts the line."""
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
        """The strictest kind among the lines of the last round: a round with a line of prose is prose."""
        for kind in _ENOUGH:
            if self._size - self._last_of.get(kind, -_MAX_KEPT) < length:
                return kind
        return "code"


@dataclass
class _Period:
    """The round in which a text repeats at present, and how much of its end is made of it."""

    needle: int
    text: str = ""
    unit: str = ""
    """One round; "" while there is none."""
    run: int = 0

    def add(self, addition: str) -> None:
        self.text = text = (self.text + addition)[-_MAX_KEPT:]
        length = len(self.unit)
        if length and text.endswith(text[-len(addition) - length : -length]):
            self.run += len(addition)
            self.unit = text[-length:]
        else:
            self.unit, self.run = self._search()

    def _search(self) -> tuple[str, int]:
        """(one round, characters of the end that repeat); ("", 0) when the text does not repeat."""
        text, end = self.text, self.text[-self.needle :]
        position = len(text)
        for _ in range(_TRIES):
            position = text.rfind(end, 0, position - 1)
            if position < 0:
                break
            position += len(end)
            length = len(text) - position
            equal = self._count_equal(length)
            if equal >= length:
                return text[-length:], equal + length
        return "", 0

    def _count_equal(self, length: int) -> int:
        """How many characters at the end are equal to those `length` before them."""
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
    """The words of the last windows, and how many windows in a row brought no new word."""

    def __init__(self, request: str) -> None:
        self._request = _words_of(request)
        self._open = ""
        self._counts = True
        self._windows: deque[frozenset[str]] = deque(maxlen=_BEFORE + _QUIET)
        self._quiet = 0

    def feed(self, text: str, *, counts: bool) -> str | None:
        """ "" when the vocabulary is closed, otherwise None. Text that does not `count` can only bring new words."""
        self._open += text
        self._counts = self._counts and counts
        if len(self._open) < _WINDOW:
            return None
        *whole, unfinished = (self._open if self._open.isascii() else self._open.translate(_WIDE_STOPS)).split(" ")
        if not whole and len(unfinished) < 4 * _WINDOW:
            return None
        vocabulary = frozenset(" ".join(whole).split())
        fresh = vocabulary.difference(*list(self._windows)[-_BEFORE:])
        self._quiet = self._quiet + 1 if self._counts and all(map(_is_filler, fresh)) else 0
        self._windows.append(vocabulary)
        self._open, self._counts = unfinished, True
        if self._quiet < _QUIET:
            return None
        used = _words_of(
            " ".join(word for words in list(self._windows)[-_QUIET:] for word in words if not _is_filler(word))
        )
        return "" if 0 < len(used) <= _VOCABULARY and not used <= self._request else None


def _words_of(text: str) -> frozenset[str]:
    return frozenset(word.strip(_MARKS) for word in text.lower().split())


def _is_filler(word: str) -> bool:
    """`Okay, …`, `Hmm, …`: a capitalised word before a comma usually means nothing."""
    return word[-1] == "," and word[0].isupper()


def _kind_of(head: str) -> Kind | None:
    """The kind of a line, by its beginning; None while it is unknown."""
    start = head.lstrip()
    if start.startswith(_FENCE):
        return "code"
    if _LIST.match(head):
        return "list"
    if _MARKUP.match(head):
        return "markup"
    return "prose" if len(start) > 4 else None


def _normalise(text: str) -> str:
    """In lower case, with any run of blanks as one."""
    normal = " ".join(text.lower().split())
    return f"{' ' * text[:1].isspace()}{normal}{' ' * (bool(normal) and text[-1:].isspace())}"
