"""Whether every file that `find` would print may be read, so that `find … | xargs wc -l` needs no approval."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import DirEntry, scandir
from time import thread_time

from amanu.core.command import CommandContext
from amanu.shell import paths
from amanu.shell.call import NotHarmless
from amanu.shell.options import names

READERS = names(
    "wc grep egrep fgrep head tail cat nl ls stat du sort md5sum sha1sum sha256sum basename dirname realpath echo"
)
"""Programs that treat all their file arguments alike, in any number and order, and only read them."""

_FLAGS = names("-daystart -empty -executable -readable -writable -and -a -xdev -mount -print -print0")
_TAKES = names(
    "-type -xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -newer -newermt -perm -user -group "
    "-name -iname -path -ipath -wholename -regex -iregex"
)
_START = re.compile(r"(?!-)[\w./-]+")
_PLAIN = re.compile(r"[\w.,:;@%+=~#()\[\]{}^-]+")
"""A file name that xargs neither splits nor unquotes, and that no program here reads as a pattern or a command."""
_PATTERN = re.compile(r"[^\\\[]+")  # fnmatch(3) and Python interpret the excluded characters differently


@dataclass
class _Branch:
    """One alternative between two `-o`: what it prints has one of these names. Only tests before the action count."""

    names: list[str] = field(default_factory=list[str])
    prints: bool = False
    without: list[str] = field(default_factory=list[str])
    """Patterns of `-not -path`."""


def path_start(arguments: Sequence[str | None], context: CommandContext) -> str | None:
    """The start of each path that `find` with these arguments prints or passes to `-exec`, when every such file may be
    read and none of the names is read as more than one word. None when that is not certain."""
    try:
        return _path_start(arguments, context)
    except (NotHarmless, OSError):
        return None


def _path_start(arguments: Sequence[str | None], context: CommandContext) -> str | None:
    todo = [argument for argument in arguments if argument is not None]
    if len(todo) != len(arguments):
        return None
    tops: list[str] = []
    while todo and not todo[0].startswith(("-", "(", ")", "!", ",")):
        tops.append(todo.pop(0))
    pruned: list[str] = []
    if todo[:1] == ["-path"] and todo[2:4] == ["-prune", "-o"]:
        pruned.append(todo[1])
        del todo[:4]
    branches = _branches(todo)
    if branches is None or not all(map(_START.fullmatch, tops)):
        return None
    explicit = any(branch.prints for branch in branches)
    if explicit and "(" in todo:
        return None
    printing = [branch for branch in branches if branch.prints or not explicit]
    name_patterns = [pattern for branch in printing for pattern in branch.names]
    named = all(branch.names for branch in printing) and all(map(_PATTERN.fullmatch, name_patterns))
    skipped = _skipped(branches, pruned)
    count = 0
    for top in tops or ["."]:
        for entry in _below(top, context, skipped):
            count += 1
            if count > paths.MOST or (count % 32 == 0 and thread_time() > context.until):
                return None
            if not named or any(fnmatchcase(entry.name.lower(), pattern.lower()) for pattern in name_patterns):
                _check(entry, context)
    return (tops or ["."])[0]


def _branches(arguments: Sequence[str]) -> list[_Branch] | None:
    """The alternatives of a `find` expression. None when some of it is not known."""
    branches = [_Branch()]
    todo = list(arguments)
    while todo:
        word = todo.pop(0)
        branch = branches[-1]
        inverted = word in ("!", "-not")
        if inverted and todo:
            word = todo.pop(0)
        if word in ("-o", "-or") and not inverted:
            branches.append(_Branch())
        elif word in _TAKES and todo:
            value = todo.pop(0)
            if word in ("-name", "-iname") and not (inverted or branch.prints):
                branch.names.append(value)
            elif word in ("-path", "-wholename") and inverted and not branch.prints:
                branch.without.append(value)
        elif word in ("-exec", "-ok") and not inverted:
            while todo and todo.pop(0) not in (";", "+"):
                pass
            branch.prints = True
        elif not (word in _FLAGS or (word in ("(", ")") and not inverted)):
            return None
        else:
            branch.prints |= word in ("-print", "-print0")
    return branches


def _skipped(branches: Sequence[_Branch], pruned: Sequence[str]) -> Callable[[str], bool]:
    """A test for folders, by the path find prints, whose content it never prints: by `-not -path './x/*'` where that
    applies to everything it prints, or `-path ./x -prune -o`."""
    without = [pattern[:-2] for pattern in branches[0].without if pattern.endswith("/*")] if len(branches) == 1 else []
    without = [pattern for pattern in (*without, *pruned) if _PATTERN.fullmatch(pattern)]
    return lambda path: any(fnmatchcase(path, pattern) for pattern in without)


def _below(top: str, context: CommandContext, skipped: Callable[[str], bool]) -> "Iterator[DirEntry[str]]":
    todo = [(str(paths.readable(top, context)), top.rstrip("/"))]
    while todo:
        folder, written = todo.pop()
        with scandir(folder) as entries:
            for entry in entries:
                yield entry
                path = f"{written}/{entry.name}"
                if entry.is_dir(follow_symlinks=False) and not skipped(path):
                    _plain(entry)
                    todo.append((entry.path, path))


def _check(entry: "DirEntry[str]", context: CommandContext) -> None:
    """Raises `NotHarmless` when the file may not be read."""
    _plain(entry)
    if not entry.is_dir(follow_symlinks=False):
        paths.readable(entry.path, context)


def _plain(entry: "DirEntry[str]") -> None:
    if not _PLAIN.fullmatch(entry.name):
        raise NotHarmless(f"{entry.path!r} is no plain name.")
