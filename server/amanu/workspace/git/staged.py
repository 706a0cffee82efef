"""What the user stages: files whose entry in a repository's index becomes another, without a command of Amanu's.

Only files that somebody follows are compared, each time git has written the index. Nothing runs: the index and its
objects are read.
"""

import asyncio
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amanu.workspace.git.folder import GitFolder, UnknownRepository
from amanu.workspace.git.index import Entry, UnknownIndex, blob_name
from amanu.workspace.git.present import INDEX, Present

_MOST = 1 << 24
"""Bytes of a staged text that is read."""
_HEADER = b"blob "
Known = Mapping[Path, str]
"""Path of a file → the object that was staged when it was last looked at, "" for none."""


@dataclass(frozen=True)
class Staging:
    """A change of what is staged of a file."""

    root: Path
    old: str
    entry: Entry | None
    """None: nothing is staged any more, as the file was deleted."""

    def is_exactly(self, data: bytes) -> bool:
        """Whether the file with that content is staged, also with the line ends that git makes of it."""
        return self.entry is not None and self.entry.object in (
            blob_name(data),
            blob_name(data.replace(b"\r\n", b"\n")),
        )

    def read(self) -> bytes | None:
        """The staged content, if git has not packed it yet. Blocks."""
        if self.entry is None:
            return None
        name = f"objects/{self.entry.object[:2]}/{self.entry.object[2:]}"
        try:
            with GitFolder.opened(self.root) as folder:
                packed = folder.read(name, _MOST)
            content = b"" if packed is None else zlib.decompressobj().decompress(packed, _MOST)
        except (OSError, UnknownRepository, zlib.error):
            return None
        header, mark, data = content.partition(b"\0")
        is_whole = mark and header == b"%b%d" % (_HEADER, len(data))
        return data if is_whole else None


OnStaged = Callable[[Staging], None]


@dataclass
class _Repository:
    root: Path
    stop: Callable[[], None] = lambda: None
    followers: defaultdict[str, list[OnStaged]] = field(default_factory=lambda: defaultdict[str, list[OnStaged]](list))
    """Path in the repository → who is to be told."""
    entries: dict[str, Entry | None] = field(default_factory=dict[str, Entry | None])
    """What was staged of the followed files when the index was last read."""
    is_due: bool = False
    """The index will be read in a moment."""
    known: dict[str, str] = field(default_factory=dict[str, str])
    """What was staged when an earlier daemon looked, until it is compared."""


class StagedFiles:
    """One per daemon. `watch` hears of changes on disk (`FileEvents.watch`)."""

    def __init__(self, watch: Callable[[Path, Callable[[], None]], Callable[[], None]]) -> None:
        self._watch = watch
        self._repositories: dict[Path, _Repository] = {}
        self._own = 0
        self._lock = asyncio.Lock()
        self._looks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def own(self) -> AsyncGenerator[None]:
        """A context in which something of Amanu's may stage files: nobody is told of what is staged meanwhile."""
        self._own += 1
        try:
            yield
        finally:
            try:
                for repository in list(self._repositories.values()):
                    await self._look(repository)
            finally:
                self._own -= 1

    def follow(self, path: Path, on_staged: OnStaged, known: str | None = None) -> Callable[[], None]:
        """`on_staged` is called when something else is staged of the file at that absolute path than before; until what
        this returns is called. `known`: what was staged when an earlier daemon last looked."""
        root = next((each for each in path.parents if (each / ".git").is_dir()), None)
        if root is None:
            return lambda: None
        repository = self._repositories.get(root)
        if repository is None:
            repository = self._repositories[root] = _Repository(root)
            repository.stop = self._watch(root / ".git" / INDEX, lambda: self._look_soon(repository))
        elif path.relative_to(root).as_posix() not in repository.entries:
            self._look_soon(repository)
        name = path.relative_to(root).as_posix()
        if known is not None and name not in repository.entries:
            repository.known[name] = known
        repository.followers[name].append(on_staged)

        def stop() -> None:
            followers = repository.followers.get(name, [])
            if on_staged in followers:
                followers.remove(on_staged)
            if not followers:
                repository.followers.pop(name, None)
                repository.entries.pop(name, None)
            if not repository.followers and self._repositories.get(root) is repository:
                del self._repositories[root]
                repository.stop()

        return stop

    def known(self, paths: Callable[[Path], bool]) -> dict[Path, str]:
        """What was staged when the index was last read, of the followed files that are among those paths."""
        return {
            path: "" if entry is None else entry.object
            for repository in self._repositories.values()
            for name, entry in repository.entries.items()
            if paths(path := repository.root / name)
        }

    def _look_soon(self, repository: _Repository) -> None:
        if repository.is_due:
            return
        repository.is_due = True
        task = asyncio.create_task(self._look(repository))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look(self, repository: _Repository) -> None:
        async with self._lock:
            repository.is_due = False
            names = list(repository.followers)
            found = await asyncio.to_thread(_entries, repository.root, names)
            if found is None:
                return
            before, repository.entries = repository.entries, {**repository.entries, **found}
            for name in names:
                old = before.get(name)
                known = repository.known.pop(name, None)
                if name in before:
                    known = "" if old is None else old.object
                entry = found[name]
                if known is None or self._own or known == ("" if entry is None else entry.object):
                    continue
                for on_staged in tuple(repository.followers.get(name, ())):
                    on_staged(Staging(repository.root, known, entry))


def _entries(root: Path, names: list[str]) -> dict[str, Entry | None] | None:
    """What is staged of these files; None if that cannot be read. Blocks."""
    try:
        with GitFolder.opened(root) as folder:
            entries = Present(folder).entries
    except (OSError, UnknownRepository, UnknownIndex):
        return None
    found = {name: entries.get((name, 0)) for name in names}
    return {name: None if entry is None or entry.is_intended else entry for name, entry in found.items()}
