"""Calls that go in circles; most cases are in `bench/loops`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.agent.loop_guard.call_cycles import PATIENCE, ROUNDS, SAME_FAILURES, SAME_IN_STEP, CallCycles
from amanu.core.conversation import Call, Result

Made = tuple[str, Any, str, bool]
"""Tool, arguments, result, failed."""


def run(*steps: list[Made], defaults: dict[str, dict[str, Any]] | None = None) -> int | None:
    """The step, from 1, in which a circle is seen."""
    watch = CallCycles(defaults or {})
    for at, made in enumerate(steps, 1):
        calls = [Call(call_id=str(n), tool=tool, arguments=given) for n, (tool, given, _, _) in enumerate(made)]
        results = [
            Result(call_id=str(n), tool=tool, text=text, is_error=failed)
            for n, (tool, _, text, failed) in enumerate(made)
        ]
        if watch.add_step(calls, results) is not None:
            return at
    return None


def read(path: str = "a", text: str = "x", **more: Any) -> Made:
    return "read", {"path": path, **more}, text, False


def edit(text: str, error: str = "", path: str = "a.py") -> Made:
    return "edit", {"path": path, "old_text": text}, error or "Applied.", bool(error)


def shell(command: str, text: str) -> Made:
    return "shell", {"command": command}, text, False


@pytest.mark.parametrize("period", [1, 2, 3, 4, 5])
def test_a_circle_of_each_length_takes_its_rounds(period: int) -> None:
    steps = [[read(str(at % period))] for at in range(40)]
    assert run(*steps) == period * ROUNDS[period - 1]


def test_a_circle_of_six_is_none() -> None:
    assert run(*([read(str(at % 6))] for at in range(60))) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [1, {"c": 2, "d": 3}]}, {"b": [1, {"d": 3, "c": 2}], "a": 1}),
        ({"a": "x"}, {"a": "x", "b": None}),
        ({"a": "ls  -la "}, {"a": "ls -la"}),
        ({"path": "./src/a.py"}, {"path": "src/a.py"}),
        ({"a": "x"}, {"a": "x", "context": 1}),
        ({"a": "x"}, {"a": "x", "all": False, "start": 0, "text": "", "ignore": []}),
        ({"command": "ls", "description": "look"}, {"command": "ls", "description": "look again"}),
        ('{"a": ', '{"a":  '),
    ],
)
def test_what_means_the_same_is_the_same(one: Any, other: Any) -> None:
    steps: list[list[Made]] = [[("t", one if at % 2 else other, "x", False)] for at in range(ROUNDS[0])]
    assert run(*steps, defaults={"t": {"context": 1}}) == ROUNDS[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": "x"}, {"a": "X"}),
        ({"old_text": "  a\n  b"}, {"old_text": "  a\n b"}),
        ({"a": 1}, {"a": 2}),
        ({"description": "one"}, {"description": "two"}),
        ({"a": "x", "context": 0}, {"a": "x"}),
        ({"a": "x", "start": 1}, {"a": "x"}),
    ],
)
def test_what_does_not_is_not(one: Any, other: Any) -> None:
    steps: list[list[Made]] = [[("t", one if at % 2 else other, "x", False)] for at in range(ROUNDS[0])]
    assert run(*steps, defaults={"t": {"context": 1}}) is None


NOISE = [
    "1 failed in 0.{n}s",
    "took 3m {n}s",
    "2026-03-02T10:15:{n}Z failed",
    "10:15:{n}.123 failed",
    "pid {n}, address 0x7ffdea{n}",
    "see /tmp/tmp{n}/log",
    "run 9f8e7d{n}-1111-4222-8333-123456789abc failed",
]


@pytest.mark.parametrize("text", NOISE)
def test_results_that_differ_in_times_need_patience(text: str) -> None:
    steps = [[shell("make", text.replace("{n}", str(10 + at)))] for at in range(40)]
    assert run(*steps) == PATIENCE * ROUNDS[0]


@pytest.mark.parametrize("text", ["{n} %", "line {n}", "{n} of 90 done", "page {n}", "file{n}.py", "v1.{n}.0"])
def test_any_other_figure_is_progress(text: str) -> None:
    assert run(*([shell("make", text.replace("{n}", str(10 + at)))] for at in range(40))) is None


def test_a_call_that_waits_has_patience() -> None:
    assert run(*([shell("sleep 30; ls out", "(no output)")] for _ in range(40))) == PATIENCE * ROUNDS[0]


def test_the_same_failure_at_one_place() -> None:
    error = "old_text is not in a.py. The nearest lines are {n}."
    tries = [[edit(str(at), error.replace("{n}", str(at)))] for at in range(9)]
    assert run(*tries) == SAME_FAILURES
    assert run(*tries[:5], [edit("x")], *tries[:5]) is None  # it worked once
    assert run(*tries[:5], [edit("x", "a.py is open elsewhere.")], *tries[:5]) is None  # another failure
    assert run(*([edit(str(at), error, f"{at}.py")] for at in range(9))) is None  # other places


def test_one_call_many_times_in_one_step() -> None:
    assert run([read()] * SAME_IN_STEP) == 1
    assert run([read()] * (SAME_IN_STEP - 1)) is None
    assert run([read(str(at)) for at in range(20)]) is None


@given(st.lists(st.permutations(["a", "b", "c"]), min_size=ROUNDS[0], max_size=ROUNDS[0]))
def test_the_order_within_a_step_makes_no_difference(steps: list[list[str]]) -> None:
    assert run(*([read(path) for path in step] for step in steps)) == ROUNDS[0]


@given(st.lists(st.integers(0, 2), max_size=40))
def test_a_start_anew_forgets(paths: list[int]) -> None:
    watch = CallCycles({})
    for path in paths:
        watch.add_step([Call(call_id="1", tool="read", arguments={"path": str(path)})], [])
    watch.reset()
    fresh = CallCycles({})
    for _ in range(ROUNDS[0]):
        call, result = Call(call_id="1", tool="t", arguments={}), Result(call_id="1", tool="t", text="")
        assert watch.add_step([call], [result]) == fresh.add_step([call], [result])


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ([[("fetch", {"url": f"u{n}"}, "no network", True) for n in range(11)]], None),
        ([[("fetch", {"url": f"u{at}{n}"}, "no network", True) for n in range(3)] for at in range(8)], SAME_FAILURES),
        (
            [
                [("fetch", {"url": f"u{at}{n}"}, "page" if n == 1 else "no network", n != 1) for n in range(3)]
                for at in range(8)
            ],
            None,
        ),
    ],
    ids=["eleven at once", "three at once, again and again", "one of three works"],
)
def test_what_fails_at_once_is_one_try(steps: list[list[Made]], seen: int | None) -> None:
    assert run(*steps) == seen
