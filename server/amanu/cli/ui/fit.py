"""The fit of a name or a title to what somebody typed of it."""

import re
from collections.abc import Iterator

Fit = tuple[int, int]
"""The place, and over how many characters the letters are spread; less is better."""
NOTHING_TYPED: Fit = (0, 0)
MAX_SPREAD = 3
"""Times as many characters as letters; in a long text most letters can be found further apart."""
_WORD = re.compile(r"[^\W_]+")


def fit(typed: str, *texts: str) -> Fit | None:
    """The best of any of the texts, each word of `typed` for itself: as the whole text, at its start, at the start of a
    word, spread from its start on, within it, spread; a single letter begins a word. None: it does not fit."""
    worst = NOTHING_TYPED
    for word in typed.lower().split():
        found = min(_fits(word, texts), default=None)
        if found is None:
            return None
        worst = max(worst, found)
    return worst


def _fits(word: str, texts: tuple[str, ...]) -> Iterator[Fit]:
    for text in texts:
        if (found := _fit(word, text.lower())) is not None:
            yield found


def _fit(word: str, text: str) -> Fit | None:
    length = len(word)
    if text.startswith(word):
        return (0 if text == word else 1), length
    if any(text.startswith(word, match.start()) for match in _WORD.finditer(text)):
        return 2, length
    if length == 1:
        return None
    spread = _spread(word, text)
    if spread is not None and text.startswith(word[0]):
        return 3, spread
    if word in text:
        return 4, length
    return None if spread is None else (5, spread)


def _spread(letters: str, text: str) -> int | None:
    """From the first place of the first letter to the nearest places of the others."""
    start = text.find(letters[0])
    at = start - 1
    for letter in letters:
        at = text.find(letter, at + 1)
        if at < 0:
            return None
    spread = at + 1 - start
    return spread if spread <= MAX_SPREAD * len(letters) else None
