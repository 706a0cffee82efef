"""Which files a command names, and whether it may read them without a question. Any word may be a path, and so may what
follows `=` or a short option: too many are looked at rather than too few."""

import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from amanu.core.command import CommandContext
from amanu.core.protected_paths import is_secret
from amanu.shell.call import NotHarmless

_MOST = 3_000
"""The most folder entries that are checked; beyond, asking the user is cheaper than looking."""
_LONGEST = 0.012
"""Seconds of processor time for that check: a verdict has 20 ms, and must not depend on how busy the machine is."""
_LONGEST_WORD = 200  # characters of a short option with its value
_NAME = re.compile(r"[^-]*[A-Za-z/.]")
"""A word that may be the name of a file that is not there yet: no option and no number."""
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


def inside(path: Path, context: CommandContext) -> bool:
    """Whether a path is in the workspace's roots."""
    return any(path == root or root in path.parents for root in context.roots)


def named(words: Sequence[str], context: CommandContext, *, missing: bool) -> list[Path]:
    """The real paths of the files and folders that exist by one of the words' names; with `missing` also of what is not
    there yet by a whole word. Raises `NotHarmless`."""
    paths: dict[Path, None] = {}
    for word in words:
        for text in _parts(word):
            path = real(text, context)
            if os.path.lexists(path) or (missing and text == word and _NAME.match(word)):
                paths[path] = None
    return [path for path in paths if str(path) != "/dev/null"]


def check_inside(path: Path, context: CommandContext) -> None:
    """Raise `NotHarmless` when a path is not in the workspace."""
    if not inside(path, context):
        raise NotHarmless(f"{path} is outside the workspace.")


def check_readable(path: Path, context: CommandContext) -> None:
    """Raise `NotHarmless` when that file may not be read without a question."""
    check_inside(path, context)
    root = next(folder for folder in context.roots if path == folder or folder in path.parents)
    if ".git" in (part.lower() for part in path.relative_to(root).parts):
        raise NotHarmless(f"{path} belongs to git and may contain tokens.")
    try:
        mode = path.lstat().st_mode  # the path is real: if it is a link now, it was not a moment ago
    except OSError:
        mode = stat.S_IFREG  # nothing there: the program will say so
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NotHarmless(f"{path} is not a regular file.")
    if stat.S_ISREG(mode) and not context.may_read(path):
        raise NotHarmless(f"Reading {path} needs approval.", str(path))


def check_tree(top: Path, context: CommandContext, *, follows: bool) -> None:
    """Raise `NotHarmless` when a file below a folder may not be read: with that file, unless it is one that contains
    secrets, since the sandbox hides those. `follows`: the program follows links."""
    count, end = 0, min(time.thread_time() + _LONGEST, context.until)
    todo = [top]
    while todo:
        folder = todo.pop()
        for entry in _entries(folder, _MOST - count):
            count += 1
            if count > _MOST or (count % 32 == 0 and time.thread_time() > end):
                raise NotHarmless(f"{top} has too many files to check whether all of them may be read.")
            if entry.is_symlink():
                if follows:
                    raise NotHarmless(f"It would follow the link {entry.path}.")
            elif entry.name.lower() == ".git":
                _check_tokens(Path(entry.path))
            elif entry.is_dir():
                todo.append(Path(entry.path))
            elif not context.may_read(path := Path(entry.path)):
                why = f"{path} is among the files it would read, and reading it needs approval."
                raise NotHarmless(why, *([] if is_secret(_within(path, context)) else [str(path)]))


def existing(names: str, context: CommandContext) -> tuple[str, ...]:
    """The real paths of those names that are files in the command's folder, and inside the workspace."""
    files: list[str] = []
    for name in names.split():
        try:
            path = real(name, context)
        except NotHarmless:
            continue
        if inside(path, context) and path.is_file():
            files.append(str(path))
    return tuple(files)


def _parts(word: str) -> Iterator[str]:
    """The parts of a word that may be a path: `--file=x`, `-fx`, `x`."""
    if word.startswith("--"):
        yield from (word, word.partition("=")[2])[: 1 + ("=" in word)]
    elif word.startswith("-") and len(word) > _LONGEST_WORD:
        raise NotHarmless("One of its options is too long to check.")
    elif word.startswith("-"):
        yield from (word[index:] for index in (0, *range(2, len(word))))
    elif word:
        yield word


def _within(path: Path, context: CommandContext) -> str:
    root = next(root for root in context.roots if root in path.parents)
    return path.relative_to(root).as_posix()


def _entries(folder: Path, most: int) -> Iterator["os.DirEntry[str]"]:
    """List a folder, up to one entry more than `most`, so that the caller notices when there are more."""
    try:
        with os.scandir(folder) as entries:
            yield from islice(entries, most + 1)
    except OSError:
        return  # what cannot be listed cannot be read either


def _check_tokens(git: Path) -> None:
    """Raise `NotHarmless` when the settings in a `.git` may contain a password."""
    try:
        tokens = (git / "modules").exists() or _TOKEN.search((git / "config").read_bytes()[: 1 << 16]) is not None
    except OSError:
        return
    if tokens:
        raise NotHarmless(f"{git} may contain tokens.")
