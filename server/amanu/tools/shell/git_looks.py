"""What git prints of a repository, for a question to the user: in the sandbox, where it can change nothing."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.git_refs import MAX_COMMITS, Commit, Refs, RepositoryLook, read_refs
from amanu.tools.shell.report import CommandEnd

_MOST_KNOWN = 2000
"""Commits that a command line can name."""
_ALL_OBJECTS = ("--no-replace-objects", "-c", "core.commitGraph=false", "-c", "core.quotePath=false")
_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree without files."""
_STATUS = {"A": " (new)", "D": " (deleted)"}
_SECONDS = 20.0
_MOST_BYTES = 1 << 20


async def git_prints(
    launcher: CommandLauncher, words: Sequence[str], folder: Path, *, layer: Path | None = None
) -> str | None:
    """Run `git WORDS` in that folder, on the `layer` if given, and return its output; None if it fails, takes long, or
    no sandbox works."""
    need = SandboxRequirements(writes="nothing", layer=layer)
    if not await launcher.has_sandbox():
        return None
    plan = CommandPlan(shlex.join(["git", *words]), folder, need, by_user=False, still_valid=_always)
    end, output = CommandEnd(), bytearray()

    def take(data: bytes, is_error: bool) -> None:
        if not is_error and len(output) < _MOST_BYTES:
            output.extend(data)

    try:
        async with asyncio.timeout(_SECONDS), launcher.launched(plan, end) as process:
            await process.read(take)
            await process.process.wait()
    except (TimeoutError, ToolError):
        return None
    return output.decode("utf-8", "replace") if end.code == 0 else None


async def look_at_repository(launcher: CommandLauncher, root: Path, layer: Path) -> RepositoryLook | None:
    """None where git cannot tell."""
    try:
        before = await asyncio.to_thread(read_refs, root / ".git")
    except OSError:
        return None
    known = before.commits
    head = before.resolved("HEAD") or _NOTHING
    log = ["log", "-z", "--all", "--topo-order", f"-n{MAX_COMMITS + 1}", "--no-renames", "--name-status"]
    log += ["--diff-merges=first-parent", "--format=%x00%H%x00%s", *(["--not", *known[:_MOST_KNOWN]] if known else [])]
    tree = ["diff-tree", "-r", "-z", "--raw", "--no-renames", head, "HEAD"]
    staged = ["diff", "--cached", "--name-only", "-z", "--no-renames"]
    printed = await asyncio.gather(
        git_prints(launcher, [*_ALL_OBJECTS, *log], root, layer=layer),
        git_prints(launcher, [*_ALL_OBJECTS, *tree], root, layer=layer),
        git_prints(launcher, [*_ALL_OBJECTS, *staged], root),
    )
    if printed[0] is None or (printed[1] is None and not _is_unborn(before)):
        return None
    return RepositoryLook(before, _commits(printed[0]), _tree(printed[1] or ""), (printed[2] or "").split("\0"))


def _is_unborn(refs: Refs) -> bool:
    return not refs.resolved("HEAD")


def _commits(printed: str) -> list[Commit]:
    """Read what `log` printed: for each commit NUL, its hash, NUL, its subject, NUL; then for each of its files, where
    the first begins a line, the status, NUL, the path, NUL."""
    fields = iter(printed.split("\0"))
    commits: list[Commit] = []
    while (begin := next(fields, None)) is not None:
        commit, subject = next(fields, ""), next(fields, "")
        if begin or not commit:
            continue
        files: list[str] = []
        while status := next(fields, "").lstrip("\n"):
            files.append(f"{next(fields, '')}{_STATUS.get(status, '')}")
        commits.append(Commit(commit, subject, files))
        fields = chain([""], fields)
    return commits


def _tree(printed: str) -> Mapping[str, tuple[int, str]]:
    fields = printed.split("\0")
    raw = zip(fields[::2], fields[1::2], strict=False)
    return {path: (int(words[1], 8), words[3]) for line, path in raw if len(words := line.split(" ")) == 5}


async def _always() -> bool:
    return True
