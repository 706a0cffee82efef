"""Whole files that are either there, durable and complete, or not there."""

import contextlib
import hashlib
import os
import re
import tempfile
from pathlib import Path

from amanu.storage.errors import sync_folder
from amanu_protocol.errors import AmanuError

_UNFINISHED = ".tmp-"
_BLOB_ID = re.compile(r"[0-9a-f]{64}\Z")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file through a temporary one beside it: after a crash the old or the new is there, never a part.

    Durable on return; readable by its owner only. Raises `OSError`, leaving nothing behind.
    """
    descriptor, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105  (str in, as mkstemp gave it)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
    sync_folder(path.parent)


def size(folder: Path) -> int:
    """Bytes of the files in a folder; 0 when there is none. Raises `OSError`."""
    if not folder.is_dir():
        return 0
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # a temporary one, just renamed
                total += entry.stat(follow_symlinks=False).st_size
    return total


def write_blob(folder: Path, data: bytes, blob_id: str | None = None) -> str:
    """Keep bytes under their SHA-256 (`blob_id`, if it is known), which is returned; the same bytes only once. Raises
    `OSError`."""
    blob_id = blob_id or hashlib.sha256(data).hexdigest()
    path = folder / blob_id
    if not path.exists():
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
        write_whole(path, data)
    return blob_id


def read_blob(folder: Path, blob_id: str) -> bytes:
    """The bytes of that id. Raises `AmanuError` `blobNotFound` when unknown, gone, or not what they were."""
    data = None
    if _BLOB_ID.match(blob_id):  # anything else might be a path
        with contextlib.suppress(OSError):
            data = (folder / blob_id).read_bytes()
    if data is None:
        raise AmanuError("blobNotFound", "This output was not kept, or its session was removed.")
    if hashlib.sha256(data).hexdigest() != blob_id:
        raise AmanuError("blobNotFound", "This output was damaged on the disk and cannot be shown.")
    return data


def find_blob(folder: Path, beginning: str) -> str:
    """The id that begins so; what was given when it is not exactly one. Any text may be given: none is taken for a
    path."""
    if re.fullmatch(r"[0-9a-f]{8,64}", beginning) is None:
        return beginning
    matches = [path.name for path in folder.glob(f"{beginning}*")]
    return matches[0] if len(matches) == 1 else beginning


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that died while writing blobs left. Only for who holds the lease."""
    for path in folder.glob(f"{_UNFINISHED}*"):
        path.unlink(missing_ok=True)
