"""The known model that an unknown one most resembles, judged by the words and numbers in their names.

`claude-opus-5-6` is a `claude opus` of version 5.6: its relatives are the other `claude opus`, the nearest is 5.5.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from amanu_protocol.items import ModelInfo

_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4})$")
_SAYS_NOTHING = frozenset({"preview", "latest", "exp", "experimental", "models"})
"""Parts of names that say nothing about the model."""


def undated(model_id: str) -> str:
    """The id without the date at its end (`…-20251101`, `…-2026-03-05`)."""
    return _DATE.sub("", model_id)


def nearest_relative(model_id: str, known: Iterable[ModelInfo]) -> ModelInfo | None:
    """The known model of the same vendor, with the same words in its name, that shares the longest prefix of whole name
    parts with `vendor:model`; of several, the one with the nearest version, or the newest if it names none. None if no
    known model has the same words: a Flash says nothing about a Pro."""
    vendor = model_id.partition(":")[0]
    pieces = _pieces(model_id)
    words, own = _words(pieces), version(model_id)
    best: ModelInfo | None = None
    best_rank: tuple[int, int] | None = None
    for info in known:
        if info.model_id.partition(":")[0] != vendor or info.model_id == model_id:
            continue
        others = _pieces(info.model_id)
        if _words(others) != words:
            continue
        theirs = _order(version(info.model_id))
        rank = (_shared(pieces, others), -abs(_order(own) - theirs) if own else theirs)
        if best_rank is None or rank > best_rank:
            best, best_rank = info, rank
    return best


def version(model_id: str) -> tuple[int, ...]:
    """The numbers of its name: (5, 5) for `claude-opus-5-5`."""
    return tuple(int(number[0]) for piece in _pieces(model_id) if (number := re.match(r"\d{1,6}", piece)))


@lru_cache(maxsize=2_000)
def _pieces(model_id: str) -> list[str]:
    pieces = re.split(r"[-./:]", undated(model_id.partition(":")[2]).lower())
    return [piece for piece in pieces if piece and piece not in _SAYS_NOTHING]


def _words(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if not piece[0].isdigit()]


def _shared(one: list[str], other: list[str]) -> int:
    """How many parts at the beginning are equal."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _order(numbers: tuple[int, ...]) -> int:
    """A version as one number: 5.10 is after 5.9."""
    major, minor = (*numbers, 0, 0)[:2]
    return major * 1_000 + minor
