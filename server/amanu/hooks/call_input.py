"""Translates a tool call into the words of the hook that is asked about it, and a changed input back into ours. Claude
Code's hooks read `tool_input.file_path`, and so do Gemini CLI's, with other names around it; paths are absolute."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from amanu.hooks.matching import TOOL_NAMES, WIDER
from amanu.hooks.model import CallFacts, Dialect

Arguments = Mapping[str, JsonValue]

_SAME = ("command", "description", "content", "pattern", "url", "prompt", "query", "todos", "explanation")
_CLAUDE: dict[str, dict[str, str]] = {
    # our tool → {our argument: Claude Code's}; arguments of `_SAME` have the same name
    "read_file": {"path": "file_path"},
    "list_directory": {"path": "path"},
    "glob": {"path": "path"},
    "grep": {"path": "path", "include": "glob", "ignore_case": "-i", "context": "-C", "limit": "head_limit"},
    "edit_file": {
        "path": "file_path",
        "old_text": "old_string",
        "new_text": "new_string",
        "replace_all": "replace_all",
        "edits": "edits",
    },
    "rewrite_lines": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "run_shell_command": {"background": "run_in_background"},
    "run_agent": {"agent": "subagent_type"},
}
_GEMINI: dict[str, dict[str, str]] = {
    **_CLAUDE,
    "list_directory": {"path": "dir_path"},
    "glob": {"path": "dir_path"},
    "grep": {"path": "dir_path", "include": "include"},
    "run_shell_command": {"background": "is_background", "path": "dir_path"},
}
_PATHS = frozenset({"path"})
_EDITED = {"old_text": "old_string", "new_text": "new_string", "replace_all": "replace_all"}


@dataclass(frozen=True)
class ToolCallInput:
    """A call as a hook is told about it."""

    tool_name: str
    tool_input: Mapping[str, JsonValue]


def call_inputs(call: CallFacts, dialect: Dialect, root: Path) -> list[ToolCallInput]:
    """The call as a hook of that dialect is told of it: once or, if it changes several files, once for each, so that a
    hook that looks at `file_path` sees all of them. Relative paths in its arguments are below `root`."""
    tool, arguments = call.tool, call.arguments
    name = tool_name(tool, dialect)
    if tool == "edit_file" and arguments.get("edits") and dialect == "claude":
        name = "MultiEdit"
    words = _words(tool, dialect)
    if words is not None or tool not in WIDER:
        return [ToolCallInput(name, _told(arguments, words or {}, root, known=words is not None))]
    own = _told(arguments, {}, root, known=False)
    patch = own.get("patch")
    if patch is not None:
        own = {**own, "command": patch}
    return [ToolCallInput(name, {**own, "file_path": path}) for path in sorted(call.writes)] or [
        ToolCallInput(name, own)
    ]


def tool_name(tool: str, dialect: Dialect) -> str:
    """The name of a tool for a hook of that dialect."""
    claude, gemini = TOOL_NAMES.get(tool, ((), ()))
    return next(iter(claude if dialect == "claude" else gemini), tool)


def our_arguments(tool: str, before: Arguments, changed: Arguments, dialect: Dialect) -> dict[str, JsonValue]:
    """The arguments of a call whose input a hook changed. What the hook's words cannot express stays as it was.
    Gemini's hooks answer with only what they change, Claude's with the whole input."""
    words = _words(tool, dialect)
    if words is None:
        added = ("file_path", "command") if tool in WIDER else ()  # by `call_inputs`
        own = {name: value for name, value in changed.items() if name not in added}
        return {**before, **own}
    back = {theirs: ours for ours, theirs in words.items()} | {name: name for name in _SAME}
    sayable = set(back.values())
    kept = (
        dict(before) if dialect == "gemini" else {name: value for name, value in before.items() if name not in sayable}
    )
    if tool == "read_file":
        kept = {name: value for name, value in kept.items() if name not in ("start_line", "end_line")}
        kept |= _lines(changed, before)
    updates = {back[name]: value for name, value in changed.items() if name in back}
    if isinstance(updates.get("edits"), list):
        updates["edits"] = [
            _renamed(edit, {theirs: ours for ours, theirs in _EDITED.items()}) for edit in _list(updates)
        ]
    return {**kept, **updates}


def _words(tool: str, dialect: Dialect) -> dict[str, str] | None:
    """Our argument → theirs; None for a tool whose arguments are unknown to them."""
    if tool in ("web_fetch", "web_search", "write_todos", "activate_skill"):
        return {}
    return (_CLAUDE if dialect == "claude" else _GEMINI).get(tool)


def _told(arguments: Arguments, words: Mapping[str, str], root: Path, *, known: bool) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        if name in _PATHS and isinstance(value, str):
            value = str(root / value)
        if name == "edits" and isinstance(value, list):
            value = [_renamed(edit, _EDITED) for edit in value]
        if name in words:
            told[words[name]] = value
        elif not known or name in _SAME:
            told[name] = value
    if "start_line" in arguments and known:
        first = cast("int", arguments["start_line"] or 1)
        told["offset"] = first
        if (last := arguments.get("end_line")) is not None:
            told["limit"] = cast("int", last) - first + 1
    if known and arguments.get("timeout_s") is not None:
        told["timeout"] = cast("float", arguments["timeout_s"]) * 1000
    return told


def _lines(changed: Arguments, before: Arguments) -> dict[str, JsonValue]:
    """Claude's offset and limit, as our first and last line."""
    first, count = changed.get("offset"), changed.get("limit")
    if first is None and count is None:
        return {}
    if not isinstance(first, int):
        first = cast("int", before.get("start_line") or 1)
    return {"start_line": first, **({"end_line": first + count - 1} if isinstance(count, int) else {})}


def _renamed(edit: JsonValue, words: Mapping[str, str]) -> JsonValue:
    return {words.get(name, name): value for name, value in edit.items()} if isinstance(edit, dict) else edit


def _list(updates: Arguments) -> list[JsonValue]:
    return cast("list[JsonValue]", updates["edits"])
