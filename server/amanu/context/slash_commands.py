"""Slash commands: files whose text replaces a prompt that begins with `/name`; in folders `/folder:name`.

    *.md     Markdown, with front matter `description` and `argument-hint` (ours, and Claude Code's)
    *.toml   `prompt` and `description` (Gemini CLI's)

Where they are: `context/extension_folders.py`. What stands for arguments, files and command lines in a text:
`context/slash_command_template.py`. `allowed-tools` and `model` of a file change nothing: what a command line in it may
do is up to the user's rules. `/compact` is built in; parts (`core/session_part.py`) add others.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from amanu.context.extension_folders import ExtensionFolder, Owner
from amanu.context.slash_command_template import FilledTemplate, Style, fill
from amanu.text.display import visible
from amanu.text.front_matter import parse_markdown
from amanu_protocol.requests import Command

COMPACT = "compact"
BUILT_IN = (
    Command(
        name=COMPACT,
        description="Replace the older part of this conversation with a summary",
        argument_hint="[what must not be lost]",
        source="daemon",
    ),
)
"""The slash commands that the loop carries out; parts add others. No file can take their names."""

_COMMAND = re.compile(r"/([A-Za-z0-9_-]+(?::[A-Za-z0-9_-]+)*)(?:\s+(.*))?\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class CommandFile:
    """A slash command of a file."""

    name: str
    owner: Owner
    template: str
    style: Style
    description: str
    argument_hint: str = ""
    plugin_folder: Path | None = None
    """Of the plug-in that it comes from."""


@dataclass(frozen=True)
class ExpandedPrompt:
    """A prompt with its slash command replaced by that command's text."""

    text: str
    """For the model."""
    mentioning: str
    """The part in which an `@` is a mention: all but what commands printed."""
    typed: str
    """The part that the user typed, or that comes from their own commands: files mentioned there are meant."""


@dataclass(frozen=True)
class SlashCommandPrompt:
    """A prompt that begins with a slash command, before its command lines have run."""

    command: CommandFile
    arguments: str
    filled: FilledTemplate

    def expanded(self, outputs: Sequence[str]) -> ExpandedPrompt:
        """With what its command lines printed, in order."""
        remaining = iter(outputs)
        text = "".join(piece if isinstance(piece, str) else next(remaining) for piece in self.filled.pieces)
        mentioning = "\n".join(piece for piece in self.filled.pieces if isinstance(piece, str))
        return ExpandedPrompt(text, mentioning, mentioning if self.command.owner == "user" else self.arguments)


def find_slash_commands(folders: Sequence[ExtensionFolder]) -> list[Command]:
    """All slash commands, sorted by name; of two with the same name the first folder's. Blocks: it reads the disk."""
    commands: dict[str, Command] = {}
    for folder in folders:
        for name, path in _names(folder):
            if name not in commands and (file := _read(folder, name, path)) is not None:
                commands[name] = Command(
                    name=name,
                    description=file.description,
                    argument_hint=file.argument_hint,
                    source=file.owner,
                )
    for command in BUILT_IN:
        commands.pop(command.name, None)
    return sorted(commands.values(), key=lambda command: command.name)


def look_up(prompt: str, folders: Sequence[ExtensionFolder]) -> SlashCommandPrompt | None:
    """The slash command that a prompt begins with; None when it begins with none. Blocks: it reads the disk."""
    called = invocation(prompt)
    if called is None:
        return None
    name, arguments = called
    for folder in folders:
        for candidate, path in _names(folder):
            if candidate == name and (file := _read(folder, name, path)) is not None:
                return SlashCommandPrompt(file, arguments, fill(file.template, file.style, arguments, prompt))
    return None


def invocation(prompt: str) -> tuple[str, str] | None:
    """(name, arguments) of a prompt that begins with `/name`."""
    match = _COMMAND.match(prompt)
    return None if match is None else (match[1], (match[2] or "").strip())


def compaction(prompt: str) -> str | None:
    """What the summary must preserve ("" for nothing special) if the prompt is `/compact`; else None."""
    called = invocation(prompt.strip())
    return called[1] if called is not None and called[0] == COMPACT else None


def request(prompt: str, names: Container[str]) -> tuple[str, str] | None:
    """(name, arguments) if the prompt calls a slash command with one of these names; else None. The daemon answers
    these without a turn."""
    called = invocation(prompt.strip())
    return called if called is not None and called[0] in names else None


def _names(folder: ExtensionFolder) -> Iterator[tuple[str, str]]:
    """(name, path in the folder) of each file whose path is that of a command."""
    for path in folder.names():
        parts = PurePosixPath(path).with_suffix("").parts
        if all(map(_NAME.match, parts)):
            yield ":".join(filter(None, (folder.plugin, *parts))), path


def _read(folder: ExtensionFolder, name: str, path: str) -> CommandFile | None:
    """None when it cannot or must not be read, or is no command."""
    data = folder.read(path)
    if data is None:
        return None
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if not path.endswith(".toml"):
        file = parse_markdown(text)
        description = file.text("description") or _first_line(file.body)
        hint = file.text("argument-hint") or _hint(file.fields.get("argument-hint"))
        described = (visible(description), visible(hint))
        return CommandFile(name, folder.owner, file.body, "markdown", *described, folder.plugin_folder)
    tree = _toml(text)
    prompt, description = tree.get("prompt"), tree.get("description")
    if not isinstance(prompt, str):
        return None
    shown = description if isinstance(description, str) else _first_line(prompt.strip())
    described = (visible(" ".join(shown.split())), "")
    return CommandFile(name, folder.owner, prompt.strip(), "gemini", *described, folder.plugin_folder)


def _hint(value: object) -> str:
    """`argument-hint: [file]` is a list in YAML."""
    return f"[{', '.join(map(str, cast('list[object]', value)))}]" if isinstance(value, list) else ""


def _toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _first_line(text: str) -> str:
    line = next(iter(text.splitlines()), "").lstrip("# ").strip()
    return line if len(line) <= 100 else line[:99] + "…"
