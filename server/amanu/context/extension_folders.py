"""Folders of files that extend Amanu, whoever owns them: the user, a trusted workspace, a plug-in. One way to list and
to read them; who may read what is decided here.

    <config>/commands, ~/.claude/commands …   the user's: links are followed
    <root>/.amanu/commands …                  a workspace's (`extension_files.PLACES`): through the path guard, with the
                                              content that was trusted, and only if reading it needs no approval
    <state>/plugins/NAME/commands …           a plug-in's: as it was reviewed (`context/plugins.py`)
"""

import contextlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from amanu.context.extension_files import MAX_BYTES, MAX_ENTRIES, MAX_FILES, PLACES, ExtensionKind, ExtensionPlace
from amanu.context.extension_files import find_files as find_in_workspace
from amanu.core.tool import Subject, SubjectFilter, ToolError, TrustCheck
from amanu.workspace import disk
from amanu.workspace.workspace import Workspace

Owner = Literal["user", "workspace", "plugin"]

USER_PLACES: dict[ExtensionKind, Sequence[ExtensionPlace]] = {
    "command": [place for place in PLACES if place.kind == "command" and not place.folder.startswith(".amanu")],
    "skill": [place for place in PLACES if place.kind == "skill" and not place.folder.startswith(".amanu")],
}
"""Of other agents, relative to the user's home folder."""


@dataclass(frozen=True)
class ExtensionFolder(ABC):
    """A folder of files of one kind. All methods block."""

    owner: Owner
    folder: Path
    """Absolute; it need not exist."""
    pattern: str
    """What a file's name must match."""
    depth: int
    """How many folders below it a file may lie."""

    @property
    def plugin(self) -> str:
        """The plug-in it belongs to; "" for none."""
        return ""

    @property
    def plugin_folder(self) -> Path | None:
        """That plug-in's folder: what is in it may use all of it."""
        return None

    @abstractmethod
    def names(self) -> list[str]:
        """The paths of its files, relative to it, sorted; at most `MAX_FILES`."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """A file's content; None when it cannot or must not be read, or is longer than `MAX_BYTES`."""

    @abstractmethod
    def listing(self, name: str) -> contextlib.AbstractContextManager[int]:
        """A handle of a folder in it. Raises `OSError` and `ToolError`."""

    def files_in(self, name: str, most: int) -> list[str]:
        """The files below a folder in it, relative to that folder, sorted; links are left out. At most `most`."""
        with contextlib.suppress(OSError, ToolError), self.listing(name) as handle:
            return [path for path, _ in zip(_below(handle, "", 6, [MAX_ENTRIES]), range(most), strict=False)]
        return []


@dataclass(frozen=True)
class UserFolder(ExtensionFolder):
    """One that the user keeps outside of any workspace."""

    def names(self) -> list[str]:
        return _walk(self.folder, self.pattern, self.depth)

    def read(self, name: str) -> bytes | None:
        return read_file(self.folder / name)

    @contextmanager
    def listing(self, name: str) -> Generator[int]:
        handle = os.open(self.folder / name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)


@dataclass(frozen=True)
class WorkspaceFolder(ExtensionFolder):
    """One of a trusted workspace."""

    workspace: Workspace
    root: Path
    place: ExtensionPlace
    allowed: SubjectFilter
    """Says what is read without a question."""
    covers: TrustCheck
    """Says what the user trusted."""

    def names(self) -> list[str]:
        found = find_in_workspace(self.workspace, self.root, self.place)
        return [path.removeprefix(f"{self.place.folder}/") for path in found]

    def read(self, name: str) -> bytes | None:
        try:
            inside = self.workspace.resolve(str(self.folder / name))
            if not self.allowed([Subject("read_file", "read", self.workspace.relative(inside))]):
                return None
            stored = disk.read(self.workspace.guard, inside)
        except ToolError:
            return None
        if stored is None or len(stored.data) > MAX_BYTES or not self.covers(inside, stored.data):
            return None
        return stored.data

    @contextmanager
    def listing(self, name: str) -> Generator[int]:
        with self.workspace.guard.listing(self.workspace.resolve(str(self.folder / name))) as handle:
            yield handle


def user_folders(kind: ExtensionKind, own: Sequence[tuple[Path, str]], home: Path) -> list[ExtensionFolder]:
    """The user's folders of that kind: Amanu's own, each with the pattern of its files' names, then those of other
    agents in their home folder."""
    places = USER_PLACES[kind]
    return [
        *(UserFolder("user", folder, pattern, places[0].depth) for folder, pattern in own),
        *(UserFolder("user", home / place.folder, place.name, place.depth) for place in places),
    ]


def workspace_folders(
    kind: ExtensionKind, workspace: Workspace, allowed: SubjectFilter, covers: TrustCheck
) -> list[ExtensionFolder]:
    """The folders of that kind of a trusted workspace."""
    return [
        WorkspaceFolder(
            "workspace", root / place.folder, place.name, place.depth, workspace, root, place, allowed, covers
        )
        for root in workspace.roots
        for place in PLACES
        if place.kind == kind
    ]


def read_file(path: Path) -> bytes | None:
    """The bytes of a regular file of at most `MAX_BYTES`, links followed; None for anything else. Blocks."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file, contextlib.suppress(OSError):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            data = file.read(MAX_BYTES + 1)
            return data if len(data) <= MAX_BYTES else None
    return None


def _walk(folder: Path, pattern: str, depth: int) -> list[str]:
    """The files below a folder of the user's whose names match: links count, for people keep such files elsewhere."""
    entries = [MAX_ENTRIES]
    names = _matching(folder, "", pattern, depth, entries)
    return sorted(name for name, _ in zip(names, range(MAX_FILES), strict=False))


def _matching(folder: Path, prefix: str, pattern: str, depth: int, entries: list[int]) -> Iterator[str]:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    for name in names:
        entries[0] -= 1
        if entries[0] < 0:
            return
        path = folder / name
        if path.is_dir():
            if prefix.count("/") < depth:
                yield from _matching(path, f"{prefix}{name}/", pattern, depth, entries)
        elif fnmatchcase(name, pattern):
            yield prefix + name


def _below(handle: int, prefix: str, depth: int, entries: list[int]) -> Iterator[str]:
    """All regular files below the folder with that handle; no link is followed."""
    for name in sorted(os.listdir(handle)):
        entries[0] -= 1
        if entries[0] < 0:
            return
        with contextlib.suppress(OSError):
            mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield prefix + name
            elif stat.S_ISDIR(mode) and prefix.count("/") < depth:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                folder = os.open(name, flags, dir_fd=handle)
                try:
                    yield from _below(folder, f"{prefix}{name}/", depth, entries)
                finally:
                    os.close(folder)
