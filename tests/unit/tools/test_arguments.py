"""Arguments under other agents' names, and arguments a tool does not have."""

from typing import Any

import pytest

from amanu.core.argument_aliases import normalize_arguments
from amanu.core.tool import Params, tool_schema
from amanu.tools.code.list_symbols import ListSymbolsParams
from amanu.tools.edits.edit_file import EditFileParams
from amanu.tools.edits.write_file import WriteFileParams
from amanu.tools.files.glob import GlobParams
from amanu.tools.files.read_file import ReadFileParams
from amanu.tools.files.read_many_files import ReadManyFilesParams
from amanu.tools.shell.command_params import RunShellCommandParams

CASES: dict[str, tuple[type[Params], dict[str, Any], dict[str, Any], str]] = {
    "our own": (ReadFileParams, {"path": "a", "start_line": 2}, {"path": "a", "start_line": 2}, ""),
    "Claude Code's edit": (
        EditFileParams,
        {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
        {"path": "a", "old_text": "x", "new_text": "y", "replace_all": True},
        "",
    ),
    "edits within an edit": (
        EditFileParams,
        {"path": "a", "edits": [{"old_str": "x", "new_str": "y", "why": 1}]},
        {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]},
        "why",
    ),
    "Gemini CLI's": (ReadFileParams, {"absolute_path": "/a"}, {"path": "/a"}, ""),
    "Codex's": (RunShellCommandParams, {"cmd": "ls", "workdir": "b"}, {"command": "ls", "path": "b"}, ""),
    "Cline's": (WriteFileParams, {"path": "a", "file_text": "x"}, {"path": "a", "content": "x"}, ""),
    "several files": (ReadManyFilesParams, {"file_paths": ["a"]}, {"paths": ["a"]}, ""),
    "Gemini CLI's background": (
        RunShellCommandParams,
        {"command": "x", "is_background": True},
        {"command": "x", "background": True},
        "",
    ),
    "both, the same": (ReadFileParams, {"path": "a", "file_path": "a"}, {"path": "a"}, ""),
    "a name that is the tool's own": (ListSymbolsParams, {"query": "x"}, {"query": "x"}, ""),
    "the same name elsewhere": (GlobParams, {"query": "*.py"}, {"pattern": "*.py"}, ""),
    "unknown": (ReadFileParams, {"path": "a", "encoding": "utf-8", "limit": 3}, {"path": "a"}, "encoding, limit"),
    "of the wrong kind": (EditFileParams, {"path": 7, "edits": "x"}, {"path": 7, "edits": "x"}, ""),
}


@pytest.mark.parametrize(("params", "written", "expected", "ignored"), CASES.values(), ids=CASES)
def test_arguments_are_understood(
    params: type[Params], written: dict[str, Any], expected: dict[str, Any], ignored: str
) -> None:
    found = normalize_arguments(params, tool_schema(params), written)
    assert found.arguments == expected
    assert bool(found.note) == bool(ignored)
    assert f"Ignored unknown arguments: {ignored}. Available: " in found.note or not ignored
    assert normalize_arguments(params, tool_schema(params), found.arguments).arguments == expected


@pytest.mark.parametrize(
    ("params", "extra"),
    [
        (WriteFileParams, {"append": True}),
        (WriteFileParams, {"insert_line": 0}),
        (WriteFileParams, {"is_background": True}),
        (RunShellCommandParams, {"dry_run": True}),
    ],
)
def test_what_would_be_another_call_without_it_is_refused(params: type[Params], extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"unknown argument {next(iter(extra))}"):
        normalize_arguments(params, tool_schema(params), extra)
    off = dict.fromkeys(extra, False)
    assert normalize_arguments(params, tool_schema(params), off).arguments == {}


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="path and file_path are the same argument"):
        normalize_arguments(ReadFileParams, tool_schema(ReadFileParams), {"path": "a", "file_path": "b"})
