"""Which files of the workspace count: `.gitignore` of every folder, the inner one winning, as git does it."""

import contextlib
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

NEVER = frozenset({".git", ".hg", ".svn", "node_modules"})
"""Folders (or, for `.git`, a file) that are never searched unless one searches inside them; Gemini CLI's list."""

MAX_DEPTH = 200
"""Folders in folders; deeper ones are not searched. Nobody's work is so deep, and each level holds a handle open."""
_STARS = re.compile(r"\*\*")
_MOST_STARS = 3
_ANY = "[^/]*"  # how pathspec writes a `*`
_CLASS = re.compile(r"\\.|\[[^\]]*\]")
RULES = (".gitignore", ".rgignore")
"""What ripgrep opens as we call it; older ones open the second whatever they are told."""
MAX_RULES = 1 << 20  # bytes of a .gitignore that are read


Specs = tuple[tuple[int, str, "GitIgnoreSpec"], ...]


class IgnoreRules:
    """The rules in force in one folder: its own `.gitignore`, those above it, and those of the repository and the user
    (`outer_rules.py`)."""

    def __init__(
        self, prefix: str = "", specs: "Specs" = (), *, of_user: "Specs" = (), in_repository: bool = False
    ) -> None:
        """`specs`: of each the characters at the beginning of a path that are not its own, what comes before the rest,
        and the rules. `in_repository`: the root lies in one, so that the rules of an inner repository are its own."""
        self._prefix = prefix
        self._specs = specs
        self._of_user = of_user
        self._in_repository = in_repository

    def below(self, folder: int, prefix: str) -> "IgnoreRules":
        """The rules in the folder with that handle; `prefix` is its path from the root, ending in `/`."""
        specs, start = self._specs, len(prefix)
        if prefix and has_git(folder):
            spec = compiled_rules(_read_rules(".git/info/exclude", folder))
            specs = self._of_user if self._in_repository else specs
            specs = (
                (*((start, "", spec),) * bool(len(spec)), *specs)
                if self._in_repository
                else (*specs, *((start, "", spec),) * bool(len(spec)))
            )
        spec = compiled_rules(_read_rules(".gitignore", folder))
        return self._with(prefix, ((start, "", spec), *specs) if len(spec) else specs)

    def inside(self, prefix: str) -> "IgnoreRules":
        """The rules in a folder that has none of its own."""
        return self._with(prefix, self._specs)

    def _with(self, prefix: str, specs: "Specs") -> "IgnoreRules":
        return IgnoreRules(prefix, specs, of_user=self._of_user, in_repository=self._in_repository)

    def hides(self, name: str, is_folder: bool) -> bool:
        """Whether that entry of the folder is ignored."""
        if not self._specs:
            return False
        path = f"{self._prefix}{name}/" if is_folder else self._prefix + name
        path = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for start, above, spec in self._specs:
            verdict = spec.check_file(above + path[start:]).include
            if verdict is not None:
                return verdict
        return False


def compiled_rules(data: bytes) -> "GitIgnoreSpec":
    """The content of a file of rules."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec([rule for rule in map(compile_rule, _rules(data)) if rule is not None])


def _read_rules(name: str, folder: int) -> bytes:
    """b"" where there are none."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(handle, MAX_RULES)
    except OSError:
        return b""
    finally:
        os.close(handle)


def has_git(folder: int) -> bool:
    """Whether the folder with that handle is the top of a repository."""
    try:
        os.stat(".git", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def walk(root: int, start: Sequence[str] = (), outer: IgnoreRules | None = None) -> Iterator[str]:
    """Paths of all files that count below `start` (or of that file), relative to the root with that handle, in no
    order. Links are not followed. `outer`: the rules in force in the root before its own. Blocking."""
    ignore = (outer or IgnoreRules()).below(root, "")
    folder, prefix = os.dup(root), ""
    try:
        for name in start:
            try:
                below = open_folder(name, folder)
            except NotADirectoryError:
                yield prefix + name  # it was a file that was named
                return
            os.close(folder)
            folder, prefix = below, f"{prefix}{name}/"
            if ignore.hides(name, True):  # who names an ignored folder wants to see what is in it
                ignore = IgnoreRules(prefix)
            ignore = ignore.below(folder, prefix)
        yield from _walk(folder, prefix, ignore, MAX_DEPTH)
    finally:
        os.close(folder)


def nearest(root: int, outer: IgnoreRules, most: int) -> list[str]:
    """The files that count and are nearest to the root with that handle, from the first `most` entries of its folders,
    the outer before the inner. Links are not followed. Blocking."""
    names: list[str] = []
    folders = deque([("", outer)])
    while folders and most > 0:
        prefix, ignore = folders.popleft()
        with contextlib.suppress(OSError), _opened(root, prefix.split("/")[:-1]) as folder:
            ignore = ignore.below(folder, prefix)
            with os.scandir(folder) as entries:
                for entry in islice(entries, most):
                    most -= 1
                    if entry.name in NEVER:
                        continue
                    if entry.is_file(follow_symlinks=False) and not ignore.hides(entry.name, False):
                        names.append(prefix + entry.name)
                    elif entry.is_dir(follow_symlinks=False) and not ignore.hides(entry.name, True):
                        folders.append((f"{prefix}{entry.name}/", ignore))
    return names


@contextlib.contextmanager
def _opened(root: int, parts: Sequence[str]) -> Generator[int]:
    """A handle of the folder at that path."""
    folder = os.dup(root)
    try:
        for name in parts:
            below = open_folder(name, folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def is_ignored(root: int, path: str, outer: IgnoreRules | None = None, *, is_folder: bool = False) -> bool:
    """Whether a file, or that folder, is ignored, or in an ignored folder. Blocking."""
    *folders, name = path.split("/")
    ignore, prefix, folder = (outer or IgnoreRules()).below(root, ""), "", os.dup(root)
    try:
        for parent in folders:
            if parent in NEVER or ignore.hides(parent, True):
                return True
            below = open_folder(parent, folder)
            os.close(folder)
            folder, prefix = below, f"{prefix}{parent}/"
            ignore = ignore.below(folder, prefix)
        return (is_folder and name in NEVER) or ignore.hides(name, is_folder)
    except OSError:
        return False  # a folder that is only in the editor so far
    finally:
        os.close(folder)


CACHES = frozenset(
    {
        *("node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox"),
        *(".venv", "venv", ".eslintcache", ".coverage", ".cache", ".turbo", ".gradle", ".DS_Store"),
    }
)
"""Names of what tools leave beside their work, also where no `.gitignore` names it."""


class IgnoredPaths:
    """Whether paths of a root are ignored, for many of them. `root` is its handle; `outer`: the rules in force in it
    before its own. Blocking."""

    def __init__(self, root: int, outer: IgnoreRules) -> None:
        self._root = root
        self._rules = {"": outer.below(root, "")}

    def hides(self, path: str, is_folder: bool) -> bool:
        """Whether that path is ignored by itself; not because of a folder it is in."""
        folder, _, name = path.rpartition("/")
        return (is_folder and name in CACHES) or self._in(folder).hides(name, is_folder)

    def _in(self, folder: str) -> IgnoreRules:
        if folder not in self._rules:
            above = self._in(folder.rpartition("/")[0])
            prefix = f"{folder}/"
            try:
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root)
            except OSError:  # it is not in the workspace yet
                self._rules[folder] = above.inside(prefix)
            else:
                self._rules[folder] = above.below(handle, prefix)
                os.close(handle)
        return self._rules[folder]


def find_special_ignore_file(root: int, start: Sequence[str], enough: Callable[[], bool]) -> str | None:
    """The path of a `.gitignore` above or below `start` that is no file: who opens a pipe waits for a writer. None
    when there is none, or `enough` says so before it is found. Opens none itself."""
    folder, prefix = os.dup(root), ""
    try:
        for name in start:
            if (special := _special_file(folder)) is not None:
                return prefix + special
            below = open_folder(name, folder)
            os.close(folder)
            folder, prefix = below, f"{prefix}{name}/"
        return _find_special_below(folder, prefix, enough, MAX_DEPTH)
    except OSError:
        return None  # gone meanwhile, or a file was named
    finally:
        os.close(folder)


def _find_special_below(folder: int, prefix: str, enough: Callable[[], bool], depth: int) -> str | None:
    if (special := _special_file(folder)) is not None:
        return prefix + special
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name not in NEVER and entry.is_dir(follow_symlinks=False)]
    for name in names if depth > 1 else ():
        if enough():
            return None
        try:
            below = open_folder(name, folder)
        except OSError:
            continue
        try:
            deeper = _find_special_below(below, f"{prefix}{name}/", enough, depth - 1)
        except OSError:
            continue
        finally:
            os.close(below)
        if deeper is not None:
            return deeper
    return None


def _special_file(folder: int) -> str | None:
    for name in RULES:
        with contextlib.suppress(OSError):
            mode = os.stat(name, dir_fd=folder).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                return name
    return None


def _walk(folder: int, prefix: str, ignore: IgnoreRules, depth: int) -> Iterator[str]:
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name in NEVER:
                continue
            if entry.is_file(follow_symlinks=False):
                if not ignore.hides(name, False):
                    yield prefix + name
            elif entry.is_dir(follow_symlinks=False) and not ignore.hides(name, True):
                folders.append(name)
    for name in folders if depth > 1 else ():
        try:
            below = open_folder(name, folder)
        except OSError:
            continue  # gone, unreadable, or a link was put in its place
        try:
            inside = f"{prefix}{name}/"
            yield from _walk(below, inside, ignore.below(below, inside), depth - 1)
        finally:
            os.close(below)


def open_folder(name: str, folder: int) -> int:
    """A handle of a folder in the one with that handle, which can be listed. Follows no link."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def compile_rule(rule: str) -> "GitIgnoreSpecPattern | None":
    """A rule as an expression that never takes long, whoever wrote it; None for what is no rule, as git sees it.

    pathspec's own expressions try again for every wildcard: with eight of them one name holds the whole process for
    hours. In a name, a wildcard that another one follows need not try again: what it left over, the next one takes
    (as in `globs.py`). Of rules with many `**` nobody has need."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if len(_STARS.findall(rule)) > _MOST_STARS:
        return None
    try:
        compiled = GitIgnoreSpecPattern(rule)
    except (ValueError, re.error):  # `[z-a]`
        return None
    regex = cast("re.Pattern[str] | None", compiled.regex)  # pyright: ignore[reportUnknownMemberType]
    if regex is not None and rule.count("*") > 1:
        compiled.regex = re.compile(_without_backtracking(regex.pattern))
    return compiled


def _without_backtracking(expression: str) -> str:
    *firsts, last = expression.split(_ANY)
    if not firsts:
        return expression
    out = [firsts[0]]
    for part in firsts[1:]:
        alone = "/" in _CLASS.sub("", part) or "(" in _CLASS.sub("", part)
        out.append(f"{_ANY}{part}" if alone else f"(?>{_ANY}?{part})")
    return "".join([*out, _ANY, last])


def _rules(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
