"""Our detectors over the whole corpus of `bench/loops`: no false alarm, and no other misses than those known."""

import functools

import pytest
from bench.loops.corpus import TOKENS, Case, load, names
from bench.loops.fspec import Fspec
from bench.loops.gemini_cli import GeminiCli
from bench.loops.opencode import OpenCode
from bench.loops.ours import Amanu
from bench.loops.trial import judge

MISSED = {"counting-short", "rephrased", "z-two-files-growing-range", "z-search-synonyms-for-ever"}
"""What rules cannot tell from honest work; left to the model's judgement."""


@functools.cache
def cases() -> dict[str, Case]:
    return {case.name: case for case in load()}


@pytest.mark.parametrize("name", names())
def test_the_verdict_is_right_however_the_text_is_streamed(name: str) -> None:
    case = cases()[name]
    expected = case.loop and name not in MISSED
    for size in (None, 1, TOKENS, 0):
        outcome = judge(Amanu(), case, size)
        assert (outcome.found, outcome.early) == (expected, False), size


def test_the_corpus_is_big_and_balanced() -> None:
    loops = sum(case.loop for case in cases().values())
    assert len(cases()) >= 120
    assert 0.4 < loops / len(cases()) < 0.6


@pytest.mark.parametrize(
    ("detector", "name", "found"),
    [
        (GeminiCli, "poll-build-log", True),  # results are not looked at
        (GeminiCli, "key-order", True),  # two orders in turn are a circle of two
        (GeminiCli, "sentence", True),
        (GeminiCli, "sentence-1-char", False),  # a capital letter alone is taken for a rule
        (GeminiCli, "paragraph-400", False),
        (GeminiCli, "thought-wait", False),
        (OpenCode, "three-equal-reads", True),
        (OpenCode, "a-b-a-b", False),
        (OpenCode, "sentence", False),
        (Fspec, "h-lorem", True),  # the first run of 16 words seen before
        (Fspec, "paragraph-400", True),
        (Fspec, "read-same-file", False),
    ],
)
def test_the_rules_of_others_do_what_is_published(detector: type, name: str, found: bool) -> None:
    assert judge(detector(), cases()[name]).found == found
