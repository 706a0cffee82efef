"""Where a workspace keeps what extends Amanu: commands, skills and agents, in our folders and those of other agents.

Trust enables these files (`permissions/trust_store.py`), and whoever reads one asks `covers` whether its content is
what the user trusted.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Literal

from amanu.core.tool import ToolError
from amanu.workspace.workspace import Workspace

ExtensionKind = Literal["command", "skill", "agent"]

MAX_BYTES = 100_000
"""Of one file; a longer one is not read."""
MAX_FILES = 200
"""Looked at in one place."""
MAX_ENTRIES = 5_000
"""Of folders, read in one place: a skill may carry many files."""


@dataclass(frozen=True)
class ExtensionPlace:
    """A folder for files of one kind."""

    kind: ExtensionKind
    folder: str
    """Relative to the root, with `/`."""
    name: str
    """What a file's name must match; case counts."""
    depth: int
    """How many folders below it a file may lie."""

    def holds(self, path: str) -> bool:
        """Whether the path, relative to the root, is that of a file in this place."""
        parts = PurePosixPath(path).parts
        start = PurePosixPath(self.folder).parts
        below = parts[len(start) :]
        return parts[: len(start)] == start and 0 < len(below) <= self.depth + 1 and fnmatchcase(below[-1], self.name)


PLACES = (
    ExtensionPlace("command", ".amanu/commands", "*.md", 4),
    ExtensionPlace("command", ".claude/commands", "*.md", 4),
    ExtensionPlace("command", ".gemini/commands", "*.toml", 4),
    # agentskills.io: `.agents/skills`; clients look four to six folders deep
    ExtensionPlace("skill", ".amanu/skills", "SKILL.md", 4),
    ExtensionPlace("skill", ".agents/skills", "SKILL.md", 4),
    ExtensionPlace("skill", ".claude/skills", "SKILL.md", 4),
    ExtensionPlace("agent", ".amanu/agents", "*.md", 0),
    ExtensionPlace("agent", ".agents/agents", "*.md", 0),
    ExtensionPlace("agent", ".claude/agents", "*.md", 0),
    ExtensionPlace("agent", ".gemini/agents", "*.md", 0),
)
"""Of two files with the same name the one in the earlier place counts."""


def place_of(path: str) -> ExtensionPlace | None:
    """The place that holds a file of that path, relative to the root."""
    return next((place for place in PLACES if place.holds(path)), None)


def find_files(workspace: Workspace, root: Path, place: ExtensionPlace) -> list[str]:
    """The paths of the files in that place, relative to the root, sorted; at most `MAX_FILES`. Links are not followed.
    It runs with every prompt, so it reads only that folder. Blocks."""
    if not os.path.lexists(root / place.folder):
        return []  # the usual case, and quicker than asking the guard
    with (
        contextlib.suppress(OSError, ToolError),
        workspace.guard.listing(workspace.resolve(str(root / place.folder))) as handle,
    ):
        names = _below(handle, "", place, [MAX_ENTRIES])
        return [f"{place.folder}/{name}" for name in sorted(_first(names, MAX_FILES))]
    return []


def _below(handle: int, prefix: str, place: ExtensionPlace, entries: list[int]) -> Iterator[str]:
    for name in sorted(os.listdir(handle)):
        entries[0] -= 1
        if entries[0] < 0:
            return
        if fnmatchcase(name, place.name):
            yield prefix + name
        elif prefix.count("/") < place.depth and _is_folder(name, handle):
            with contextlib.suppress(OSError):
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
                try:
                    yield from _below(folder, f"{prefix}{name}/", place, entries)
                finally:
                    os.close(folder)


def _is_folder(name: str, handle: int) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    return False


def _first(names: Iterator[str], count: int) -> Sequence[str]:
    return [name for name, _ in zip(names, range(count), strict=False)]
