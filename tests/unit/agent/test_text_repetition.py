"""Text that repeats itself; the cases themselves are in `bench/loops`."""

import pickle
import random
import time
from itertools import pairwise

import pytest
from bench.loops.corpus import load
from hypothesis import given
from hypothesis import strategies as st

from amanu.agent.loop_guard.text_repetition import BLOCK, TextRepetition


def texts() -> st.SearchStrategy[str]:
    """Names in the corpus, which is not read before it is needed."""
    said = [said for case in load() for turn in case.turns for step in turn for said in step.said]
    return st.sampled_from([each.text for each in said if len(each.text) > 500])


def position(text: str, cuts: list[int]) -> int | None:
    """How many characters there were when it was found, to the block."""
    watch = TextRepetition()
    for start, end in pairwise([0, *cuts, len(text)]):
        if watch.feed(text[start:end]) is not None:
            return end
    return None


@given(st.deferred(texts), st.data())
def test_how_a_text_is_cut_changes_nothing(text: str, data: st.DataObject) -> None:
    fine = position(text, list(range(1, len(text))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=40)))
    found = position(text, cuts)
    assert (found is None) == (fine is None)
    if fine is not None:
        assert fine % BLOCK == 0
        assert found == next(cut for cut in [*cuts, len(text)] if cut >= fine)


@given(st.text(alphabet="ab \n`#|-1.é一", min_size=1, max_size=40), st.integers(1, 400))
def test_nothing_makes_it_fail(unit: str, times: int) -> None:
    TextRepetition("ab").feed(unit * times)


@pytest.mark.parametrize("length", [1, 3, 7, 31, 64, 127, 128, 129, 400, 1000, 3000])
def test_rounds_of_any_length_are_found(length: int) -> None:
    letters = "".join(random.Random(length).choices("abcdefghi", k=length))
    found = TextRepetition().feed("A beginning. " + letters * (20_000 // length))
    assert found is not None and len(found) % length == 0


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Write “I must not talk in class.” 60 times.", False),
        ("Mend the test.", True),
        ("I must stop.", True),
    ],
)
def test_what_the_user_asked_for_is_no_loop(asked: str, found: bool) -> None:
    assert (TextRepetition(asked).feed("I must not talk in class. " * 60) is not None) == found


def test_memory_is_bounded_and_work_is_linear() -> None:
    def spent(watch: TextRepetition, start: int) -> float:
        begun = time.process_time()
        for at in range(start, start + 4000):
            assert watch.feed(f"Line {at} says that {at * 7919 % 10007} is not {at * 104729 % 7919}.\n") is None
        return time.process_time() - begun

    watch = TextRepetition()
    first = min(spent(TextRepetition(), 0), spent(watch, 0))
    *_, last = [spent(watch, start) for start in range(4000, 20_000, 4000)]
    assert len(pickle.dumps(watch)) < 100_000
    assert last < 5 * first + 0.05
