"""Read what commands have changed: the upper folder of a layer, compared with the workspace where both have something.

Only the upper folder is walked. Its content was made by commands, so nothing is opened before its type is known.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from amanu.sandbox.layers.layer import LayerRoot
from amanu.sandbox.layers.upper import is_opaque, is_whiteout
from amanu.system.untrusted_files import FOLDER, opened_file, opened_folder, status

Kind = Literal["file", "folder", "tree", "symlink", "deleted", "special", "pruned"]
"""`folder`: a new one, or an existing one whose mode has changed; what is in it is reported apart · `tree`: a new one
with all that is in it · `deleted`: with all that was in it · `special`: a FIFO, a socket or a device · `pruned`:
something has changed there, and it was not looked at."""
Prune = Callable[[str, bool], bool]
"""Relative path, whether it is a folder → whether not to look at it and what is in it."""

_COMPARED = 64 << 20
"""Larger files are reported as changed once they have been opened for writing, without comparing them."""
_PART = 1 << 20
_DEPTH = 100
"""Folders in folders. Each takes two descriptors while it is read, or three."""


@dataclass(frozen=True)
class Change:
    """One path that differs from the workspace."""

    path: str
    """Relative to the root, "." for the root itself. Bytes that are not UTF-8 become surrogates, as in
    `os.fsdecode`."""
    kind: Kind
    mode: int
    """The permission bits of what is there now; 0 for what is deleted."""
    below: os.stat_result | None
    """What the workspace has there, by `lstat`. Something else than the kind says has been replaced, a folder with all
    that was in it. None: the path is new."""


@dataclass(frozen=True)
class Changes:
    """What has changed in one root: folders before what is in them."""

    found: tuple[Change, ...]
    complete: bool
    """False when there are more: there were too many, or folders too deep."""
    same: Sequence[str] = ()
    """The paths at which the layer has the same as the workspace, such as a file rewritten with its old content;
    complete if the changes are."""


def read_changes(
    root: LayerRoot,
    *,
    limit: int,
    prune: Prune = lambda path, is_folder: False,
    may_be_tree: Callable[[str], bool] = lambda path: False,
) -> Changes:
    """What differs in a root from the workspace as it is now. A file that was opened for writing and not changed is no
    change. If there are more than `limit`, new folders become trees, as many as needed, the fullest first, as far as
    `may_be_tree` allows it for their paths. To be called within `Layer.locked`: once the command has ended and the
    layer is mounted no more. Raises `LayerError`, `OSError`. Blocking."""
    found: list[Change] = []
    reading = _Reading(limit, prune, may_be_tree)
    with root.opened() as folders:
        assert folders.above is not None
        for change in reading.root(folders.above, folders.below):
            if len(found) == limit + reading.spare:
                return Changes(tuple(found[:limit]), complete=False)
            found.append(change)
    return Changes(_with_trees(found, reading.inside, limit), complete=not reading.is_cut, same=reading.same)


def _with_trees(found: Sequence[Change], inside: Mapping[str, int], limit: int) -> tuple[Change, ...]:
    """These changes, brought down to at most `limit`: some new folders stand for all that is in them. `inside`: new
    folder → the number of changes in it."""
    trees: set[str] = set()
    over = len(found) - limit
    for path in sorted(inside, key=lambda path: -inside[path]):
        if over <= 0:
            break
        trees.add(path)
        over -= inside[path]
    left: list[Change] = []
    tree = ""
    for change in found:
        if change.path in trees:
            tree = f"{change.path}/"
            left.append(replace(change, kind="tree"))
        elif not (tree and change.path.startswith(tree)):
            left.append(change)
    return tuple(left)


class _Reading:
    """One walk."""

    def __init__(self, limit: int, prune: Prune, may_be_tree: Callable[[str], bool]) -> None:
        self._limit = limit
        self._prune = prune
        self._may_be_tree = may_be_tree
        self._in_new = False
        self.is_cut = False
        self.inside: dict[str, int] = {}
        """New folder that may be a tree → the number of changes in it."""
        self.spare = 0
        """The sum of these numbers."""
        self.same: list[str] = []

    def root(self, above: int, below: int | None) -> Iterator[Change]:
        assert below is not None
        over, under = os.fstat(above), os.fstat(below)
        if over.st_mode != under.st_mode:
            yield Change(".", "folder", stat.S_IMODE(over.st_mode), under)
        yield from self._folder(above, below, "", 1, opaque=False)

    def _folder(self, above: int, below: int | None, start: str, depth: int, *, opaque: bool) -> Iterator[Change]:
        """`start`: the beginning of the paths in it. `opaque`: what `below` contains is hidden."""
        names = sorted(os.listdir(above))
        if opaque and below is not None:
            for name in sorted({*os.listdir(below)}.difference(names)):  # noqa: PTH208
                yield from self._deleted(f"{start}{name}", status(name, below))
        for name in names:
            over = status(name, above)
            if over is not None:
                yield from self._entry((above, below), f"{start}{name}", name, over, depth, opaque=opaque)

    def _entry(
        self,
        folders: tuple[int, int | None],
        path: str,
        name: str,
        over: os.stat_result,
        depth: int,
        *,
        opaque: bool,
    ) -> Iterator[Change]:
        above, below = folders
        under = status(name, below)
        if is_whiteout(over):
            yield from self._deleted(path, under)
            return
        mode, is_folder = stat.S_IMODE(over.st_mode), stat.S_ISDIR(over.st_mode)
        if self._prune(path, is_folder):
            yield Change(path, "pruned", mode, under)
        elif not is_folder:
            if under is None or not _is_same(name, (above, over), (below, under)):
                yield Change(path, _kind(over.st_mode), mode, under)
            else:
                self.same.append(path)
        else:
            changes = self._with_content(folders, Change(path, "folder", mode, under), depth, opaque=opaque)
            if under is None and not self._in_new and self._may_be_tree(path):
                changes = self._bounded(changes)
            yield from changes

    def _with_content(
        self, folders: tuple[int, int | None], change: Change, depth: int, *, opaque: bool
    ) -> Generator[Change]:
        """A folder's own change, if there is one, then those in it."""
        (above, below), under, name = folders, change.below, change.path.rpartition("/")[2]
        if under is None or stat.S_IMODE(under.st_mode) != change.mode or not stat.S_ISDIR(under.st_mode):
            yield change
        else:
            self.same.append(change.path)
        if depth == _DEPTH:
            self.is_cut = True
            return
        with ExitStack() as stack:
            inner = stack.enter_context(opened_folder(name, above))
            lower = None
            if below is not None and under is not None and stat.S_ISDIR(under.st_mode):
                lower = _opened_below(stack, name, below)
            hidden = opaque or is_opaque(inner)
            yield from self._folder(inner, lower, f"{change.path}/", depth + 1, opaque=hidden)

    def _bounded(self, changes: Generator[Change]) -> Iterator[Change]:
        """The changes of a new folder and of what is in it; one tree if there are too many."""
        self._in_new = True
        with closing(changes):
            folder, *inside = islice(changes, self._limit + 2)
        self._in_new = False
        if len(inside) > self._limit:
            yield replace(folder, kind="tree")
            return
        self.inside[folder.path] = len(inside)
        self.spare += len(inside)
        yield folder
        yield from inside

    def _deleted(self, path: str, under: os.stat_result | None) -> Iterator[Change]:
        if under is not None:  # else it was made and deleted in the layer, or the user has deleted it meanwhile
            pruned = self._prune(path, stat.S_ISDIR(under.st_mode))
            yield Change(path, "pruned" if pruned else "deleted", 0, under)


def _opened_below(stack: ExitStack, name: str, below: int) -> int | None:
    try:
        folder = os.open(name, FOLDER, dir_fd=below)
    except OSError:  # we may not read it, so no command could; or it has just been replaced
        return None
    stack.callback(os.close, folder)
    return folder


def _kind(mode: int) -> Kind:
    return "file" if stat.S_ISREG(mode) else "symlink" if stat.S_ISLNK(mode) else "special"


def _is_same(name: str, upper: tuple[int, os.stat_result], lower: tuple[int | None, os.stat_result]) -> bool:
    """Whether what is no folder has the same type, mode and content in both."""
    (above, over), (below, under) = upper, lower
    if below is None or over.st_mode != under.st_mode:
        return False
    if stat.S_ISLNK(over.st_mode):
        return os.readlink(name, dir_fd=above) == os.readlink(name, dir_fd=below)
    if not stat.S_ISREG(over.st_mode):
        return over.st_rdev == under.st_rdev
    return over.st_size == under.st_size <= _COMPARED and _is_equal(name, above, below)


def _is_equal(name: str, above: int, below: int) -> bool:
    try:
        with opened_file(name, above) as ours:
            theirs = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=below)
            try:
                while (part := os.read(ours, _PART)) == os.read(theirs, _PART):
                    if not part:
                        return True
            finally:
                os.close(theirs)
    except OSError:  # it cannot be known
        pass
    return False
