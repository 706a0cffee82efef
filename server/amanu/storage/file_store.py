"""Files of one session that are not text, stored durably, and as a whole or not at all.

    SESSION/files/<id>         the id is the SHA-256 of the content, so that each content is stored once; a very large
                               file gets a random id that ends with its size, and is stored each time
    SESSION/files/<id>         a folder with all that is in it; while it is in the workspace, it is not here
    SESSION/files/<id>.list    what is in that folder (system/folder_list.py); its SHA-256 is the end of the id

They are streamed, so that even a large one takes little memory. None of them is ever a hard link to a file that
something else may write. Everything here blocks, and raises `OSError`.
"""

import contextlib
import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

from amanu.storage.errors import sync_file_system, sync_folder
from amanu.system.folder_list import Listing, list_folder, listed_size
from amanu.system.sparse_files import copy_data

MAX_HASHED = 1 << 30
"""Bytes up to which a file is identified by its content; a larger one gets a random id."""
_PART = 1 << 20
_UNFINISHED = ".tmp-"
_LARGE = "large-"
_TREE = "tree-"
_LIST = ".list"
_HEAD = 32
"""Enough bytes of a list to contain the size of its folder, which comes first."""
_ID = re.compile(r"[0-9a-f]{64}|large-[0-9a-f]{16}(?:-(?P<size>[0-9]{1,20}))?|tree-[0-9a-f]{16}-[0-9a-f]{64}", re.ASCII)
"""An older Amanu noted no size."""


class Damaged(Exception):
    """A stored file is missing, or is no longer what it was."""


class FileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file_id: str) -> Path:
        """The path of that file, which may be missing. Raises `Damaged` for anything that is not an id."""
        if not _ID.fullmatch(file_id):
            raise Damaged
        return self._folder / file_id

    def has(self, file_id: str) -> bool:
        is_there = Path.is_dir if file_id.startswith(_TREE) else Path.is_file
        return bool(_ID.fullmatch(file_id)) and is_there(self.path(file_id))

    def is_whole(self, file_id: str) -> bool:
        """Whether the file is there and unchanged. Only the size of a very large one is checked, and only the
        list of a folder."""
        if file_id.startswith(_TREE):
            try:
                return self.has(file_id) and self.is_listed(file_id, list_folder(self.path(file_id)))
            except OSError:
                return False
        try:
            handle = self._open(file_id)
        except (Damaged, OSError):
            return False
        try:
            return file_id.startswith(_LARGE) or hashed(handle) == file_id
        finally:
            os.close(handle)

    def size(self) -> int:
        """Bytes of all its files."""
        if not self._folder.is_dir():
            return 0
        with os.scandir(self._folder) as entries:
            return sum(
                self._folder_size(entry.name) if entry.is_dir() else entry.stat(follow_symlinks=False).st_size
                for entry in entries
            )

    def add(self, source: int) -> str:
        """Store a copy of the file that the descriptor refers to; it is durable after `sync`. Returns its id."""
        self._make()
        is_hashed = os.fstat(source).st_size <= MAX_HASHED
        handle, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                if is_hashed:
                    file_id = hashed(source, file.write)
                    file.flush()
                else:
                    copy_data(source, file)
                    file.flush()
                    file_id = f"{_LARGE}{token_hex(8)}-{os.fstat(file.fileno()).st_size}"
                os.fsync(file.fileno())
            os.replace(name, self.path(file_id))  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108
            raise
        return file_id

    def add_bytes(self, data: bytes) -> str:
        """Store these bytes and return their id, like `add`."""
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            file.seek(0)
            return self.add(file.fileno())

    def sync(self) -> None:
        """Make all added files durable; call it once for many, because it takes as long as writing one."""
        if self._folder.is_dir():
            sync_folder(self._folder)

    def add_folder(self, source: Path, listing: Listing) -> str:
        """Move a folder from the same file system into the store; it is durable then. Returns its id."""
        self._make()
        data = listing.encode()
        file_id = f"{_TREE}{token_hex(8)}-{hashlib.sha256(data).hexdigest()}"
        self._list(file_id).write_bytes(data)
        os.rename(source, self.path(file_id))  # noqa: PTH104
        sync_file_system(self._folder)
        return file_id

    def listed(self, file_id: str) -> bytes:
        """The list of that folder, encoded. Raises `Damaged`."""
        try:
            data = self._list(file_id).read_bytes()
        except FileNotFoundError:
            raise Damaged from None
        if hashlib.sha256(data).hexdigest() != file_id.rpartition("-")[2]:
            raise Damaged
        return data

    def is_listed(self, file_id: str, listing: Listing) -> bool:
        """Whether that is the list of that folder."""
        try:
            return listing.encode() == self.listed(file_id)
        except Damaged:
            return False

    def copy(self, file_id: str, target: Path, mode: int) -> None:
        """Copy that file to a new path. Raises `Damaged`."""
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self.write(file_id, handle)
            os.fchmod(handle, mode)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)

    def write(self, file_id: str, target: int) -> None:
        """Copy that file into the empty file with the descriptor `target`. Raises `Damaged`."""
        source = self._open(file_id)
        try:
            with os.fdopen(target, "wb", closefd=False) as file:
                if file_id.startswith(_LARGE):
                    copy_data(source, file)
                elif hashed(source, file.write) != file_id:
                    raise Damaged
        finally:
            os.close(source)

    def read(self, file_id: str) -> bytes:
        """The content of a file that is small enough to be hashed. Raises `Damaged`."""
        source, parts = self._open(file_id), list[bytes]()
        try:
            if hashed(source, parts.append) != file_id:
                raise Damaged
        finally:
            os.close(source)
        return b"".join(parts)

    def is_same(self, file_id: str, other: int) -> bool:
        """Whether the file that the descriptor refers to has the content with that id."""
        if not file_id.startswith(_LARGE):
            return bool(file_id) and hashed(other) == file_id
        try:
            source = self._open(file_id)
        except Damaged:
            return False
        try:
            return _are_equal(source, other)
        finally:
            os.close(source)

    def _open(self, file_id: str) -> int:
        """A descriptor of that file. Raises `Damaged` if it is missing, or not of the size that its id may name."""
        try:
            handle = os.open(self.path(file_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
                raise Damaged from None
            raise
        found, named = os.fstat(handle), _ID.fullmatch(file_id)
        size = named and named["size"]
        if not stat.S_ISREG(found.st_mode) or (size and int(size) != found.st_size):
            os.close(handle)
            raise Damaged
        return handle

    def _list(self, file_id: str) -> Path:
        return self.path(file_id).with_name(f"{file_id}{_LIST}")

    def _folder_size(self, name: str) -> int:
        try:
            with (self._folder / f"{name}{_LIST}").open("rb") as file:
                return listed_size(file.read(_HEAD))
        except (OSError, ValueError):
            return 0

    def _make(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self._folder.parent)


def _are_equal(one: int, other: int) -> bool:
    if os.fstat(one).st_size != os.fstat(other).st_size:
        return False
    while part := os.read(one, _PART):
        if os.read(other, len(part)) != part:
            return False
    return True


def hashed(source: int, write: Callable[[bytes], object] = len) -> str:
    """Read the descriptor to its end, give each part to `write`, and return the SHA-256 of it all."""
    digest = hashlib.sha256()
    while part := os.read(source, _PART):
        digest.update(part)
        write(part)
    return digest.hexdigest()
