"""Sweeps: the same rule over a great number of cases.

`make test` takes a sample, the same in each run; `make soak` takes all (`AMANU_SWEEPS=whole`).
"""

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

WHOLE = os.environ.get("AMANU_SWEEPS") == "whole"


def sample(cases: Iterable[T], most: int) -> list[T]:
    """At most so many of the cases, in their order."""
    cases = list(cases)
    if WHOLE or len(cases) <= most:
        return cases
    return [cases[index] for index in sorted(random.Random(len(cases)).sample(range(len(cases)), most))]


def sample_pairs(first: Sequence[T], second: Sequence[U], each: int = 1) -> list[tuple[T, U]]:
    """Pairs in which every case of either list is at least `each` times, where the other has as many; or all pairs."""
    if WHOLE:
        return [(one, other) for one in first for other in second]
    count = max(len(first), len(second))
    indexes = {(index % len(first), (index + shift) % len(second)) for shift in range(each) for index in range(count)}
    return [(first[row], second[column]) for row, column in sorted(indexes)]


def examples(whole: int, sampled: int) -> int:
    """The number of examples that Hypothesis makes of a property."""
    return whole if WHOLE else sampled
