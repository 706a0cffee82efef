"""Renames the arguments of a call to the names its tool uses.

Models are trained on other agents' tools and sometimes write `file_path` or `old_string`. Unmistakable names are
accepted; unknown arguments are ignored, and the model is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, JsonValue

from amanu.core.argument_shapes import as_meant

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "path": (
        *("file_path", "filePath", "filepath", "absolute_path", "relative_path", "target_file", "filename", "file"),
        *("dir_path", "directory", "dir", "folder", "workdir", "cwd", "relative_workspace_path"),
    ),
    "paths": ("file_paths", "filePaths", "absolute_paths", "files", "include"),
    "start_line": ("startLine", "start_line_one_indexed"),
    "end_line": ("endLine", "end_line_one_indexed_inclusive"),
    "new_path": ("destination", "destination_path", "target_path", "new_file_path"),
    "old_text": ("old_string", "old_str", "oldString", "oldText"),
    "new_text": ("new_string", "new_str", "newString", "newText"),
    "content": ("file_text", "contents", "file_content"),
    "edits": ("replacements", "edit"),
    "patch": ("patch_text", "patchText", "input"),
    "command": ("cmd",),
    "background": ("is_background", "isBackground", "run_in_background"),
    "job": ("bash_id", "shell_id", "task_id", "session_id"),
    "pattern": ("query", "regex"),
    "include": ("include_pattern", "includePattern", "file_pattern", "glob"),
    "limit": ("head_limit", "max_results", "maxResults"),
    "ignore_case": ("case_insensitive",),
    "query": ("search_term",),
    "explanation": ("instruction", "instructions", "description"),
    "agent": ("subagent_type", "agent_name"),
    "name": ("skill", "skill_name"),
    "multi_select": ("multiSelect",),
    "summary": ("result",),
    "todos": ("plan", "todoList"),
    "text": ("content", "description", "step", "title"),
}
"""Our name for an argument → its names in Gemini CLI, Claude Code, Codex, OpenCode, Cursor and Cline."""
_CHANGES_MEANING = ("append", "dry_run", "dryRun", "insert_line", "is_background", "run_in_background", "background")
"""Arguments that cannot be ignored: without them the call would do something else, say overwrite a file instead of
appending to it."""


@dataclass(frozen=True)
class NormalizedArguments:
    """The arguments under the tool's own names, and a note for the model about ignored ones; "" if there are none."""

    arguments: dict[str, JsonValue]
    note: str = ""


def normalize_arguments(
    params: type[BaseModel], schema: Mapping[str, Any], written: Mapping[str, JsonValue]
) -> NormalizedArguments:
    """The arguments the model wrote, under the names of `params` and in the shapes of `schema`, which is the one of
    `params`. Raises `ValueError` when an argument and its alias have different values, or when an unknown argument
    cannot be ignored."""
    ignored: list[str] = []
    arguments = _rename(params, schema, written, ignored)
    if not ignored:
        return NormalizedArguments(arguments)
    names = ", ".join(dict.fromkeys(ignored))
    return NormalizedArguments(arguments, f"Ignored unknown arguments: {names}. Available: {_available(params)}.")


def _rename(
    params: type[BaseModel], schema: Mapping[str, Any], written: Mapping[str, JsonValue], ignored: list[str]
) -> dict[str, JsonValue]:
    fields = params.model_fields
    arguments = _rename_top_level(params, written, ignored)
    for name, value in arguments.items():
        value = arguments[name] = as_meant(value, schema.get("properties", {}).get(name, {}))
        item_model = _item_model(fields[name].annotation)
        if item_model is not None and isinstance(value, list):
            arguments[name] = [
                _rename(item_model, {}, item, ignored) if isinstance(item, dict) else item for item in value
            ]
    return arguments


def _rename_top_level(
    params: type[BaseModel], written: Mapping[str, JsonValue], ignored: list[str]
) -> dict[str, JsonValue]:
    fields = params.model_fields
    name_of_alias = {alias: name for name, aliases in _ALIASES.items() if name in fields for alias in aliases}
    arguments = {name: value for name, value in written.items() if name in fields}
    for alias, value in written.items():
        if alias in fields:
            continue
        name = name_of_alias.get(alias)
        if name is not None:
            if arguments.setdefault(name, value) != value:
                raise ValueError(
                    f"{name} and {alias} are the same argument but have different values; send only {name}"
                )
        elif alias in _CHANGES_MEANING and value is not None and value is not False:
            raise ValueError(
                f"unknown argument {alias}, and ignoring it would change what the call does; "
                f"available: {_available(params)}"
            )
        else:
            ignored.append(alias)
    return arguments


def _item_model(annotation: Any) -> type[BaseModel] | None:
    """`Model`, for an annotation `list[Model]` or `list[Model] | None`; otherwise None."""
    for part in (annotation, *get_args(annotation)):
        for argument in get_args(part):
            if isinstance(argument, type) and issubclass(argument, BaseModel):
                return argument
    return None


def _available(params: type[BaseModel]) -> str:
    return ", ".join(params.model_fields)
