"""Background commands in words: in a list, and for who leaves."""

from typing import Any

import pytest

from amanu.cli.job_slash_commands import describe, farewell, running
from amanu_protocol.items import Job
from support.fake_daemon import state


def job(**changes: Any) -> Job:
    plain: dict[str, Any] = {
        "job_id": "job-1",
        "tool_call_id": "c",
        "title": "make watch",
        "state": "running",
        "started_at": 10_000,
        "summary": "Running",
    }
    return Job(**{**plain, **changes})


ENDED = job(state="ended", summary="Exit code 1, after 2.0 s")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (job(), "job-1  make watch · Running · 23.0 s"),
        (job(port=80, summary="Port 80"), "job-1  make watch on port 80 · 23.0 s"),
        (
            job(port=80, summary="Port 80, reachable only inside its sandbox", last_line="- GET /"),
            "job-1  make watch on port 80, reachable only inside its sandbox · 23.0 s · last line: - GET /",
        ),
        (ENDED, "job-1  make watch · Exit code 1, after 2.0 s"),
    ],
)
def test_a_command_on_one_line(given: Job, expected: str) -> None:
    assert describe(given, 33.0) == expected


TWO = [job(), job(job_id="job-2", title="make serve")]


@pytest.mark.parametrize(
    ("jobs", "idle_seconds", "expected"),
    [
        ([], 600, ""),
        ([ENDED], 600, ""),
        (
            [job(), ENDED],
            600,
            "1 background command keeps running for at least 10 min: make watch. amanu chat --continue returns to it.",
        ),
        (
            TWO,
            90,
            "2 background commands keep running for at least 1 min 30 s: make watch, make serve. "
            "amanu chat --continue returns to them.",
        ),
        (
            [job()],
            28_800,
            "1 background command keeps running for at least 8 h: make watch. amanu chat --continue returns to it.",
        ),
        (TWO, None, "2 background commands end with the chat: make watch, make serve."),
    ],
)
def test_who_leaves_hears_what_runs_on(jobs: list[Job], idle_seconds: float | None, expected: str) -> None:
    assert farewell(state(jobs=jobs), idle_seconds) == expected


def test_who_comes_back_hears_what_runs() -> None:
    assert running(state(jobs=[ENDED])) == ""
    assert running(state(jobs=[job(), ENDED])).startswith("In the background: job-1  make watch · Running · ")
