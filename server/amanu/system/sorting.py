"""Sorting hundreds of thousands of texts without holding up other threads."""

from collections.abc import Iterable

_PART = 1 << 14
"""Texts sorted at once, a few milliseconds in which no other thread runs. A merge of 300,000 takes 20."""


def sorted_texts(texts: Iterable[str]) -> list[str]:
    """Like `sorted`, which keeps the interpreter to itself until it has ended: an eighth of a second for 300,000 paths
    in any order."""
    whole = [*texts]
    parts = [sorted(whole[start : start + _PART]) for start in range(0, len(whole), _PART)]
    while len(parts) > 1:
        parts = [sorted(first + second) for first, second in _pairs(parts)]
    return parts[0] if parts else []


def _pairs(parts: list[list[str]]) -> Iterable[tuple[list[str], list[str]]]:
    """Neighbours; an odd one has an empty neighbour."""
    parts = [*parts, []] if len(parts) % 2 else parts
    return zip(parts[::2], parts[1::2], strict=True)
