"""Which files and folders a command may read or name without approval. Everything here raises `NotHarmless`
otherwise."""

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from amanu.core.command import CommandContext
from amanu.shell.call import NotHarmless

MOST = 3_000
"""The most folder entries that are checked; beyond, asking the user is cheaper than looking."""
LONGEST = 0.012
"""Seconds of processor time for that check: a verdict has 20 ms, and must not depend on how busy the machine is."""

_SYSTEM = ("/usr/include", "/usr/share/doc", "/usr/share/man", "/usr/share/zoneinfo", "/usr/lib/os-release")
_SYSTEM_FILES = {
    *("/etc/os-release", "/etc/debian_version", "/etc/alpine-release", "/etc/redhat-release", "/etc/lsb-release"),
    *("/etc/issue", "/etc/shells", "/etc/timezone", "/dev/null"),
}
_NAMES = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc")
_LONGEST_LIST = 1 << 16  # characters of a file like `.gitignore`
_TOKEN = re.compile(rb"extraheader|://[^/\s@]*@|password|oauth|token", re.IGNORECASE)


def real(text: str, context: CommandContext) -> Path:
    """Resolve a word as a path, following all links. Raises `NotHarmless`."""
    if "\0" in text or len(text) > 4096:
        raise NotHarmless("This is not a valid path.")
    if time.thread_time() > context.until:
        raise NotHarmless("Finding out which files it involves takes too long.")
    try:
        return Path(os.path.realpath(context.folder / text))
    except (OSError, ValueError):
        raise NotHarmless(f"Where {text} leads could not be determined.") from None


def named(text: str, context: CommandContext) -> Path:
    """Resolve a path whose name, status and folder entries may be seen."""
    path = real(text, context)
    if inside(path, context) or path == Path("/") or _under(path, _NAMES) or path == Path("/dev/null"):
        return path
    raise NotHarmless(f"{path} is outside the workspace.")


def readable(text: str, context: CommandContext) -> Path:
    """Resolve a file whose content may be read (or a folder, which has none)."""
    return _readable(real(text, context), context)


def inside(path: Path, context: CommandContext) -> bool:
    """Whether a path is in the workspace's roots."""
    return any(path == root or root in path.parents for root in context.roots)


def tree(
    text: str,
    context: CommandContext,
    *,
    reads: Callable[[str], bool] = lambda name: True,
    enters: Callable[[str], bool] = lambda name: True,
    ignored: bool = True,
    follows: bool = False,
    obeyed_ignore_files: Collection[str] = (),
) -> Path:
    """Resolve a file, or a folder in which the program may read every file it looks at. `reads` says which file names
    it reads, `enters` which folders it enters, `ignored` whether it also reads what `.gitignore` names, `follows`
    whether it follows links. In `obeyed_ignore_files` (such as `.ignore`), a name after `!` is read in any case."""
    top = readable(text, context)
    if not top.is_dir():
        return top
    if ".git" in (part.lower() for part in top.parts):
        raise NotHarmless(f"{top} belongs to git and may contain tokens.")
    count, end = 0, min(time.thread_time() + LONGEST, context.until)
    above = tuple(
        pattern for folder in top.parents for name in obeyed_ignore_files for pattern in _taken_back(folder / name)
    )
    todo = [(top, above, frozenset[str]() if ignored else _ignored(top, context))]
    while todo:
        folder, taken_back, skipped = todo.pop()
        entries = list(_entries(folder, MOST - count))
        entry_names = {entry.name for entry in entries} if obeyed_ignore_files else set[str]()
        if folder != top and ".git" in entry_names:
            skipped = frozenset[str]()  # an inner repository does not inherit what the outer one ignores
        taken_back += tuple(
            pattern
            for name in obeyed_ignore_files
            if name.partition("/")[0] in entry_names
            for pattern in _taken_back(folder / name)
        )
        for entry in entries:
            count += 1
            if count > MOST or (count % 32 == 0 and time.thread_time() > end):
                raise NotHarmless(f"{top} has too many files to check whether all of them may be read.")
            name = entry.name
            if entry.is_symlink():
                if follows:
                    raise NotHarmless(f"It would follow the link {entry.path}.")
                continue
            if entry.is_dir(follow_symlinks=False):
                named_back = _matches(name, taken_back)
                if not named_back and (not enters(name) or name in skipped):
                    continue
                if name.lower() == ".git":
                    _no_tokens(Path(entry.path))
                else:
                    todo.append((Path(entry.path), taken_back, skipped))
            elif not (reads(name) or _matches(name, taken_back)) or not entry.is_file(follow_symlinks=False):
                continue
            elif not context.may_read(Path(entry.path)):
                why = f"{entry.path} is among the files it would read, and reading it needs approval."
                raise NotHarmless(why, entry.path)
    return top


def globbed(patterns: list[str | None]) -> Callable[[str], bool]:
    """A test whether a name matches one of the patterns. Unknown patterns match everything, and so do those that
    programs interpret differently: `[^a]`, `[[:punct:]]`, a backslash, a path."""
    readable_patterns = [pattern for pattern in patterns if pattern is not None and not re.search(r"[\[\\/]", pattern)]
    if len(readable_patterns) < len(patterns) or not readable_patterns:
        return lambda name: True
    return lambda name: any(fnmatchcase(name, pattern) for pattern in readable_patterns)


def may_hold_tokens(config: Path) -> bool:
    """Whether a git configuration has a URL or header that may contain a password."""
    try:
        with config.open("rb") as file:
            return _TOKEN.search(file.read(1 << 16)) is not None
    except OSError:
        return False


def _readable(path: Path, context: CommandContext) -> Path:
    if str(path) in _SYSTEM_FILES or _under(path, _SYSTEM):
        return path
    if not inside(path, context):
        raise NotHarmless(f"{path} is outside the workspace.")
    root = next(folder for folder in context.roots if path == folder or folder in path.parents)
    within = [part.lower() for part in path.relative_to(root).parts]
    if ".git" in within and within[within.index(".git") + 1 :] not in ([], ["head"]):
        raise NotHarmless(f"{path} belongs to git and may contain tokens.")
    try:
        mode = path.lstat().st_mode  # the path is real: if it is a link now, it was not a moment ago
    except OSError:
        mode = stat.S_IFREG  # nothing there: it will say so
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NotHarmless(f"{path} is not a regular file.")
    if not stat.S_ISDIR(mode) and not context.may_read(path):
        raise NotHarmless(f"Reading {path} needs approval.", str(path))
    return path


def _entries(folder: Path, most: int) -> Iterator["os.DirEntry[str]"]:
    """List a folder, up to one entry more than `most`, so that the caller notices when there are more."""
    try:
        with os.scandir(folder) as entries:
            yield from islice(entries, most + 1)
    except OSError:
        return  # what cannot be listed cannot be read either


def _taken_back(file: Path) -> Iterator[str]:
    """The last names of the patterns that a file like `.gitignore` takes back with `!`. A file that is too large takes
    back everything."""
    for line in _lines(file) if file.is_file() else ():
        if line.startswith("!"):
            yield line[1:].rstrip().rstrip("/").rpartition("/")[2] or "*"


def _lines(file: Path) -> list[str]:
    """The lines of a file like `.gitignore`. Empty when it cannot be read, as for the program itself."""
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:  # drops a byte order mark
            text = lines.read(_LONGEST_LIST + 1)
    except OSError:
        return []
    return text.splitlines() if len(text) <= _LONGEST_LIST else ["!*"]


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name may match one of these patterns. A pattern that is not plain counts as matching everything."""
    return any(fnmatchcase(name, pattern) if re.fullmatch(r"[\w.*? -]+", pattern) else True for pattern in patterns)


def _ignored(top: Path, context: CommandContext) -> frozenset[str]:
    """Names of folders that tools which respect `.gitignore` certainly skip: its plain lines at the top of the
    repository, as long as no line takes anything back."""
    for folder in (top, *top.parents):
        if (folder / ".git").exists():
            break
        if folder in context.roots:
            return frozenset()
    else:
        return frozenset()
    if any((folder / name).exists() for name in (".ignore", ".rgignore")):
        return frozenset()
    lines = _lines(folder / ".gitignore")
    if any(line.startswith("!") for line in lines):
        return frozenset()
    return frozenset(line.strip("/") for line in lines if re.fullmatch(r"[\w.-]+/?", line))


def _no_tokens(folder: Path) -> None:
    if may_hold_tokens(folder / "config") or (folder / "modules").exists():
        raise NotHarmless(f"{folder} may contain tokens.")


def _under(path: Path, tops: tuple[str, ...]) -> bool:
    return any(path == Path(top) or Path(top) in path.parents for top in tops)
