"""The paths outside the workspace that a command line names, and the programs that it calls by their paths.

The sandbox hides most of what lies outside: of a path that exists nobody should be told that it is missing.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from amanu.core.command import Command, CommandContext, Reading
from amanu.core.requirements import NamedPath
from amanu.shell.harmless import PROGRAMS

_MOST = 50
"""Paths of one line that are looked up."""
_MOST_WORDS = 300
_IN_TEXT = re.compile(r"""(?<![\w.$}~-])((?:~|\$HOME|\$\{HOME\})?/[^\s'"`;|&<>(){}\[\]*?$\\:=,]+)([*?\[{$]?)""")
"""A path anywhere in a line, such as in a script of Python that is one of its words; and the beginning of a pattern."""
_LOOKING = {
    *("cd", "pushd", "test", "[", "[["),
    *(name for name, program in PROGRAMS.items() if program.reads in ("names", "files")),
} - {"awk", "jq", "sed"}
"""Commands whose words are paths that they do nothing but look at; the three have a word that may only resemble one."""


def called_programs(reading: Reading, context: CommandContext) -> tuple[str, ...]:
    """The absolute paths of the programs outside the roots that are called by a path. Blocking."""
    called = dict.fromkeys(
        Path(command.program)
        for command in reading.commands
        if command.program is not None and "/" in (_name(command) or "")
    )
    named = {path: path.parent.resolve() / path.name for path in called}
    return tuple(
        str(real if ".." in path.parts else path) for path, real in named.items() if not _inside(real, context)
    )


def named_paths(line: str, reading: Reading, context: CommandContext) -> tuple[NamedPath, ...]:
    """The paths outside the roots that exist. Blocking."""
    named: dict[str, NamedPath] = {}
    home = context.environment.get("HOME", "")
    temporary = Path(os.path.realpath("/tmp"))
    for spelled, text, looked_at in (*_in_words(reading.commands), *_in_text(line)):
        if text in named or len(named) >= _MOST or "\0" in text:
            continue
        path = Path(os.path.normpath(context.folder / re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/)", lambda _: home, text)))
        try:
            real = path.resolve()
            is_outside = os.path.lexists(path) and not _inside(path, context) and not _inside(real, context)
        except (OSError, RuntimeError, ValueError):
            continue
        if is_outside:
            is_temporary = real.is_relative_to(temporary) and not (home and real.is_relative_to(os.path.realpath(home)))
            named[text] = NamedPath(path, spelled, looked_at, is_temporary)
    return tuple(named.values())


def _in_words(commands: Iterable[Command]) -> Iterator[tuple[str, str, bool]]:
    """Each with how it is spelled, and whether its command only looks at it."""
    for command in commands:
        looks = os.path.basename(_name(command) or "") in _LOOKING  # noqa: PTH119 (text)
        for word in command.words[command.assigned :][:_MOST_WORDS]:
            text = (word or "").rpartition("=")[2]
            if text.startswith(("/", "../")) and len(text) < 4096:
                yield text, text, looks


def _in_text(line: str) -> Iterator[tuple[str, str, bool]]:
    for match in _IN_TEXT.finditer(line):
        text, goes_on = match.groups()
        yield text, text.rpartition("/")[0] or "/" if goes_on else text, False


def _name(command: Command) -> str | None:
    words = command.words[command.assigned :]
    return words[0] if words else None


def _inside(path: Path, context: CommandContext) -> bool:
    return any(root == path or root in path.parents for root in context.roots)
