"""What git prints of a repository, for a question to the user: in the sandbox, where it can change nothing."""

import asyncio
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path

from amanu.core.place import LOOK, READ_ONLY
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.sandbox.layers.layer import LayerRoot
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.report import CommandEnd
from amanu.workspace.git.change import RepositoryChange
from amanu.workspace.git.refs import MAX_COMMITS, PACKED, Commit, RepositoryLook, read_refs, read_text

_MOST_KNOWN = 2000
"""Commits that a command line can name."""
_ALL_OBJECTS = ("--no-replace-objects", "-c", "core.commitGraph=false", "-c", "core.quotePath=false")
_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree without files."""
_STATUS = {"A": " (new)", "D": " (deleted)"}
_PLAIN = re.compile(r"[\w./-]+")
"""A ref that can stand in a command line as it is."""
_SECONDS = 20.0
_MOST_BYTES = 1 << 20


async def git_prints(
    launcher: CommandLauncher, words: Sequence[str], folder: Path, *, layer: Path | None = None
) -> str | None:
    """Run `git WORDS` in that folder, on the `layer` if given, and return its output; None if it fails, takes long, or
    no sandbox works."""
    need = SandboxRequirements(READ_ONLY if layer is None else LOOK, layer=layer)
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
    is_whole = end.code == 0 and len(output) < _MOST_BYTES
    return output.decode("utf-8", "surrogateescape") if is_whole else None


async def look_at_repository(launcher: CommandLauncher, root: LayerRoot, layer: Path) -> RepositoryLook | None:
    """None where git cannot tell."""
    try:
        before = await asyncio.to_thread(read_refs, root.path / ".git")
        stashes = await asyncio.to_thread(_stashes, root.path / ".git")
        changed = await asyncio.to_thread(_changed_refs, root.upper / ".git")
    except OSError:
        return None
    head = before.resolved("HEAD")
    known = [each for each in dict.fromkeys([head, *before.commits, *stashes]) if each][:_MOST_KNOWN]
    log = [
        "log",
        "-z",
        "--topo-order",
        f"-n{MAX_COMMITS + 1}",
        "--no-renames",
        "--raw",
        "--no-abbrev",
        "--ignore-missing",
    ]
    log += [
        "--diff-merges=first-parent",
        "--format=%x00%H%x00%P%x00%s",
        *changed,
        *(["--not", *known] if known else []),
    ]
    tree = ["diff-tree", "-r", "-z", "--raw", "--no-renames", head or _NOTHING, "HEAD"]
    staged = ["diff", "--cached", "--name-only", "-z", "--no-renames"]
    # One after another: two mounts of one layer at once may fail.
    commits = await git_prints(launcher, [*_ALL_OBJECTS, *log], root.path, layer=layer) if changed else ""
    files = await git_prints(launcher, [*_ALL_OBJECTS, *tree], root.path, layer=layer)
    former = await git_prints(launcher, [*_ALL_OBJECTS, *staged], root.path)
    may_be_unborn = not head or "HEAD" in changed
    if commits is None or (files is None and not may_be_unborn):
        return None
    return RepositoryLook(before, _commits(commits), _tree(files or ""), None if former is None else former.split("\0"))


async def published_commits(launcher: CommandLauncher, change: RepositoryChange) -> Collection[str] | None:
    """All commits of the change if a remote-tracking ref of the workspace contains at least one of them, else none;
    None if git cannot tell."""
    if not change.commits:
        return ()
    wanted = [word for commit in change.commits for word in ("--contains", commit)]
    printed = await git_prints(
        launcher, [*_ALL_OBJECTS, "for-each-ref", "--count=1", *wanted, "refs/remotes"], change.root
    )
    return None if printed is None else change.commits if printed else ()


def _changed_refs(repository: Path) -> list[str]:
    """The refs that a layer has in `.git`, for `git log`; all where it packed them."""
    if (repository / PACKED).exists():
        return ["--all"]
    paths = [path for path in (repository / "HEAD", *(repository / "refs").rglob("*")) if path.is_file()]
    names = [path.relative_to(repository).as_posix() for path in paths]
    return names if all(_PLAIN.fullmatch(name) for name in names) else ["--all"]


def _stashes(repository: Path) -> list[str]:
    """The commits that only the record of the stash names."""
    record = repository / "logs" / "refs" / "stash"
    lines = read_text(record).splitlines() if record.is_file() else []
    return [words[1] for line in lines if len(words := line.split(" ", 2)) == 3]


def _commits(printed: str) -> list[Commit]:
    """Read what `log` printed: for each commit NUL, its hash, NUL, its parents, NUL, its subject, NUL; then for each of
    its files, where the first begins a line, modes, objects and status, NUL, the path, NUL."""
    fields = iter(printed.split("\0"))
    commits: list[Commit] = []
    while (begin := next(fields, None)) is not None:
        commit, parents, subject = next(fields, ""), next(fields, ""), next(fields, "")
        if begin or not commit:
            continue
        files: list[str] = []
        contents: list[tuple[str, str, str]] = []
        while words := next(fields, "").lstrip("\n").split(" "):
            if len(words) != 5:
                break
            path = next(fields, "")
            files.append(f"{path}{_STATUS.get(words[4], '')}")
            contents.append((path, words[1], words[3]))
        commits.append(Commit(commit, parents.split(), subject, files, contents))
        fields = chain([""], fields)
    return commits


def _tree(printed: str) -> Mapping[str, tuple[int, str]]:
    fields = printed.split("\0")
    raw = zip(fields[::2], fields[1::2], strict=False)
    return {path: (int(words[1], 8), words[3]) for line, path in raw if len(words := line.split(" ")) == 5}


async def _always() -> bool:
    return True
