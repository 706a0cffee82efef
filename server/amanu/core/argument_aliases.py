"""The arguments of a call, under the names its tool has for them.

Models are trained on other agents' tools, and write `file_path` or `old_string` now and then. What is unmistakable is
taken; what a tool does not have is left out, and the model is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, JsonValue

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "path": (
        *("file_path", "filePath", "filepath", "absolute_path", "relative_path", "target_file", "filename", "file"),
        *("dir_path", "directory", "dir", "folder", "workdir", "cwd"),
    ),
    "paths": ("file_paths", "absolute_paths", "files"),
    "new_path": ("destination", "destination_path", "target_path", "new_file_path"),
    "old_text": ("old_string", "old_str", "oldString", "oldText"),
    "new_text": ("new_string", "new_str", "newString", "newText"),
    "content": ("file_text", "contents", "file_content"),
    "patch": ("patch_text", "patchText", "input"),
    "command": ("cmd",),
    "pattern": ("query", "regex"),
    "include": ("include_pattern", "glob"),
    "ignore_case": ("case_insensitive",),
    "explanation": ("instruction", "description"),
    "summary": ("result",),
}
"""Our name for an argument → the names it has in Gemini CLI, Claude Code, Codex, OpenCode, Cursor and Cline."""
_WEIGHTY = ("append", "dry_run", "dryRun", "insert_line", "is_background", "run_in_background", "background")
"""Without these the call would do something else: a file overwritten, where lines were to be added."""


@dataclass(frozen=True)
class NormalizedArguments:
    """The arguments under the tool's own names, and what the model is told of those left out; "" for nothing."""

    arguments: dict[str, JsonValue]
    note: str = ""


def normalize_arguments(params: type[BaseModel], written: Mapping[str, JsonValue]) -> NormalizedArguments:
    """Raises `ValueError` where an argument and another name of it say different things, and where one that the tool
    does not have cannot be left out."""
    left_out: list[str] = []
    arguments = _named(params, written, left_out)
    if not left_out:
        return NormalizedArguments(arguments)
    ignored = ", ".join(dict.fromkeys(left_out))
    return NormalizedArguments(
        arguments, f"Ignored, for the tool has no such arguments: {ignored}. It has: {_all(params)}."
    )


def _named(params: type[BaseModel], written: Mapping[str, JsonValue], left_out: list[str]) -> dict[str, JsonValue]:
    fields = params.model_fields
    ours = {alias: name for name, aliases in _ALIASES.items() if name in fields for alias in aliases}
    arguments = {name: value for name, value in written.items() if name in fields}
    for name, value in written.items():
        if name in fields:
            continue
        if (our_name := ours.get(name)) is None:
            if name in _WEIGHTY and value is not None and value is not False:
                raise ValueError(
                    f"there is no argument {name}, and without it this would be another call; there is {_all(params)}"
                )
            left_out.append(name)
        elif arguments.setdefault(our_name, value) != value:
            raise ValueError(
                f"{our_name} and {name} are the same argument, but say different things; give {our_name} only"
            )
    for name, value in arguments.items():
        part = _part(fields[name].annotation)
        if part is not None and isinstance(value, list):
            arguments[name] = [_named(part, item, left_out) if isinstance(item, dict) else item for item in value]
    return arguments


def _part(annotation: Any) -> type[BaseModel] | None:
    """The model of `list[Model]`, or of `list[Model] | None`."""
    for part in (annotation, *get_args(annotation)):
        for argument in get_args(part):
            if isinstance(argument, type) and issubclass(argument, BaseModel):
                return argument
    return None


def _all(params: type[BaseModel]) -> str:
    return ", ".join(params.model_fields)
