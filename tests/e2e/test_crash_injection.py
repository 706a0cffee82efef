"""A sample of `crash_injection.py`: the calls at which a half-done decision would show. `make soak` breaks off at
every call."""

from collections.abc import Sequence

import pytest

from support.crash_injection import RENAMES, Break, Word, breaks, survive
from support.required_programs import needs


def telling(found: Sequence[Break]) -> list[Break]:
    """Every kill where a name or the length of a workspace file changes, and some errors spread over the rest."""
    names = [each for each in found if each.how == "kill" and each.call in (*RENAMES, "ftruncate")]
    errors = [each for each in found if each.how != "kill"]
    return names + errors[:: max(1, len(errors) // 5)]


@pytest.mark.parametrize("word", ["accept", "undo"])
def test_all_or_nothing_wherever_it_breaks_off(word: Word) -> None:
    needs("strace")
    outcomes = {survive(each) for each in telling(breaks(word))}
    assert outcomes == {"before", "after"}
