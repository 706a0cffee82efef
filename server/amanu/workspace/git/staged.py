"""Files the user stages with `git add`: their entry in a repository's index becomes another, while HEAD stays and
nothing of Amanu's runs that may have staged them.

Only files that somebody follows are compared, each time git has written the index. Nothing runs: the index is read.
Whatever is in doubt is told to nobody.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amanu.workspace.git.folder import GitFolder, UnknownRepository
from amanu.workspace.git.index import Entry, UnknownIndex, blob_name
from amanu.workspace.git.present import INDEX, Present, log_name

DELAY = 0.3
"""Seconds between a change of the index and the look at it: git moves HEAD just before or after it."""
MAX_INDEX = 1 << 26
"""Bytes of an index that is read."""
_MAX_OWN = 1 << 16
"""Contents staged by Amanu's own work that are remembered; with more of them nothing counts any more."""
_HEAD = "HEAD"
_STASH = "refs/stash"
_UNDER_WAY = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "SQUASH_MSG",
)
"""Names in `.git` while a merge or the like waits for an end."""
Stat = tuple[int, int, int] | None


@dataclass(frozen=True)
class Staging:
    """A change of what is staged of a file."""

    entry: Entry | None
    """None: nothing is staged any more, as the file was deleted."""

    def is_exactly(self, data: bytes) -> bool:
        """Whether the file with that content is staged, also with the line ends that git makes of it."""
        return self.entry is not None and self.entry.object in (
            blob_name(data),
            blob_name(data.replace(b"\r\n", b"\n")),
        )


OnStaged = Callable[[Staging], None]


@dataclass(frozen=True)
class _Head:
    """The state of the repository. Its logs tell of a way there and back."""

    name: str
    commit: str
    stash: str
    logs: tuple[Stat, ...]
    under_way: Collection[str]


@dataclass(frozen=True)
class _Seen:
    """A look at the repository."""

    head: _Head
    stat: Stat
    """The index file's."""
    entries: Mapping[str, Entry | None]
    """The entries of the followed files."""


@dataclass
class _Repository:
    root: Path
    stops: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    followers: defaultdict[str, list[OnStaged]] = field(default_factory=lambda: defaultdict[str, list[OnStaged]](list))
    """Path in the repository → who is to be told."""
    seen: _Seen | None = None
    """None: not known, so that the next look only begins."""
    is_due: bool = False
    """It will be looked at in a moment."""
    is_own: bool = False
    """Work of Amanu's has ended since it was last looked at."""


class StagedFiles:
    """One per daemon. `watch` hears of changes on disk (`FileEvents.watch`)."""

    def __init__(self, watch: Callable[[Path, Callable[[], None]], Callable[[], None]]) -> None:
        self._watch = watch
        self._repositories: dict[Path, _Repository] = {}
        self._own = 0
        self._own_contents: set[tuple[Path, str]] = set()
        """Path and object (as in `_content`) of what was staged while Amanu's own work may have done it."""
        self._lock = asyncio.Lock()
        self._looks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def own(self) -> AsyncGenerator[None]:
        """A context in which something of Amanu's may stage files: nobody is told of what is staged before the first
        look after it."""
        self._own += 1
        try:
            yield
        finally:
            self._own -= 1
            for repository in self._repositories.values():
                repository.is_own = True
                self._look_soon(repository)

    def follow(self, path: Path, on_staged: OnStaged) -> Callable[[], None]:
        """`on_staged` is called when something else is staged of the file at that absolute path than before; until what
        this returns is called."""
        root = _repository_root(path)
        if root is None:
            return lambda: None
        repository = self._repositories.get(root)
        if repository is None:
            repository = self._repositories[root] = _Repository(root, is_own=self._own > 0)
            for name in (INDEX, log_name(_HEAD)):
                repository.stops.append(self._watch(root / ".git" / name, lambda: self._look_soon(repository)))
        name = str(path)[len(str(root)) :].lstrip(os.sep).replace(os.sep, "/")
        repository.followers[name].append(on_staged)
        if repository.seen is None or name not in repository.seen.entries:
            self._look_soon(repository)

        def stop() -> None:
            followers = repository.followers.get(name, [])
            if on_staged in followers:
                followers.remove(on_staged)
            if not followers:
                repository.followers.pop(name, None)
            if not repository.followers and self._repositories.get(root) is repository:
                del self._repositories[root]
                for each in repository.stops:
                    each()

        return stop

    def _look_soon(self, repository: _Repository) -> None:
        if repository.is_due:
            return
        repository.is_due = True
        task = asyncio.create_task(self._look_later(repository))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look_later(self, repository: _Repository) -> None:
        await asyncio.sleep(DELAY)
        await self.look(repository.root)

    async def look(self, root: Path) -> None:
        """Compare what is staged in that folder's repository with the last look."""
        async with self._lock:
            repository = self._repositories.get(root)
            if repository is None:
                return
            repository.is_due = False
            was_own, repository.is_own = repository.is_own or self._own > 0, False
            names, before = tuple(repository.followers), repository.seen
            try:
                after = await asyncio.to_thread(_look, root, names, before)
            except (OSError, UnknownRepository, UnknownIndex, ValueError):
                repository.seen, repository.is_own = None, was_own
                return
            if after is None:  # what holds the lock will write the index, or the next does
                repository.is_own = repository.is_own or was_own
                return
            repository.seen = after
            is_own = was_own or repository.is_own or self._own > 0
            self._compare(repository, before, after, is_own=is_own)

    def _compare(self, repository: _Repository, before: _Seen | None, after: _Seen, *, is_own: bool) -> None:
        known: Mapping[str, Entry | None] = {} if before is None else before.entries
        changed = {name: entry for name, entry in after.entries.items() if name not in known or known[name] != entry}
        if is_own:
            if len(self._own_contents) < _MAX_OWN:
                self._own_contents |= {(repository.root / name, _content(entry)) for name, entry in changed.items()}
            return
        if before is None or before.head != after.head or after.head.under_way or len(self._own_contents) >= _MAX_OWN:
            return
        for name, entry in changed.items():
            if name in known and (repository.root / name, _content(entry)) not in self._own_contents:
                for on_staged in tuple(repository.followers.get(name, ())):
                    on_staged(Staging(entry))


def _content(entry: Entry | None) -> str:
    return "" if entry is None else entry.object


def _repository_root(path: Path) -> Path | None:
    folder, _, _ = str(path).rpartition(os.sep)  # strings, because a proposal of hundreds of files asks for each
    while folder and not os.path.isdir(f"{folder}/.git"):  # noqa: PTH112
        folder, _, _ = folder.rpartition(os.sep)
    return Path(folder) if folder else None


def _look(root: Path, names: Collection[str], before: _Seen | None) -> _Seen | None:
    """The index is read only if it may have changed; None while git writes it. Blocks. Raises `OSError`, `ValueError`,
    `UnknownRepository`, `UnknownIndex`."""
    with GitFolder.opened(root) as folder:
        stat = _stat(folder, INDEX)
        present = Present(folder)
        if stat is not None and stat[1] > MAX_INDEX:
            raise UnknownIndex("large")
        if before is not None and before.stat == stat and before.entries.keys() >= set(names):
            entries = {name: before.entries[name] for name in names}
        else:
            entries = {name: _staged(present.entries.get((name, 0))) for name in names}
        head = _Head(
            present.value(_HEAD),
            present.resolved(_HEAD, {}),
            present.value(_STASH),
            (_stat(folder, log_name(_HEAD)), _stat(folder, log_name(_STASH))),
            [name for name in _UNDER_WAY if folder.status(name) is not None],
        )
        if folder.status(f"{INDEX}.lock") is not None or _stat(folder, INDEX) != stat:
            return None
        return _Seen(head, stat, entries)


def _stat(folder: GitFolder, name: str) -> Stat:
    found = folder.status(name)
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _staged(entry: Entry | None) -> Entry | None:
    """The entry without what does not concern its content."""
    return None if entry is None or entry.is_intended else Entry(entry.mode, entry.object)
