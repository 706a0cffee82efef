"""Locations that an editor reported, as the model may see them: `path:line: text`."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from amanu.core.tool import CallContext, Subject, ToolError
from amanu.workspace.text_file import split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import Location

MAX_LINE = 200
"""Characters of a line: enough to tell a use from a definition."""

OUTSIDE = "outside the workspace"
NEEDS_APPROVAL = "not quoted: reading this file needs the user's approval"


async def resolve_paths(workspace: Workspace, paths: Iterable[str]) -> dict[str, Path | None]:
    """Path as the editor named it → resolved path; None outside the roots."""
    return await asyncio.to_thread(_resolve_all, workspace, dict.fromkeys(paths))


async def quote_locations(workspace: Workspace, call: CallContext, tool: str, locations: list[Location]) -> list[str]:
    """One line per location. Locations outside the roots, or in files that the model may not read without approval,
    are named but not quoted. The text comes from the overlay, not from the client."""
    inside = await resolve_paths(workspace, (location.path for location in locations))
    hidden = reasons_not_to_quote(workspace, call, tool, inside)
    texts = {path: hidden.get(path) or await _lines(workspace, resolved_path) for path, resolved_path in inside.items()}
    out: list[str] = []
    for location in locations:
        lines, name = texts[location.path], display_path(workspace, location.path, inside)
        if isinstance(lines, str):
            out.append(f"{name}:{location.lines.first} ({lines})")
            continue
        text = lines[location.lines.start].strip() if location.lines.start < len(lines) else ""
        out.append(f"{name}:{location.lines.first}: {text[:MAX_LINE]}".rstrip())
    return out


def display_path(workspace: Workspace, path: str, inside: Mapping[str, Path | None]) -> str:
    """How the model sees a path that an editor named; `inside` as from `resolve_paths`."""
    resolved_path = inside[path]
    return " ".join(path.split()) if resolved_path is None else workspace.display_path(resolved_path)


def reasons_not_to_quote(
    workspace: Workspace, call: CallContext, tool: str, inside: Mapping[str, Path | None]
) -> dict[str, str]:
    """Path → why the file's text must not be shown to the model; paths that may be quoted are left out."""
    subjects = {
        path: Subject(tool, "read", workspace.relative(resolved_path))
        for path, resolved_path in inside.items()
        if resolved_path
    }
    allowed = set(call.allowed(subjects.values()))
    refusals = {path: NEEDS_APPROVAL for path, subject in subjects.items() if subject not in allowed}
    return refusals | {path: OUTSIDE for path, resolved_path in inside.items() if resolved_path is None}


def _resolve_all(workspace: Workspace, paths: Iterable[str]) -> dict[str, Path | None]:
    resolved_paths: dict[str, Path | None] = {}
    for path in paths:
        try:
            resolved_paths[path] = workspace.resolve(path)
        except ToolError:
            resolved_paths[path] = None
    return resolved_paths


async def _lines(workspace: Workspace, path: Path | None) -> list[str] | str:
    if path is None:
        return OUTSIDE
    try:
        return list(split_lines((await workspace.read(path)).text))
    except ToolError:
        return "cannot be read"
