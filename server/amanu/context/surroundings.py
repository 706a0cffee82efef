"""Where the model works, in a few lines sent with a prompt: the date, the git branch, the top level of the tree, and
which programs are installed.

No program is run to find this out, not even git, whose configuration can name programs to run. In a folder that the
user has not declared trusted, names are listed but no file is read, not even `.gitignore`. The lines go with the first
prompt, and again when the date or the trust has changed or the conversation was rewritten; the system prompt stays the
same.
"""

import asyncio
import itertools
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from amanu.core.conversation import Conversation
from amanu.core.tool import Subject, SubjectFilter
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu.workspace.ignore import NEVER, IgnoreRules
from amanu.workspace.outer_rules import outer_rules
from amanu.workspace.workspace import Workspace

MAX_ENTRIES = 40
"""How many names at the top level of a tree are listed."""
MAX_NAME = 60
"""Characters shown of each name."""

PROGRAMS = (
    *("git", "gh", "rg", "make", "cmake", "docker", "podman"),
    *("python3", "uv", "poetry", "pip", "node", "npm", "pnpm", "yarn", "bun", "deno"),
    *("cargo", "go", "java", "mvn", "gradle", "dotnet", "ruby", "php", "composer"),
)
"""Looked for on the user's `PATH`."""

_UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}


class _Told(NamedTuple):
    """What the last note was based on: a new one is due when any of it changes."""

    today: date
    trusted: bool
    generation: int


class Surroundings:
    """What one session's model has been told about where it works."""

    def __init__(
        self,
        workspace: Workspace,
        conversation: Conversation,
        allowed: SubjectFilter,
        trusted: Callable[[], bool],
        environment: Mapping[str, str],
    ) -> None:
        """`environment`: the user's environment variables, read each time a note is made."""
        self._workspace = workspace
        self._conversation = conversation
        self._allowed = allowed
        self._trusted = trusted
        self._environment = environment
        self._told: _Told | None = None

    async def note(self, today: Callable[[], date] = date.today) -> str:
        """The block to send with a prompt, or "" when nothing is new. Once returned, it counts as told."""
        state = _Told(today(), self._trusted(), self._conversation.generation)
        if state == self._told:
            return ""
        self._told = state
        lines = await asyncio.to_thread(self.look)
        return block("environment", "\n".join([f"Today: {state.today:%A, %Y-%m-%d}", *lines]))

    def look(self) -> list[str]:
        """The lines of the note, without the date. Blocks."""
        roots, trusted = self._workspace.roots, self._trusted()
        lines = _git_lines(roots) if trusted else []
        if self._allowed([Subject("list_directory", "read", ".")]):
            lines += _tree_lines(roots, trusted)
        return [*lines, _programs_line(self._environment.get("PATH", ""))]


def _git_lines(roots: Sequence[Path]) -> list[str]:
    return [f"Git in {root.name}: {git_state(root)}" for root in roots]


def _tree_lines(roots: Sequence[Path], trusted: bool) -> list[str]:
    lines: list[str] = []
    for root in roots:
        names = list(_top(root, trusted))
        more = f" … and {len(names) - MAX_ENTRIES} more" if len(names) > MAX_ENTRIES else ""
        lines.append(f"Top level of {root.name}: {', '.join(names[:MAX_ENTRIES]) or 'empty'}{more}")
    return lines


def _programs_line(path: str) -> str:
    found = [name for name in PROGRAMS if shutil.which(name, path=path)]
    return f"Installed programs, of {len(PROGRAMS)} checked: {', '.join(found) or 'none'}"


def git_state(root: Path) -> str:
    """The branch of the repository that `root` is in, and any operation in progress there, such as a merge. Parent
    folders are searched only as long as they belong to the owner of `root`, so a planted `/tmp/.git` is ignored."""
    owned = itertools.takewhile(lambda folder: _owner(folder) == _owner(root), (root, *root.parents))
    git = next((folder / ".git" for folder in owned if os.path.lexists(folder / ".git")), None)
    if git is None:
        return "no repository"
    pointer = re.match(r"gitdir: (.+)", _head(git))
    folder = (git.parent / pointer[1].strip()) if pointer else git
    head = _head(folder / "HEAD")
    branch = re.match(r"ref: refs/heads/(\S+)", head)
    commit = re.match(r"[0-9a-f]{40,64}", head)
    if branch:
        state = f"branch {one_line(branch[1])[:MAX_NAME]}"
    else:
        state = f"detached HEAD at commit {commit[0][:12]}" if commit else "an unreadable repository"
    begun = dict.fromkeys(name for file, name in _UNFINISHED.items() if os.path.lexists(folder / file))
    return "".join([state, *(f"; {name} is in progress" for name in begun)])


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def _head(path: Path) -> str:
    """The first kilobyte of a regular file; "" for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(handle, 1024).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(handle).st_mode) else ""
    except OSError:
        return ""
    finally:
        os.close(handle)


def _top(root: Path, trusted: bool) -> Iterator[str]:
    """The names in the folder, folders first. In a trusted folder, names that git ignores are left out."""
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rules = outer_rules(root.resolve()).rules.below(handle, "") if trusted else IgnoreRules()
        with os.scandir(handle) as entries:
            named = [(not entry.is_dir(follow_symlinks=False), entry.name) for entry in entries]
    finally:
        os.close(handle)
    for is_file, name in sorted(named):
        if name not in NEVER and not rules.hides(name, not is_file):
            yield one_line(name)[:MAX_NAME] + ("" if is_file else "/")
