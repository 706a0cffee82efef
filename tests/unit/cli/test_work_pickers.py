"""Agents, commands and servers to choose from: rows, and the acts that each allows."""

from typing import Any

import pytest

from amanu.cli.work_pickers import agent_actions, agent_choices, job_actions, job_choices, server_actions
from amanu_protocol.items import Line, SubAgent
from amanu_protocol.requests import McpChangedTool, McpServer
from support.fake_daemon import state
from unit.cli.test_job_slash_commands import job


def rows(choices: Any) -> list[str]:
    return [" | ".join(filter(None, [each.label, each.about])) for each in choices]


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([], []),
        (
            [
                job(),
                job(job_id="job-2", state="ended", summary="Exit code 0"),
                job(job_id="job-3", last_line="\x1b[1mup"),
            ],
            [
                "▸ job-3  make watch | Running · 23.0 s · up",
                "▸ job-1  make watch | Running · 23.0 s",
                "· job-2  make watch | Exit code 0",
            ],
        ),
    ],
)
def test_background_commands(jobs: list[Any], expected: list[str]) -> None:
    assert rows(job_choices(state(jobs=jobs), 33.0)) == expected


def agent(**changes: Any) -> SubAgent:
    plain: dict[str, Any] = {
        "agent_id": "agent-1",
        "name": "tester",
        "description": "run the tests",
        "session_id": "s2",
        "tool_call_id": "c",
        "state": "running",
        "started_at": 10_000,
        "activity": "Run pytest",
        "summary": "2 steps",
    }
    return SubAgent(**{**plain, **changes})


ENDED = agent(agent_id="agent-2", state="completed", ended_at=12_000, activity="")


def test_sub_agents() -> None:
    assert rows(agent_choices(state(agents=[agent(), ENDED]), 33.0)) == [
        "▸ tester 1 | run the tests · 2 steps · 23.0 s · Run pytest",
        "· tester 2 | run the tests · 2 steps · 2.0 s",
    ]


def values(choices: Any) -> str:
    return " ".join(each.value for each in choices)


def test_what_can_be_done_about_them() -> None:
    assert values(job_actions(job())) == "output stop"
    assert values(agent_actions(agent())) == "open go stop"
    assert values(agent_actions(ENDED)) == "open go"


def server(state: str, **changes: Any) -> McpServer:
    plain: dict[str, Any] = {
        "name": "demo",
        "state": state,
        "reason": "",
        "source": ".mcp.json",
        "target": "demo-server",
        "access": "",
        "digest": "d",
        "tokens": 0,
        "tools": [],
        "lines": [Line(tone="plain", text="demo: off")],
    }
    return McpServer(**{**plain, **changes})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("unapproved", "approve"),
        ("off", "approve"),
        ("configured", "turnOff"),
        ("starting", "turnOff"),
        ("ready", "restart turnOff"),
        ("failed", "restart turnOff"),
        ("needsSignIn", "signIn turnOff"),
    ],
)
def test_servers(state: str, expected: str) -> None:
    assert values(server_actions(server(state))) == expected
    changed = [McpChangedTool(name="echo", diff="+echo")]
    assert values(server_actions(server(state, changed_tools=changed))) == f"approveTools {expected}"
