"""The line below the prompt: what changes comes first, and what matters least goes first where it is narrow."""

from typing import Any

import pytest

from amanu.cli.status_line import Activity, elapsed, short_name, spinner, status_line
from amanu.cli.text import cell_width
from amanu_protocol.items import Job, QueuedPrompt, Usage
from support.fake_daemon import state

JOB = Job(job_id="job-1", tool_call_id="c", title="serve", summary="Runs", state="running", started_at=0)
QUEUED = QueuedPrompt(prompt_id="p", text="later", attachments=[])
USAGE = Usage(
    input_tokens=1,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    thought_tokens=0,
    context_tokens=1,
    context_window=9,
    fullness="context 5%",
    cost_usd=0.5,
)
BUSY: dict[str, Any] = {
    "jobs": [JOB],
    "queue": [QUEUED],
    "todos_summary": "2 of 4 done · Run the tests",
    "usage": USAGE,
    "model_id": "anthropic:claude-sonnet-4-5-20250929",
}

COMMAND = Activity("⠋", "Run a very long command that goes on and on", ("12 s", "~3 tokens"))
RETRY = Activity("↻", "Anthropic asks Amanu to slow down.", ("attempt 3 in 12 s",))

LINES: list[tuple[dict[str, Any], Activity | None, int, str]] = [
    ({}, None, 90, "Enter sends · /help · ask · x"),
    ({}, None, 26, "Enter sends · /help · ask"),
    (
        BUSY,
        None,
        130,
        "Enter sends · /help · 1 in the background · 1 queued · 2 of 4 done · ask · context 5% · "
        "claude-sonnet-4-5 · $0.50",
    ),
    (BUSY, None, 90, "Enter sends · /help · 1 in the background · 1 queued · 2 of 4 done · ask · context 5%"),
    (BUSY, COMMAND, 72, "⠋ Run a very long command that… · 12 s · ~3 tokens · 1 in the background"),
    (BUSY, COMMAND, 40, "⠋ Run a very long co… · 12 s · ~3 tokens"),
    (BUSY, RETRY, 50, "↻ Anthropic asks Amanu to slo… · attempt 3 in 12 s"),
    ({}, Activity("⠋", "Run make", ("12 s",)), 60, "⠋ Run make · 12 s · ask · x"),
    ({}, Activity("⠋", "Run " + "日本語" * 5, ("12 s",)), 40, f"⠋ Run {'日本語' * 3}日… · 12 s · ask"),
    ({"service_tier": "standard"}, None, 90, "Enter sends · /help · ask · x"),
    ({"service_tier": "fast"}, None, 90, "Enter sends · /help · ask · x fast"),
]


@pytest.mark.parametrize(("changes", "activity", "columns", "expected"), LINES)
def test_what_fits_stands_there(
    changes: dict[str, Any], activity: Activity | None, columns: int, expected: str
) -> None:
    line = status_line(state(**changes), activity, columns)
    assert line == expected
    assert cell_width(line) <= columns


@pytest.mark.parametrize(
    ("value", "expected"), [(-3, "0 s"), (0.9, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3725, "62 min 5 s")]
)
def test_a_duration_that_grows_is_in_whole_seconds(value: float, expected: str) -> None:
    assert elapsed(value) == expected


@pytest.mark.parametrize(("term", "marks"), [("xterm", "⠋⠙⠹"), ("dumb", "………"), ("", "………")])
def test_the_spinner_turns_where_it_can_be_drawn(term: str, marks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    assert "".join(spinner(tenth / 10 + 0.05) for tenth in range(3)) == marks


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("anthropic:claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("openai:gpt-5.1", "gpt-5.1"),
        ("openrouter:z-ai/glm-4.6", "glm-4.6"),
        ("auto", "auto"),
    ],
)
def test_a_model_has_a_short_name(model_id: str, name: str) -> None:
    assert short_name(model_id) == name
