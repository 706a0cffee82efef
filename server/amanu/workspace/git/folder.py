"""A repository's `.git` folder, opened so that no link in it is followed. All of it blocks and raises `OSError`."""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags that open a file to read it, without waiting for a writer if it is a pipe."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_TEMPORARY = ".amanu-tmp"
_SETTINGS = 1 << 18
_EXTENSION = rb"^\s*(?:\[\s*extensions\s*\]\s*)?"
_OTHER_HASH = re.compile(_EXTENSION + rb"(?:compat)?objectformat\s*=\s*(?!\s|\"?sha1\b)", re.I | re.M)
_OTHER_REFS = re.compile(_EXTENSION + rb"refstorage\s*=\s*(?!\s|\"?files\b)", re.I | re.M)


class UnknownRepository(Exception):
    """The repository is of a kind that Amanu does not change. `str()` names the kind, as a noun phrase."""


class GitFolder:
    """An opened `.git` folder. Names are relative to it, with "/" between their parts."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    @contextmanager
    def opened(cls, root: Path) -> Generator["GitFolder"]:
        """A context with the `.git` of that folder. Raises `UnknownRepository`."""
        with ExitStack() as stack:
            top = os.open(root, _FOLDER)
            stack.callback(os.close, top)
            found = os.stat(".git", dir_fd=top, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                raise UnknownRepository("a linked worktree, a submodule, or a repository elsewhere")
            handle = os.open(".git", _FOLDER, dir_fd=top)
            stack.callback(os.close, handle)
            folder = cls(handle)
            if kind := folder._unknown_kind():
                raise UnknownRepository(kind)
            yield folder

    def _unknown_kind(self) -> str:
        if self.status("commondir") is not None:
            return "a linked worktree"
        settings = self.read("config", _SETTINGS) or b""
        if _OTHER_HASH.search(settings):
            return "a repository with other hashes than SHA-1"
        if self.status("reftable") is not None or _OTHER_REFS.search(settings):
            return "a repository with reftables"
        return ""

    def status(self, name: str) -> os.stat_result | None:
        """The result of `lstat`; None for nothing."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(name) as (folder, last):
            return os.stat(last, dir_fd=folder, follow_symlinks=False)
        return None

    def is_folder(self, name: str) -> bool:
        found = self.status(name)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def read(self, name: str, limit: int = -1) -> bytes | None:
        """The content of a file, at most `limit` bytes; None if there is nothing, or a folder. Raises `OSError` for
        anything else."""
        try:
            with self._parent(name) as (folder, last), open(os.open(last, FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "not a regular file", f".git/{name}")
                return file.read(limit)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def open(self, name: str) -> int:
        """A descriptor of a file, to read from."""
        with self._parent(name) as (folder, last):
            return os.open(last, FILE, dir_fd=folder)

    def names(self, name: str = ".") -> list[str]:
        """The names in a folder; none where there is no folder."""
        try:
            with self._parent(f"{name}/.") as (folder, _):
                handle = os.open(".", _FOLDER, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        try:
            return os.listdir(handle)  # noqa: PTH208 (of a handle)
        finally:
            os.close(handle)

    def files(self, name: str) -> Iterator[str]:
        """The names of all files in a folder and in those in it."""
        for each in self.names(name):
            path = f"{name}/{each}"
            if self.is_folder(path):
                yield from self.files(path)
            else:
                yield path

    def write(self, name: str, data: bytes, like: str = "") -> None:
        """Make a new file with that content, durably, and with the mode of the file `like`, if there is one."""
        found = self.status(like) if like else None
        with self.created(name) as handle:
            if found is not None:
                os.fchmod(handle, stat.S_IMODE(found.st_mode))
            write_all(handle, data)
            os.fsync(handle)

    @contextmanager
    def created(self, name: str, mode: int = 0o666) -> Generator[int]:
        """A context with the descriptor of a new file, which replaces any of that name."""
        self.unlink(name)
        with self._parent(name) as (folder, last):
            handle = os.open(last, _NEW, mode, dir_fd=folder)
        try:
            yield handle
        finally:
            os.close(handle)

    def link(self, name: str, target: str) -> None:
        """Give a file a second name. Raises `FileExistsError`."""
        with self._parent(name) as (source, last), self._parent(target, make=True) as (folder, new):
            os.link(last, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)

    def rename(self, name: str, target: str) -> None:
        """Rename a file to `target`, which is replaced even if it is a folder that holds only empty folders."""
        with self._parent(name) as (source, last), self._parent(target, make=True) as (folder, new):
            try:
                os.rename(last, new, src_dir_fd=source, dst_dir_fd=folder)
            except IsADirectoryError:
                self.remove_empty(target)
                os.rename(last, new, src_dir_fd=source, dst_dir_fd=folder)

    def unlink(self, name: str) -> None:
        """Remove a file, if there is one."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(name) as (folder, last):
            os.unlink(last, dir_fd=folder)

    def remove_empty(self, name: str) -> None:
        """Remove a folder that holds only empty folders."""
        for each in self.names(name):
            self.remove_empty(f"{name}/{each}")
        with self._parent(name) as (folder, last):
            os.rmdir(last, dir_fd=folder)

    def prune(self, name: str, depth: int) -> None:
        """Remove the empty folders above a name, but not the topmost `depth`."""
        parts = name.split("/")[:-1]
        with contextlib.suppress(OSError):
            while len(parts) > depth:
                with self._parent("/".join(parts)) as (folder, last):
                    os.rmdir(last, dir_fd=folder)
                parts.pop()

    def sync(self, name: str) -> None:
        """Make the names in that one's folder durable, if the file system can."""
        with contextlib.suppress(OSError), self._parent(name) as (folder, _):
            os.fsync(folder)

    def temporary(self, token: str, what: str) -> str:
        """The name of a temporary file of ours, the same after a kill."""
        return f"{_prefix(token)}{what}{_TEMPORARY}"

    def remove_temporary(self, token: str) -> None:
        """Remove all temporary files with that token."""
        for name in self.names():
            if name.startswith(_prefix(token)) and name.endswith(_TEMPORARY):
                self.unlink(name)

    def has_temporary(self, token: str) -> bool:
        return any(name.startswith(_prefix(token)) and name.endswith(_TEMPORARY) for name in self.names())

    @contextmanager
    def _parent(self, name: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """The opened folder that holds a name, and the last part of the name. `make`: make the folders that are
        missing."""
        *parents, last = name.split("/")
        with ExitStack() as stack:
            folder = self._handle
            for parent in parents:
                try:
                    below = os.open(parent, _FOLDER, dir_fd=folder)
                except FileNotFoundError:
                    if not make:
                        raise
                    with contextlib.suppress(FileExistsError):  # another git made it just now
                        os.mkdir(parent, dir_fd=folder)
                    below = os.open(parent, _FOLDER, dir_fd=folder)
                stack.callback(os.close, below)
                folder = below
            yield folder, last


def write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _prefix(token: str) -> str:
    return f".{token}-"
