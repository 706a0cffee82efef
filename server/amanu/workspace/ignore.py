"""Which files of the workspace count: `.gitignore` of every folder, the inner one winning, as git does it."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER = frozenset({".git", ".hg", ".svn", "node_modules"})
"""Folders (or, for `.git`, a file) that are never searched unless one searches inside them; Gemini CLI's list."""

_MAX_RULES = 1 << 20  # bytes of a .gitignore that are read


class Ignore:
    """The rules in force in one folder: its own `.gitignore` and those above it."""

    def __init__(self, prefix: str = "", specs: "tuple[tuple[int, GitIgnoreSpec], ...]" = ()) -> None:
        self._prefix = prefix
        self._specs = specs

    def below(self, folder: int, prefix: str) -> "Ignore":
        """The rules in the folder with that handle; `prefix` is its path from the root, ending in `/`."""
        try:
            handle = os.open(".gitignore", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            return Ignore(prefix, self._specs)
        try:
            data = os.read(handle, _MAX_RULES)
        except OSError:
            data = b""
        finally:
            os.close(handle)
        from pathspec import GitIgnoreSpec

        spec = GitIgnoreSpec.from_lines(_rules(data))
        return Ignore(prefix, ((len(prefix), spec), *self._specs)) if len(spec) else Ignore(prefix, self._specs)

    def hides(self, name: str, is_folder: bool) -> bool:
        """Whether that entry of the folder is ignored."""
        if not self._specs:
            return False
        path = f"{self._prefix}{name}/" if is_folder else self._prefix + name
        path = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for start, spec in self._specs:
            verdict = spec.check_file(path[start:]).include
            if verdict is not None:
                return verdict
        return False


def walk(root: int, start: Sequence[str] = ()) -> Iterator[str]:
    """Paths of all files that count below `start` (or of that file), relative to the root with that handle, in no
    order. Links are not followed. Blocking."""
    ignore = Ignore().below(root, "")
    folder, prefix = os.dup(root), ""
    try:
        for name in start:
            try:
                below = _open(name, folder)
            except NotADirectoryError:
                yield prefix + name  # it was a file that was named
                return
            os.close(folder)
            folder, prefix = below, f"{prefix}{name}/"
            if ignore.hides(name, True):  # who names an ignored folder wants to see what is in it
                ignore = Ignore(prefix)
            ignore = ignore.below(folder, prefix)
        yield from _walk(folder, prefix, ignore)
    finally:
        os.close(folder)


def ancestors_hide(root: int, path: str, *, is_folder: bool = False) -> bool:
    """Whether a file, or that folder, is ignored, or in an ignored folder. Blocking."""
    *folders, name = path.split("/")
    ignore, prefix, folder = Ignore().below(root, ""), "", os.dup(root)
    try:
        for each in folders:
            if each in NEVER or ignore.hides(each, True):
                return True
            below = _open(each, folder)
            os.close(folder)
            folder, prefix = below, f"{prefix}{each}/"
            ignore = ignore.below(folder, prefix)
        return (is_folder and name in NEVER) or ignore.hides(name, is_folder)
    except OSError:
        return False  # a folder that is only in the editor so far
    finally:
        os.close(folder)


def _walk(folder: int, prefix: str, ignore: Ignore) -> Iterator[str]:
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
    for name in folders:
        try:
            below = _open(name, folder)
        except OSError:
            continue  # gone, unreadable, or a link was put in its place
        try:
            inside = f"{prefix}{name}/"
            yield from _walk(below, inside, ignore.below(below, inside))
        finally:
            os.close(below)


def _open(name: str, folder: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _rules(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
