"""The rules of fspec (codelet) for a stream, as published: text and thoughts, over the last 160 words.

Three, five or eight words in a row that come ten times; fewer than 15 different words in a hundred, from 40 words on;
the last 16 words seen before (the three repeats it names as needed are not looked at: the first counts); the last 24
words like the 24 before them, 85 of a hundred. Nothing under 12 words. Its first sign (a warning there) is what counts
here, as for the others. Calls are not watched.
"""

from collections import Counter
from collections.abc import Sequence

from bench.loops.corpus import Called

WINDOW = 160
GRAMS = (3, 5, 8)
GRAM_TIMES = 10
DIFFERENT = 0.15
DIFFERENT_FROM = 40
LONG_RUN = 16
PERIOD = 24
ALIKE = 0.85
FEWEST = 12


class Fspec:
    def __init__(self) -> None:
        self.reply()

    def turn(self, request: str) -> None:
        pass

    def reply(self) -> None:
        self._words: dict[str, list[str]] = {"text": [], "thought": []}
        self._open: dict[str, str] = {"text": "", "thought": ""}

    def said(self, kind: str, delta: str) -> bool:
        *whole, self._open[kind] = f"{self._open[kind]}{delta}".replace("\n", " ").split(" ")
        found = False
        for word in whole:
            if word:
                self._words[kind] = [*self._words[kind], word.lower()][-WINDOW:]
                found = found or _repeats(self._words[kind])
        return found

    def called(self, calls: Sequence[Called]) -> bool:
        return False


def _repeats(words: list[str]) -> bool:
    if len(words) < FEWEST:
        return False
    for size in GRAMS:
        grams = Counter(tuple(words[at : at + size]) for at in range(len(words) - size + 1))
        if grams and max(grams.values()) >= GRAM_TIMES:
            return True
    if len(words) >= DIFFERENT_FROM and len(set(words)) / len(words) < DIFFERENT:
        return True
    last = words[-LONG_RUN:]
    if len(words) > LONG_RUN and any(words[at : at + LONG_RUN] == last for at in range(len(words) - LONG_RUN)):
        return True
    here, before = words[-PERIOD:], words[-2 * PERIOD : -PERIOD]
    return len(before) == PERIOD and sum(a == b for a, b in zip(here, before, strict=True)) / PERIOD >= ALIKE
