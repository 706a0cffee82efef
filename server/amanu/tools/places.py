"""Places in files, as a model may see them: `path:line: text`."""

from amanu.tools.base import CallContext, Subject, ToolError
from amanu.workspace.files import split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import Location

TEXT = 200
"""Characters of a line: enough to tell a use from a definition."""


OUTSIDE = "outside the workspace"


async def quoted(workspace: Workspace, call: CallContext, tool: str, locations: list[Location]) -> list[str]:
    """A line for each. What lies outside the roots, and what policy would ask about before it is read, is named but
    not quoted. The text is the overlay's, not what the client says it is."""
    texts: dict[str, list[str] | str] = {}
    out: list[str] = []
    for location in locations:
        if location.path not in texts:
            texts[location.path] = await _lines(workspace, call, tool, location.path)
        lines = texts[location.path]
        if isinstance(lines, str):
            out.append(f"{shown(workspace, location.path)}:{location.start_line} ({lines})")
            continue
        text = lines[location.start_line - 1].strip() if 0 < location.start_line <= len(lines) else ""
        out.append(f"{shown(workspace, location.path)}:{location.start_line}: {text[:TEXT]}".rstrip())
    return out


def shown(workspace: Workspace, path: str) -> str:
    """How the model is told of a path that an editor named."""
    try:
        return workspace.shown(workspace.resolve(path))
    except ToolError:
        return " ".join(path.split())


def readable(workspace: Workspace, call: CallContext, tool: str, path: str) -> str | None:
    """None when the model may be told what is in that file, else why not."""
    try:
        subject = Subject(tool, "read", workspace.relative(workspace.resolve(path)))
    except ToolError:
        return OUTSIDE
    return None if call.allowed([subject]) else "not quoted: the person is asked before this file is read"


async def _lines(workspace: Workspace, call: CallContext, tool: str, path: str) -> list[str] | str:
    reason = readable(workspace, call, tool, path)
    if reason is not None:
        return reason
    try:
        return split_lines((await workspace.read(workspace.resolve(path))).text)
    except ToolError:
        return "cannot be read"
