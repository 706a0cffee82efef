"""The rows for what stands before the cursor in a prompt that begins with a slash."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.chat import SLASH_COMMANDS
from amanu.cli.ui import completions as rows
from amanu.cli.ui.completions import Known, completions, folder_names, needed
from amanu_protocol.items import Job, ModelInfo, Proposal, SubAgent
from amanu_protocol.requests import Checkpoint, Command, SessionSummary
from support.fake_daemon import state
from support.sample_events import hunk, proposed


def model(model_id: str, name: str, *, available: bool = True, **told: Any) -> ModelInfo:
    told = {"unavailable": None if available else "no key", "thinking": True, "images": True, **told}
    return ModelInfo(model_id=model_id, name=name, context_window=0, max_output=0, available=available, **told)


def session(session_id: str, title: str) -> SessionSummary:
    told: dict[str, Any] = {"roots": ["/w"], "model_id": "m", "created_at": 0, "updated_at": 0, "status": "idle"}
    return SessionSummary(session_id=session_id, title=title, **told)


def job(number: int, title: str, standing: Any) -> Job:
    return Job(job_id=f"job-{number}", tool_call_id="c", title=title, state=standing, started_at=0, summary=standing)


def agent(number: int, name: str, standing: Any) -> SubAgent:
    told: dict[str, Any] = {"description": "look", "session_id": f"s{number}", "tool_call_id": "c", "started_at": 0}
    return SubAgent(agent_id=f"agent-{number}", name=name, state=standing, summary=standing, **told)


def file(name: str, standing: Any) -> Proposal:
    return proposed(hunk(state=standing), path=f"/w/src/{name}.py")


def checkpoint(text: str) -> Checkpoint:
    return Checkpoint(turn_id="t", prompt_id="p", text=text, at=0, files=[], commands=["make"])


FULL = Known(
    state(
        session_id="now",
        model_id="anthropic:claude-opus-5",
        effort="high",
        jobs=[job(1, "make watch", "running"), job(2, "make docs", "ended"), job(3, "make test", "running")],
        agents=[agent(1, "writer", "completed"), agent(2, "looker", "running")],
        proposals=[file("open", "pending"), file("applied", "applied"), file("undone", "reverted")],
    ),
    SLASH_COMMANDS,
    [
        Command(name="compact", description="Summarize", argument_hint="[what]", source="daemon"),
        Command(name="fix", description="Fix it", argument_hint="ISSUE", source="user"),
        Command(name="mcp__git__log", description="", source="server"),
        Command(name="review-pr", description="", source="skill"),
    ],
    [
        model("openai:gpt-6", "GPT 6"),
        model("anthropic:claude-sonnet-5", "Claude Sonnet 5", available=False),
        model("anthropic:claude-opus-5", "Claude Opus 5", efforts=["low", "high", "max"], default_effort="low"),
        model("vertex:claude-s5", "Sonnet 5 on Vertex"),
    ],
    [session("now", "This one"), session("a1b2c3d4e5", "Mend the parser"), session("badcafe000", "")],
    [checkpoint("mend the parser"), checkpoint("write 2 tests")],
    list_folders=lambda folder: {".": ["out", ".git", "src"], "out": ["a", "b\n"]}.get(folder, []),
)
EMPTY = Known(state(), SLASH_COMMANDS)


@pytest.mark.parametrize(
    ("typed", "known", "texts"),
    [
        ("/con", FULL, ["/context", "/checkpoints"]),
        ("/ckp", FULL, ["/checkpoints"]),
        ("/context", FULL, ["/context"]),
        ("/mo", FULL, ["/mode ", "/model "]),
        ("/model", FULL, ["/model "]),
        ("/sess", FULL, ["/sessions "]),
        ("/un", FULL, ["/unqueue", "/undo ", "/untrust", "/running"]),
        ("/pr", FULL, ["/review-pr", "/export "]),
        ("/log", FULL, ["/mcp__git__log"]),
        ("/comp", FULL, ["/compact "]),
        ("/zzz", FULL, []),
        ("con", FULL, []),
        (" /con", FULL, []),
        ("/queue a\n/con", FULL, []),
        ("/mode ", FULL, ["ask", "plan", "acceptEdits", "draft", "auto"]),
        ("/mode a", FULL, ["ask", "acceptEdits", "auto"]),
        ("/mode edits", FULL, ["acceptEdits"]),
        ("/mode ask more", FULL, []),
        ("/effort ", FULL, ["high", "low", "max"]),
        ("/effort m", FULL, ["max"]),
        ("/effort m", EMPTY, ["minimal", "medium", "max"]),
        ("/model son", FULL, ["vertex:claude-s5", "anthropic:claude-sonnet-5"]),
        ("/model claude opus", FULL, ["anthropic:claude-opus-5"]),
        (
            "/model ",
            FULL,
            ["anthropic:claude-opus-5", "openai:gpt-6", "vertex:claude-s5", "anthropic:claude-sonnet-5"],
        ),
        ("/model x", EMPTY, []),
        ("/sessions ", FULL, ["a1b2c3d4e5", "badcafe000", "latest"]),
        ("/sessions pars", FULL, ["a1b2c3d4e5"]),
        ("/sessions the mend", FULL, ["a1b2c3d4e5"]),
        ("/sessions badc", FULL, ["badcafe000"]),
        ("/sessions cafe", FULL, []),
        ("/sessions lat", FULL, ["latest"]),
        ("/sessions ", EMPTY, []),
        ("/jobs ", FULL, ["output ", "stop "]),
        ("/jobs ", EMPTY, []),
        ("/jobs out", FULL, ["output "]),
        ("/jobs output ", FULL, ["job-1", "job-3", "job-2"]),
        ("/jobs output 2", FULL, ["job-2"]),
        ("/jobs stop ", FULL, ["job-1", "job-3"]),
        ("/jobs stop  test", FULL, ["job-3"]),
        ("/jobs other ", FULL, []),
        ("/agents ", FULL, ["open ", "stop "]),
        ("/agents open ", FULL, ["agent-2", "agent-1"]),
        ("/agents stop ", FULL, ["agent-2"]),
        ("/agents open wri", FULL, ["agent-1"]),
        ("/restore ", FULL, ["1 ", "2 "]),
        ("/restore 2", FULL, ["2 "]),
        ("/restore test", FULL, ["2 "]),
        ("/restore 1 ", FULL, ["files", "all"]),
        ("/restore 1 a", FULL, ["all"]),
        ("/restore x ", FULL, []),
        ("/accept ", FULL, ["turn", "session", "file "]),
        ("/accept s", FULL, ["session"]),
        ("/reject file ", FULL, ["src/open.py"]),
        ("/undo file ", FULL, ["src/applied.py"]),
        ("/redo file und", FULL, ["src/undone.py"]),
        ("/keep file src/app", FULL, ["src/applied.py"]),
        ("/diff ", FULL, ["turn", "session", "file "]),
        ("/diff turn ", FULL, []),
        ("/record ", FULL, ["off", "out/", "src/"]),
        ("/record o", FULL, ["off", "out/"]),
        ("/record .", FULL, [".git/"]),
        ("/record out/", FULL, ["a/"]),
        ("/audit ", FULL, ["last", "session"]),
        ("/audit s", FULL, ["session"]),
        ("/queue a", FULL, []),
        ("/fix a", FULL, []),
    ],
)
def test_what_is_offered(typed: str, known: Known, texts: list[str]) -> None:
    assert [row.text for row in completions(typed, known)] == texts


@pytest.mark.parametrize(
    ("typed", "prompt", "label", "description", "complete"),
    [
        ("/con", "/context", "/context", SLASH_COMMANDS["/context"], True),
        ("/que", "/queue ", "/queue", SLASH_COMMANDS["/queue"], False),
        ("/comp", "/compact ", "/compact", "[what] · Summarize", True),
        ("/fix", "/fix ", "/fix", "ISSUE · Fix it", False),
        ("/mode", "/mode ", "/mode", SLASH_COMMANDS["/mode"], True),
        ("/mode dr", "/mode draft", "draft", "changes nothing until you accept the draft", True),
        ("/mode ", "/mode ask", "ask", "current · asks before it edits a file or applies what a command changed", True),
        ("/effort l", "/effort low", "low", "the default", True),
        ("/effort ", "/effort high", "high", "current", True),
        ("/model  gpt", "/model  openai:gpt-6", "GPT 6", "openai:gpt-6 · price unknown", True),
        (
            "/model claude s",
            "/model vertex:claude-s5",
            "Sonnet 5 on Vertex",
            "vertex:claude-s5 · price unknown",
            True,
        ),
        (
            "/model anthropic:claude-so",
            "/model anthropic:claude-sonnet-5",
            "Claude Sonnet 5",
            "anthropic:claude-sonnet-5 · no key",
            True,
        ),
        ("/jobs o", "/jobs output ", "output", "print what a command printed", False),
        ("/jobs stop 3", "/jobs stop job-3", "job-3", "make test · running", True),
        ("/agents open w", "/agents open agent-1", "writer 1", "look · completed", True),
        ("/restore 2 a", "/restore 2 all", "all", "undo the changes, and forget the conversation since then", True),
        ("/undo f", "/undo file ", "file", "one file", False),
        ("/undo file a", "/undo file src/applied.py", "src/applied.py", "1 change", True),
        ("/record ou", "/record out/", "out/", "", False),
    ],
)
def test_the_first_row(typed: str, prompt: str, label: str, description: str, complete: bool) -> None:
    first = completions(typed, FULL)[0]
    assert (first.prompt(typed), first.label, first.description, first.complete) == (
        prompt,
        label,
        description,
        complete,
    )


@pytest.mark.parametrize(
    ("typed", "need"),
    [
        ("/model", None),
        ("/model ", "models"),
        ("/effort h", "models"),
        ("/sessions x", "sessions"),
        ("/restore ", "checkpoints"),
        ("/mode ", None),
        ("model ", None),
    ],
)
def test_needed(typed: str, need: str | None) -> None:
    assert needed(typed) == need


def test_the_chat_has_these_commands() -> None:
    assert SLASH_COMMANDS.keys() >= rows.NEED_ARGUMENT | rows.MAY_TAKE_ARGUMENT


def test_folder_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert folder_names(os.fspath(tmp_path)) == ["a", "b"]
    assert folder_names(os.fspath(tmp_path / "gone")) == folder_names("~nobody-of-that-name") == []
