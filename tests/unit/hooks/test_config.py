"""Which hooks files configure, which calls they concern, and what they are told about them."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.hooks.call_input import call_inputs, our_arguments
from amanu.hooks.config import hooks_of, project_sources, read_source
from amanu.hooks.matching import matches
from amanu.hooks.model import CallFacts, Dialect, Hook, HookMoment, HookSource, Owner
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace

ROOT = Path("/w")


def source(dialect: Dialect = "claude", owner: Owner = "workspace") -> HookSource:
    return HookSource(ROOT / "hooks.json", "hooks.json", owner, dialect, ROOT)


def one(
    handler: Any, dialect: Dialect = "claude", owner: Owner = "workspace", event: str = "PreToolUse", **tree: Any
) -> Hook:
    [hook] = hooks_of({"hooks": {event: [{"hooks": [handler]}]}, **tree}, source(dialect, owner))
    return hook


@pytest.mark.parametrize(
    ("dialect", "event", "timeout", "seconds"),
    [
        ("claude", "PreToolUse", None, 600),
        ("claude", "UserPromptSubmit", None, 30),
        ("claude", "SessionEnd", None, 1.5),
        ("claude", "SessionEnd", 600, 5),
        ("claude", "PreToolUse", 5000, 3600),
        ("claude", "PreToolUse", 0.5, 0.5),
        ("gemini", "BeforeTool", None, 60),
        ("gemini", "BeforeTool", 5000, 5),
        ("gemini", "BeforeTool", 20, 20),
    ],
)
def test_time_limits(dialect: Dialect, event: str, timeout: float | None, seconds: float) -> None:
    handler = {"command": "x"} if timeout is None else {"command": "x", "timeout": timeout}
    assert one(handler, dialect, event=event).timeout == seconds


@pytest.mark.parametrize(
    ("handler", "fault"),
    [
        ("text", "must be an object"),
        ({"type": "command"}, "no command"),
        ({"type": "http", "url": "https://example.com"}, "'http' are not supported"),
        ({"type": "prompt", "prompt": "x"}, "'prompt' are not supported"),
        ({"command": "x", "timeout": "soon"}, "timeout"),
        ({"command": "x", "timeout": -1}, "timeout"),
        ({"command": "x", "timeout": float("nan")}, "timeout"),
        ({"command": "x", "outside": True}, "Only your own"),
        ({"command": "x", "writes": "workspace"}, "cannot change the workspace"),
        ({"command": "x", "async": True}, "Background"),
        ({"command": "x", "onFailure": "maybe"}, "onFailure"),
        ({"command": "x\0y"}, "NUL"),
    ],
)
def test_what_cannot_be_run_says_why(handler: Any, fault: str) -> None:
    assert fault in one(handler).fault


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        ({"hooks": 5}, "must be an object"),
        ({"hooks": {"Nonsense": [{"hooks": [{"command": "x"}]}]}}, "Unknown event 'Nonsense'"),
        ({"hooks": {"Stop": [5]}}, "must be an object with a list"),
        ({"hooks": {"Stop": [{"matcher": "(", "hooks": [{"command": "x"}]}]}}, "not a valid regular expression"),
    ],
)
def test_what_is_wrong_with_a_file_says_so(tree: Any, fault: str) -> None:
    [hook] = hooks_of(tree, source())
    assert fault in hook.fault


def test_hooks_can_be_turned_off() -> None:
    assert one({"command": "x"}, disableAllHooks=True).disabled
    assert one({"command": "x"}, "gemini", hooksConfig={"enabled": False}).disabled
    assert one({"command": "x", "name": "n"}, "gemini", hooksConfig={"disabled": ["n"]}).disabled
    assert not one({"command": "x", "name": "n"}, "gemini", hooksConfig={"disabled": ["m"]}).disabled
    assert one({"command": "x", "outside": True}, owner="user").fault == ""


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "not valid JSON"),
        (b"{}" + b" " * (2 << 20), "longer than"),
    ],
)
def test_a_damaged_file_is_one_hook_that_cannot_be_run(tmp_path: Path, content: bytes, fault: str) -> None:
    workspace = Workspace([tmp_path], Overlay())
    first, *_ = project_sources([tmp_path])
    assert read_source(first, workspace) == []
    first.path.parent.mkdir()
    first.path.write_bytes(content)
    [hook] = read_source(first, workspace)
    assert fault in hook.fault


def test_a_link_does_not_lead_out_of_the_workspace(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside.json", tmp_path / "w"
    outside.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}))
    (root / ".amanu").mkdir(parents=True)
    (root / ".amanu" / "hooks.json").symlink_to(outside)
    first, *_ = project_sources([root])
    assert read_source(first, Workspace([root], Overlay())) == []


@pytest.mark.parametrize(
    ("matcher", "tools"),
    [
        ("", {"read_file", "write_file", "run_shell_command", "apply_patch", "mcp__memory__add"}),
        ("*", {"read_file", "write_file", "run_shell_command", "apply_patch", "mcp__memory__add"}),
        ("Bash", {"run_shell_command"}),
        ("bash", set[str]()),
        ("Edit|Write", {"write_file", "apply_patch"}),
        ("Read, Bash", {"read_file", "run_shell_command"}),
        ("run_shell_command", {"run_shell_command"}),
        ("write_file", {"write_file", "apply_patch"}),
        ("Wri", set[str]()),
        ("Wri.*", {"write_file", "apply_patch"}),
        ("mcp__memory", set[str]()),
        ("mcp__memory__.*", {"mcp__memory__add"}),
        ("mcp_memory_add", {"mcp__memory__add"}),
    ],
)
def test_matchers(matcher: str, tools: set[str]) -> None:
    [hook] = hooks_of({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}}, source())
    every = ("read_file", "write_file", "run_shell_command", "apply_patch", "mcp__memory__add")
    assert {tool for tool in every if matches(hook, HookMoment("PreToolUse", call=CallFacts(tool, {}, "c")))} == tools


@pytest.mark.parametrize(
    ("matcher", "tools"),
    [
        ("write", {"write_file", "write_todos", "apply_patch"}),  # a part of the name is enough
        ("write_file|replace", {"write_file", "apply_patch"}),
        ("^write_", {"write_file", "write_todos", "apply_patch"}),
        ("^file$", set[str]()),
        ("shell", {"run_shell_command"}),
        ("mcp_memory_", {"mcp__memory__add"}),
        ("*", {"read_file", "write_file", "write_todos", "run_shell_command", "apply_patch", "mcp__memory__add"}),
    ],
)
def test_matchers_in_geminis_files(matcher: str, tools: set[str]) -> None:
    tree = {"hooks": {"BeforeTool": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}}
    [hook] = hooks_of(tree, source("gemini"))
    every = ("read_file", "write_file", "write_todos", "run_shell_command", "apply_patch", "mcp__memory__add")
    assert {tool for tool in every if matches(hook, HookMoment("PreToolUse", call=CallFacts(tool, {}, "c")))} == tools


@pytest.mark.parametrize(
    ("report", "tree", "hooks"),
    [
        ("gemini-cli 17831", {"enabled": True, "AfterTool": [{"hooks": [{"command": "x"}]}]}, ["x on"]),
        ("gemini-cli 17831", {"enabled": ["x"], "notifications": True}, []),
        ("gemini-cli 14225", {"disabled": ["x"], "AfterTool": [{"hooks": [{"command": "x"}]}]}, ["x off"]),
        ("gemini-cli 14225", {"enabled": False, "AfterTool": [{"hooks": [{"command": "x"}]}]}, ["x off"]),
        ("gsd 1295", {"PreToolUse": [{"hooks": [{"command": "x"}]}]}, ["x on"]),
        ("aim 530", {"BeforeUserMessage": [{"hooks": [{"command": "x"}]}]}, ["Unknown event 'BeforeUserMessage'."]),
        (
            "gemini-cli 13155",
            {"AfterTool": [{"hooks": [{"type": "Command", "command": "x"}]}]},
            ["PostToolUse: hooks of type 'Command' are not supported."],
        ),
    ],
)
def test_files_of_public_reports(report: str, tree: dict[str, Any], hooks: list[str]) -> None:
    made = hooks_of({"hooks": tree}, source("gemini"))
    assert [hook.fault or f"{hook.command} {'off' if hook.disabled else 'on'}" for hook in made] == hooks, report


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "BeforeModel"])
def test_a_matcher_where_there_is_nothing_to_match_is_ignored(event: str) -> None:
    [hook] = hooks_of({"hooks": {event: [{"matcher": "Bash", "hooks": [{"command": "x"}]}]}}, source())
    assert matches(hook, HookMoment(hook.event))


@pytest.mark.parametrize(
    ("condition", "commands", "runs"),
    [
        ("Bash(git *)", ["git push"], True),
        ("Bash(git:*)", ["git push"], True),
        ("Bash(git *)", ["ls", "git push"], True),  # of a line, any command
        ("Bash(git *)", ["ls"], False),
        ("Bash", ["ls"], True),
        ("Edit(*.py)", ["git push"], False),
        ("not ( understood", ["ls"], True),
    ],
)
def test_conditions(condition: str, commands: list[str], runs: bool) -> None:
    hook = one({"command": "x", "if": condition})
    moment = HookMoment("PreToolUse", call=CallFacts("run_shell_command", {}, "c", commands=commands))
    assert matches(hook, moment) == runs


def test_matchers_of_other_events_are_about_their_source() -> None:
    [hook] = hooks_of({"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [{"command": "x"}]}]}}, source())
    assert matches(hook, HookMoment("SessionStart", subject="startup"))
    assert not matches(hook, HookMoment("SessionStart", subject="resume"))


@pytest.mark.parametrize(
    ("tool", "arguments", "dialect", "name", "told"),
    [
        ("write_file", {"path": "a.py", "content": "x"}, "claude", "Write", {"file_path": "/w/a.py", "content": "x"}),
        (
            "edit_file",
            {"path": "a.py", "old_text": "a", "new_text": "b", "replace_all": True},
            "claude",
            "Edit",
            {"file_path": "/w/a.py", "old_string": "a", "new_string": "b", "replace_all": True},
        ),
        (
            "edit_file",
            {"path": "a.py", "edits": [{"old_text": "a", "new_text": "b"}]},
            "claude",
            "MultiEdit",
            {"file_path": "/w/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
        ),
        (
            "run_shell_command",
            {"command": "ls", "description": "d", "background": True, "network": True},
            "claude",
            "Bash",
            {"command": "ls", "description": "d", "run_in_background": True},
        ),
        (
            "read_file",
            {"path": "/w/a.py", "start_line": 5, "end_line": 9},
            "claude",
            "Read",
            {"file_path": "/w/a.py", "offset": 5, "limit": 5},
        ),
        (
            "write_file",
            {"path": "a.py", "content": "x"},
            "gemini",
            "write_file",
            {"file_path": "/w/a.py", "content": "x"},
        ),
        ("edit_file", {"path": "a", "old_text": "a"}, "gemini", "replace", {"file_path": "/w/a", "old_string": "a"}),
        ("mcp__s__t", {"path": 5, "x": [1]}, "claude", "mcp__s__t", {"path": 5, "x": [1]}),
        ("mcp__s__t", {"command": "a", "file_path": "b"}, "gemini", "mcp__s__t", {"command": "a", "file_path": "b"}),
    ],
)
def test_a_call_in_a_hooks_words(
    tool: str, arguments: dict[str, Any], dialect: Dialect, name: str, told: dict[str, Any]
) -> None:
    [call] = call_inputs(CallFacts(tool, arguments, "c"), dialect, ROOT)
    assert (call.tool_name, dict(call.tool_input)) == (name, told)
    back = our_arguments(tool, arguments, call.tool_input, dialect)
    assert {**back, "path": None} == {**arguments, "path": None}
    assert "path" not in arguments or back["path"] in (arguments["path"], f"/w/{arguments['path']}")


def test_a_hook_hears_of_every_file_of_a_patch() -> None:
    facts = CallFacts("apply_patch", {"patch": "…"}, "c", ["/w/b", "/w/a"])
    calls = call_inputs(facts, "claude", ROOT)
    assert [call.tool_input["file_path"] for call in calls] == ["/w/a", "/w/b"]
    assert {call.tool_name for call in calls} == {"Edit"}


def test_a_changed_input_in_our_words() -> None:
    assert our_arguments("mcp__s__t", {"command": "a"}, {"command": "b"}, "gemini") == {"command": "b"}
    before = {"command": "ls", "path": "sub", "network": True, "description": "d"}
    assert our_arguments("run_shell_command", before, {"command": "ls -l"}, "claude") == {
        "command": "ls -l",
        "path": "sub",
        "network": True,
    }
    assert our_arguments("run_shell_command", before, {"command": "ls -l"}, "gemini") == {**before, "command": "ls -l"}
