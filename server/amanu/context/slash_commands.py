"""Slash commands: Markdown files whose text replaces a prompt that begins with `/name`.

    <config>/commands/name.md            the user's
    <root>/.amanu/commands/name.md       a workspace's: read only once it is trusted, with the content that
                                         was trusted, through the path guard, and only if reading it needs
                                         no approval

A file may begin with lines `description: …` and `argument-hint: …` between two lines `---`. `$ARGUMENTS` in the rest is
what follows the name; without it the arguments are put after the text. `/compact`, `/memory` and `/mcp` are built in.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.core.tool import Subject, SubjectFilter, ToolError, TrustCheck
from amanu.workspace import disk
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import Command

COMPACT = "compact"
MEMORY = "memory"
MCP = "mcp"
BUILT_IN = (
    Command(
        name=COMPACT,
        description="Replace the older part of this conversation with a summary",
        argument_hint="[what must not be lost]",
        source="daemon",
    ),
    Command(
        name=MEMORY,
        description="Show what is remembered for later sessions, or strike one fact",
        argument_hint="[strike NUMBER]",
        source="daemon",
    ),
    Command(
        name=MCP,
        description="Show the MCP servers, agree to one, stop it or start it again",
        argument_hint="[approve|off|restart|signin NAME]",
        source="daemon",
    ),
)
"""Commands that the daemon carries out itself; no file can take their names."""

MAX_BYTES = 100_000
"""Bytes of a command's file; a longer one is left out."""

_COMMAND = re.compile(r"/([A-Za-z0-9_-]+)(?:\s+(.*))?\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class CommandSource:
    """A folder of commands, and who owns it."""

    folder: Path
    whose: Literal["user", "workspace"]
    read: Callable[[Path], bytes | None] = lambda path: _read_disk(path)
    """Returns the bytes of a file in it, None when it cannot or must not be read. Blocks."""


def sources(user: Path, workspace: Workspace | None, allowed: SubjectFilter, covers: TrustCheck) -> list[CommandSource]:
    """The user's folder, then those of a trusted workspace, which cannot take its names. `allowed` says what is read
    without a question, `covers` what the user trusted."""
    roots = workspace.roots if workspace is not None else ()

    def read(path: Path) -> bytes | None:
        assert workspace is not None
        try:
            inside = workspace.resolve(str(path))
            if not allowed([Subject("read_file", "read", workspace.relative(inside))]):
                return None
            stored = disk.read(workspace.guard, inside)
        except ToolError:
            return None
        return stored.data if stored is not None and covers(inside, stored.data) else None

    return [
        CommandSource(user, "user"),
        *(CommandSource(root / ".amanu" / "commands", "workspace", read) for root in roots),
    ]


def find(sources: Sequence[CommandSource]) -> list[Command]:
    """All commands, sorted by name; of two with the same name the first source's. Blocks: it reads the disk."""
    commands: dict[str, Command] = {}
    for source in sources:
        for path in sorted(source.folder.glob("*.md")) if source.folder.is_dir() else ():
            text = _read(source, path)
            if path.stem in commands or not _NAME.match(path.stem) or text is None:
                continue
            head, body = _parts(text)
            commands[path.stem] = Command(
                name=path.stem,
                description=head.get("description") or _first_line(body),
                argument_hint=head.get("argument-hint", ""),
                source=source.whose,
            )
    for command in BUILT_IN:
        commands.pop(command.name, None)
    return sorted(commands.values(), key=lambda command: command.name)


def compaction(prompt: str) -> str | None:
    """What the summary must preserve ("" for nothing special) if the prompt is `/compact`; else None."""
    return arguments_of(COMPACT, prompt)


def arguments_of(name: str, prompt: str) -> str | None:
    """What follows that command, if the prompt begins with it."""
    match = _COMMAND.match(prompt.strip())
    return (match[2] or "").strip() if match is not None and match[1] == name else None


@dataclass(frozen=True)
class ExpandedPrompt:
    """A prompt with its slash command replaced by that command's text."""

    text: str
    """For the model."""
    typed: str
    """The part that the user typed, or that comes from their own commands: files mentioned there are meant."""


def expand(prompt: str, sources: Sequence[CommandSource]) -> ExpandedPrompt:
    """The command's text if the prompt begins with one, else the prompt as it is. Blocks: it reads the disk."""
    match = _COMMAND.match(prompt)
    if match is None:
        return ExpandedPrompt(prompt, prompt)
    name, arguments = match[1], (match[2] or "").strip()
    for source in sources:
        text = _read(source, source.folder / f"{name}.md")
        if text is None:
            continue
        _, body = _parts(text)
        if "$ARGUMENTS" in body:
            expanded = body.replace("$ARGUMENTS", arguments)
        else:
            expanded = f"{body}\n\n{arguments}" if arguments else body
        return ExpandedPrompt(expanded, expanded if source.whose == "user" else arguments)
    return ExpandedPrompt(prompt, prompt)


def _read(source: CommandSource, path: Path) -> str | None:
    data = source.read(path)
    if data is None or len(data) > MAX_BYTES:
        return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _read_disk(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_BYTES else None
    except OSError:
        return None


def _parts(text: str) -> tuple[dict[str, str], str]:
    if text.startswith("---\n") and (end := text.find("\n---\n", 3)) >= 0:
        pairs = (line.partition(":") for line in text[4:end].splitlines() if ":" in line)
        head = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
        return head, text[end + 5 :].strip()
    return {}, text.strip()


def _first_line(text: str) -> str:
    line = next(iter(text.splitlines()), "").lstrip("# ").strip()
    return line if len(line) <= 100 else line[:99] + "…"
