"""Git's objects: looked up, and added as loose ones. Everything here blocks and raises `OSError`."""

import hashlib
import mmap
import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from amanu.storage.errors import sync_file_system
from amanu.storage.file_store import Damaged, FileStore
from amanu.workspace.git.folder import FILE, GitFolder, write_all

_PART = 1 << 20
_MARK = b"\xfftOc\x00\x00\x00\x02"
_FAN, _NAMES, _NAME = 8, 8 + 256 * 4, 20
"""Offsets in the index of a pack, and the bytes of a name (gitformat-pack)."""
_ONE_BY_ONE = 8
"""The most objects that are synced one by one; more are synced at once, with their file system."""


class Objects:
    """The objects of one repository. The stack closes the packs that are opened."""

    def __init__(self, folder: GitFolder, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._packs: list[_PackIndex] | None = None

    def has(self, name: str) -> bool:
        """Whether it is there, loose or packed."""
        return self._folder.status(_place(name)) is not None or any(pack.has(name) for pack in self._opened_packs())

    def missing(self, names: Iterable[str]) -> list[str]:
        """The names of those that are not there; none if the repository can have objects that this does not find."""
        if not self._is_all:
            return []
        return [name for name in dict.fromkeys(names) if not self.has(name)]

    def add(self, stored: Mapping[str, str], store: FileStore, root: Path, token: str) -> None:
        """Write those that are missing, durably. `stored`: name → id of the file in the store; `token`: the mark of our
        temporary names. Raises `Damaged`, also if the content has another name."""
        new = {name: self._folder.temporary(token, name) for name in stored if not self.has(name)}
        for name, temporary in new.items():
            self._write(temporary, name, store.path(stored[name]), alone=len(new) <= _ONE_BY_ONE)
        if len(new) > _ONE_BY_ONE:
            sync_file_system(root)
        for name, temporary in new.items():
            self._folder.rename(temporary, _place(name))
        for folder in {_place(name).rpartition("/")[0] for name in new}:
            self._folder.sync(f"{folder}/-")
        if new:
            self._folder.sync("objects/-")

    def _write(self, temporary: str, name: str, source: Path, *, alone: bool) -> None:
        try:
            handle = os.open(source, FILE)
        except OSError:
            raise Damaged from None
        try:
            with self._folder.created(temporary, 0o444) as new:
                if object_name(handle, lambda part: write_all(new, part)) != name:
                    raise Damaged
                os.fchmod(new, 0o444)
                if alone:
                    os.fsync(new)
        finally:
            os.close(handle)

    @property
    def _is_all(self) -> bool:
        """Whether there are no objects but those that this finds: none in other folders, and none that git fetches when
        it needs them."""
        packs = self._folder.names("objects/pack")
        is_alone = self._folder.status("objects/info/alternates") is None
        is_whole = not any(name.endswith(".promisor") for name in packs)
        return is_alone and is_whole and len(self._opened_packs()) == len([each for each in packs if _is_index(each)])

    def _opened_packs(self) -> "list[_PackIndex]":
        if self._packs is None:
            names = [f"objects/pack/{name}" for name in self._folder.names("objects/pack") if _is_index(name)]
            self._packs = [pack for name in names if (pack := self._opened(name)) is not None]
        return self._packs

    def _opened(self, name: str) -> "_PackIndex | None":
        try:
            handle = self._folder.open(name)
        except OSError:
            return None
        try:
            data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        finally:
            os.close(handle)
        self._stack.callback(data.close)
        return _PackIndex(data) if data[: len(_MARK)] == _MARK else None


class _PackIndex:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data

    def has(self, name: str) -> bool:
        wanted = bytes.fromhex(name)
        begin = self._fan(wanted[0] - 1) if wanted[0] else 0
        names = range(begin, self._fan(wanted[0]))
        at = bisect_left(names, wanted, key=self._name)
        return at < len(names) and self._name(names[at]) == wanted

    def _fan(self, first: int) -> int:
        """The number of names that begin with that byte or a lesser one."""
        (count,) = struct.unpack_from(">I", self._data, _FAN + first * 4)
        return count

    def _name(self, at: int) -> bytes:
        begin = _NAMES + at * _NAME
        return self._data[begin : begin + _NAME]


def object_name(source: int, write: Callable[[bytes], object] = len) -> str:
    """Read the descriptor of a loose object to its end, give each part to `write`, and return the name that its content
    has; "" if it is damaged."""
    unpacking, digest = zlib.decompressobj(), hashlib.sha1(usedforsecurity=False)
    try:
        while part := os.read(source, _PART):
            write(part)
            while part:
                digest.update(unpacking.decompress(part, _PART))
                part = unpacking.unconsumed_tail
        digest.update(unpacking.flush())
    except zlib.error:
        return ""
    return digest.hexdigest() if unpacking.eof and not unpacking.unused_data else ""


def _is_index(name: str) -> bool:
    return name.startswith("pack-") and name.endswith(".idx")


def _place(name: str) -> str:
    return f"objects/{name[:2]}/{name[2:]}"
