"""Whether the edits of a rename replace the old name, and only that: a language server that counts otherwise than it
says, or was shown other text, would have anything replaced."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amanu.text.span_edits import SpanEdit, edited

_WORD = re.compile(r"\w+")


class WrongEdit(Exception):
    """An edit replaces something else. `line` counts from 1."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


@dataclass(frozen=True)
class Rename:
    """A symbol as the model wrote it, which may be `cart.total` or `@total`, and its new name."""

    symbol: str
    new_name: str

    def check(self, text: str, edits: Sequence[SpanEdit]) -> None:
        """The edits are in order. Raises `WrongEdit`."""
        for words in _whole_words(text, edits):
            replaced = text[words.start : words.end]
            if not any(_renames(replaced, words.new_text, old, new) for old, new in self._names()):
                raise WrongEdit(len(re.findall(r"\r\n|\r|\n", text[: words.start])) + 1)

    def _names(self) -> Iterator[tuple[str, str]]:
        for old in dict.fromkeys([self.symbol, *_WORD.findall(self.symbol)[-1:]]):
            for new in dict.fromkeys([self.new_name, *_WORD.findall(self.new_name)[-1:]]):
                yield old, new


def _renames(replaced: str, new_text: str, old: str, new: str) -> bool:
    """Whether it is the old name, which becomes the new one with whatever the language wants beside it
    (`{ old: new }`, or the other way round); or holds it, and is the same with the new one in some of its places."""
    if replaced.casefold() == old.casefold():
        return new in new_text
    words, new_words = _words(replaced), _words(new_text)
    if old.casefold() in words and new.casefold() in new_words:
        beside = words | new_words
        if beside <= {old.casefold(), new.casefold(), "as"}:
            return True
    is_new = False
    places = list(re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", replaced, re.IGNORECASE))
    ends = [place.start() for place in places[1:]] + [len(replaced)]
    if not places or not new_text.startswith(replaced[: places[0].start()]):
        return False
    at = places[0].start()
    for place, end in zip(places, ends, strict=True):
        behind = replaced[place.end() : end]
        name = next((name for name in (new, place[0]) if new_text.startswith(name + behind, at)), None)
        if name is None:
            return False
        is_new = is_new or name == new
        at += len(name) + len(behind)
    return is_new and at == len(new_text)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _whole_words(text: str, edits: Sequence[SpanEdit]) -> Iterator[SpanEdit]:
    """The edits, each with the rest of the words that it cuts, and with the others in these: some servers change no
    more than the letters that differ."""
    together: list[SpanEdit] = []
    for edit in edits:
        if together and edit.start > _word_end(text, together[-1].end):
            yield _joined(text, together)
            together = []
        together.append(edit)
    if together:
        yield _joined(text, together)


def _joined(text: str, edits: Sequence[SpanEdit]) -> SpanEdit:
    start, end = _word_start(text, edits[0].start), _word_end(text, edits[-1].end)
    shifted = [SpanEdit(edit.start - start, edit.end - start, edit.new_text) for edit in edits]
    return SpanEdit(start, end, edited(text[start:end], shifted))


def _word_start(text: str, at: int) -> int:
    while at > 0 and _WORD.match(text[at - 1]):
        at -= 1
    return at


def _word_end(text: str, at: int) -> int:
    found = _WORD.match(text, at)
    return found.end() if found else at
