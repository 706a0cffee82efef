"""The floors' four tools, and how each API is told of them."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

SHOWN_LINES = 2000

PARAMETERS = {"read": ("path",), "grep": ("pattern",), "glob": ("pattern",), "edit": ("path", "old", "new")}


def schema(tool: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in PARAMETERS[tool]}
    return {"type": "object", "properties": properties, "required": list(PARAMETERS[tool])}


async def read(folder: Path, arguments: dict[str, Any]) -> str:
    lines = (folder / arguments["path"]).read_text().splitlines(keepends=True)
    return "".join(lines[:SHOWN_LINES])


async def grep(folder: Path, arguments: dict[str, Any]) -> str:
    return await _git(folder, "grep", "-n", "-I", "--untracked", "-e", arguments["pattern"])


async def glob(folder: Path, arguments: dict[str, Any]) -> str:
    pattern = f":(glob){arguments['pattern']}"
    return await _git(folder, "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern)


async def edit(folder: Path, arguments: dict[str, Any]) -> str:
    path = folder / arguments["path"]
    _, after = _changed(path, arguments)
    aside = path.with_name(path.name + ".new")
    aside.write_text(after)
    aside.replace(path)
    return "Done."


def preview(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """The edit as unified diff of the lines around it."""
    before, after = _changed(folder / arguments["path"], arguments)
    at = before.index(arguments["old"])
    start = before.rfind("\n", 0, max(0, at - 300)) + 1
    end = at + len(arguments["old"]) + 300
    lines = before[start:end].splitlines(keepends=True)
    grown = len(arguments["new"]) - len(arguments["old"])
    diff = "".join(difflib.unified_diff(lines, after[start : end + grown].splitlines(keepends=True)))
    return {"toolCallId": "edit", "title": arguments["path"], "content": [{"type": "diff", "diff": diff}]}


def _changed(path: Path, arguments: dict[str, Any]) -> tuple[str, str]:
    text = path.read_text()
    if text.count(arguments["old"]) != 1:
        raise ValueError("not exactly one place")
    return text, text.replace(arguments["old"], arguments["new"])


async def _git(folder: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    return "\n".join(out.decode().splitlines()[:SHOWN_LINES])


TOOLS: dict[str, Callable[[Path, dict[str, Any]], Awaitable[str]]] = {
    "read": read,
    "grep": grep,
    "glob": glob,
    "edit": edit,
}
