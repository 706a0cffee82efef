"""The line below the prompt: what changes comes first, and what matters least goes first where it is narrow."""

from typing import Any

import pytest

from amanu.cli.status_line import short_name, status_line
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

LINES: list[tuple[dict[str, Any], str, int, str]] = [
    ({}, "", 90, "Enter sends · /help · ask · x"),
    ({}, "", 26, "Enter sends · /help · ask"),
    (
        BUSY,
        "",
        130,
        "Enter sends · /help · 1 in the background · 1 queued · 2 of 4 done · ask · context 5% · "
        "claude-sonnet-4-5 · $0.50",
    ),
    (BUSY, "", 90, "Enter sends · /help · 1 in the background · 1 queued · 2 of 4 done · ask · context 5%"),
    (
        BUSY,
        "▸ Run a very long command that goes on and on 12 s",
        60,
        "▸ Run a very long command … · 1 in the background · 1 queued",
    ),
    ({}, "▸ Run make 12 s", 60, "▸ Run make 12 s · ask · x"),
    ({"service_tier": "standard"}, "", 90, "Enter sends · /help · ask · x"),
    ({"service_tier": "fast"}, "", 90, "Enter sends · /help · ask · x fast"),
]


@pytest.mark.parametrize(("changes", "moving", "columns", "expected"), LINES)
def test_what_fits_stands_there(changes: dict[str, Any], moving: str, columns: int, expected: str) -> None:
    line = status_line(state(**changes), moving, columns)
    assert line == expected
    assert len(line) <= columns


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
