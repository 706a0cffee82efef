"""Calls of other agents' tools, with their own names and arguments, as calls of ours."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from amanu.core.argument_aliases import normalize_arguments
from amanu.core.foreign_calls import FOREIGN_NAMES, as_ours, our_name
from amanu.core.tool import Params, tool_schema
from amanu.tools.edits.apply_patch import ApplyPatchParams
from amanu.tools.edits.edit_file import EditFileParams
from amanu.tools.edits.write_file import WriteFileParams
from amanu.tools.files.glob import GlobParams
from amanu.tools.files.grep import GrepParams
from amanu.tools.files.list_directory import ListDirectoryParams
from amanu.tools.files.read_file import ReadFileParams
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.read_command import ReadCommandParams
from amanu.tools.shell.stop_command import StopCommandParams
from amanu.tools.web.web_fetch import WebFetchParams
from amanu.tools.web.web_search import WebSearchParams
from amanu.tools.write_todos import WriteTodosParams

PARAMS: Mapping[str, type[Params]] = {
    "read_file": ReadFileParams,
    "list_directory": ListDirectoryParams,
    "glob": GlobParams,
    "grep": GrepParams,
    "edit_file": EditFileParams,
    "write_file": WriteFileParams,
    "apply_patch": ApplyPatchParams,
    "run_shell_command": RunShellCommandParams,
    "read_command": ReadCommandParams,
    "stop_command": StopCommandParams,
    "web_fetch": WebFetchParams,
    "web_search": WebSearchParams,
    "write_todos": WriteTodosParams,
}
PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch\n"
MOVES = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n *** Update File: c.py\n-x\n+y\n"
    "*** Delete File: /w/d.py\n*** End Patch\n"
)

CASES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    # Claude Code
    ("Read", {"file_path": "/w/a.py"}, "read_file", {"path": "/w/a.py"}),
    (
        "Read",
        {"file_path": "a", "offset": 100, "limit": 50},
        "read_file",
        {"path": "a", "start_line": 100, "end_line": 149},
    ),
    (
        "Edit",
        {"file_path": "a", "old_string": "x", "new_string": "y"},
        "edit_file",
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    (
        "MultiEdit",
        {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]},
        "edit_file",
        {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]},
    ),
    ("Write", {"file_path": "a", "content": "x"}, "write_file", {"path": "a", "content": "x"}),
    (
        "Bash",
        {"command": "ls", "description": "List", "timeout": 120000, "run_in_background": True},
        "run_shell_command",
        {"command": "ls", "description": "List", "timeout_s": 120, "background": True},
    ),
    ("BashOutput", {"bash_id": "job-1"}, "read_command", {"job": "job-1"}),
    ("KillShell", {"shell_id": "job-1"}, "stop_command", {"job": "job-1"}),
    ("LS", {"path": "/w"}, "list_directory", {"path": "/w"}),
    ("Glob", {"pattern": "**/*.py"}, "glob", {"pattern": "**/*.py"}),
    (
        "Grep",
        {
            "pattern": "x",
            "glob": "*.py",
            "-i": True,
            "-n": True,
            "-A": 2,
            "-B": 3,
            "output_mode": "content",
            "head_limit": 9,
        },
        "grep",
        {"pattern": "x", "include": "*.py", "ignore_case": True, "context": 3, "limit": 9},
    ),
    (
        "WebFetch",
        {"url": "https://a.example", "prompt": "What?"},
        "web_fetch",
        {"url": "https://a.example", "prompt": "What?"},
    ),
    (
        "TodoWrite",
        {"todos": [{"content": "x", "status": "completed"}]},
        "write_todos",
        {"todos": [{"text": "x", "status": "completed"}]},
    ),
    # Anthropic's editor, and OpenHands'
    (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "a", "view_range": [3, 9]},
        "read_file",
        {"path": "a", "start_line": 3, "end_line": 9},
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "a", "view_range": [3, -1]},
        "read_file",
        {"path": "a", "start_line": 3},
    ),
    (
        "str_replace_editor",
        {"command": "create", "path": "a", "file_text": "x"},
        "write_file",
        {"path": "a", "content": "x"},
    ),
    (
        "str_replace_editor",
        {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
        "edit_file",
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    # Gemini CLI
    (
        "replace",
        {"file_path": "a", "old_string": "x", "new_string": "y", "instruction": "Why"},
        "edit_file",
        {"path": "a", "old_text": "x", "new_text": "y", "explanation": "Why"},
    ),
    ("list_directory", {"dir_path": "src"}, "list_directory", {"path": "src"}),
    ("search_file_content", {"pattern": "x", "include": "*.ts"}, "grep", {"pattern": "x", "include": "*.ts"}),
    (
        "run_shell_command",
        {"command": "npm start", "is_background": True, "dir_path": "web"},
        "run_shell_command",
        {"command": "npm start", "background": True, "path": "web"},
    ),
    (
        "web_fetch",
        {"prompt": "Summarise https://a.example/b."},
        "web_fetch",
        {"prompt": "Summarise https://a.example/b.", "url": "https://a.example/b"},
    ),
    ("google_web_search", {"query": "mango"}, "web_search", {"query": "mango"}),
    # Codex
    (
        "shell",
        {"command": ["bash", "-lc", "cd a && ls"], "workdir": "b"},
        "run_shell_command",
        {"command": "cd a && ls", "path": "b"},
    ),
    (
        "shell",
        {"command": ["rg", "a b"], "timeout_ms": 9000},
        "run_shell_command",
        {"command": "rg 'a b'", "timeout_s": 9},
    ),
    ("exec_command", {"cmd": "ls", "workdir": "b"}, "run_shell_command", {"command": "ls", "path": "b"}),
    (
        "shell_command",
        {"command": "gh pr view", "sandbox_permissions": "require_escalated", "justification": "It needs your key."},
        "run_shell_command",
        {"command": "gh pr view", "outside": True, "reason": "It needs your key."},
    ),
    ("shell", {"command": ["apply_patch", PATCH]}, "apply_patch", {"patch": PATCH}),
    ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF\n"]}, "apply_patch", {"patch": PATCH}),
    ("run_shell_command", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF"}, "apply_patch", {"patch": PATCH}),
    ("run_shell_command", {"command": f"apply_patch <<PATCH\n{PATCH}PATCH\n"}, "apply_patch", {"patch": PATCH}),
    ("run_shell_command", {"command": f'apply_patch "{PATCH}"'}, "apply_patch", {"patch": PATCH}),
    ("list_dir", {"dir_path": "src"}, "list_directory", {"path": "src"}),
    (
        "update_plan",
        {"plan": [{"step": "x", "status": "pending"}]},
        "write_todos",
        {"todos": [{"text": "x", "status": "pending"}]},
    ),
    ("view_image", {"path": "a.png"}, "read_file", {"path": "a.png"}),
    # OpenCode
    ("read", {"filePath": "a", "offset": 0, "limit": 10}, "read_file", {"path": "a", "start_line": 1, "end_line": 10}),
    (
        "edit",
        {"filePath": "a", "oldString": "x", "newString": "y"},
        "edit_file",
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    # Cursor
    (
        "read_file",
        {"target_file": "a", "start_line_one_indexed": 3, "end_line_one_indexed_inclusive": 9},
        "read_file",
        {"path": "a", "start_line": 3, "end_line": 9},
    ),
    (
        "run_terminal_cmd",
        {"command": "ls", "is_background": False},
        "run_shell_command",
        {"command": "ls", "background": False},
    ),
    ("grep_search", {"query": "x", "case_sensitive": False}, "grep", {"pattern": "x", "ignore_case": True}),
    # Cline
    ("list_files", {"path": "src", "recursive": True}, "glob", {"path": "src", "pattern": "**/*"}),
    (
        "search_files",
        {"path": "a", "regex": "x", "file_pattern": "*.ts"},
        "grep",
        {"path": "a", "pattern": "x", "include": "*.ts"},
    ),
    # VS Code
    (
        "grep_search",
        {"query": "a(b", "isRegexp": False, "includePattern": "*.c"},
        "grep",
        {"pattern": "a(b", "fixed": True, "include": "*.c"},
    ),
    (
        "replace_string_in_file",
        {"filePath": "a", "oldString": "x", "newString": "y"},
        "edit_file",
        {"path": "a", "old_text": "x", "new_text": "y"},
    ),
    (
        "read_file",
        {"filePath": "a", "startLine": 1, "endLine": 4},
        "read_file",
        {"path": "a", "start_line": 1, "end_line": 4},
    ),
    # a patch where the command would run
    (
        "shell",
        {"command": ["apply_patch", PATCH], "workdir": "sub/dir"},
        "apply_patch",
        {"patch": PATCH.replace("a.py", "sub/dir/a.py")},
    ),
    (
        "run_shell_command",
        {"command": f"apply_patch <<EOF\n{MOVES}EOF", "path": "sub"},
        "apply_patch",
        {"patch": MOVES.replace("a.py", "sub/a.py").replace("b.py", "sub/b.py")},
    ),
    ("bash", {"command": "ls", "timeout": 10**400}, "run_shell_command", {"command": "ls", "timeout_s": 86_400}),
    # scripts, and shells that do something else with the line
    ("shell", {"command": ["./deploy.sh", "-c", "prod"]}, "run_shell_command", {"command": "./deploy.sh -c prod"}),
    ("shell", {"command": ["bash", "-nc", "rm x"]}, "run_shell_command", {"command": "bash -nc 'rm x'"}),
    ("shell", {"command": ["pwsh", "-c", "ls | % {}"]}, "run_shell_command", {"command": "pwsh -c 'ls | % {}'"}),
    ("shell", {"command": ["/usr/bin/zsh", "-lc", "ls"]}, "run_shell_command", {"command": "ls"}),
    # ours, as they are
    ("read_file", {"path": "a", "start_line": 3}, "read_file", {"path": "a", "start_line": 3}),
    (
        "run_shell_command",
        {"command": "echo apply_patch <<EOF\nEOF"},
        "run_shell_command",
        {"command": "echo apply_patch <<EOF\nEOF"},
    ),
    (
        "run_shell_command",
        {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\nrm -r b"},
        "run_shell_command",
        {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\nrm -r b"},
    ),
]


@pytest.mark.parametrize(("name", "written", "tool", "expected"), CASES)
def test_a_foreign_call_is_read_as_one_of_ours(
    name: str, written: dict[str, Any], tool: str, expected: dict[str, Any]
) -> None:
    found = as_ours(name, written, PARAMS)
    params = PARAMS[found.tool]
    read = normalize_arguments(params, tool_schema(params), found.arguments)
    assert (found.tool, read.arguments, read.note) == (tool, expected, "")
    params.model_validate(read.arguments)


@pytest.mark.parametrize(
    ("name", "written", "tools", "expected"),
    [
        ("Bash", {"command": "ls"}, {"read_file"}, "Bash"),  # a sub-agent that only reads
        ("Read", {"path": "a"}, {"read_file", "Read"}, "Read"),  # a tool that has the name
        (
            "run_shell_command",
            {"command": f"apply_patch <<EOF\n{PATCH}EOF"},
            {"run_shell_command"},
            "run_shell_command",
        ),
        ("codebase_search", {"query": "x"}, {"grep"}, "codebase_search"),
    ],
)
def test_only_a_tool_that_is_there_is_meant(
    name: str, written: dict[str, Any], tools: Collection[str], expected: str
) -> None:
    assert as_ours(name, written, tools).tool == expected


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 3}, "no command 'insert' here"),
        ("web_fetch", {"prompt": "Compare https://a.example and https://b.example"}, "one url at a time"),
    ],
)
def test_what_no_tool_of_ours_does_says_what_does(name: str, written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_ours(name, written, PARAMS)


def test_no_name_stands_for_two_tools() -> None:
    others = [other for names in FOREIGN_NAMES.values() for other in names]
    assert len(others) == len(set(others)) and not set(others) & set(FOREIGN_NAMES)
    assert {our_name(other, FOREIGN_NAMES) for other in others} == set(FOREIGN_NAMES)
