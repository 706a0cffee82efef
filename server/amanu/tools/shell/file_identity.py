"""Texts that identify files and their content: an approval is for exactly these files with exactly this content."""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

MAX_STORED = 4 * 1024 * 1024
"""Bytes of the biggest file whose content is stored as it was approved; of a bigger one only the digest is."""
_CHUNK = 1 << 20


def identity(path: str | Path) -> str:
    """A text that changes when another file, folder or link takes that path, and when a file there is written."""
    try:
        status, named = Path(path).stat(), Path(path).lstat()
    except OSError as error:
        return json.dumps([str(path), error.errno])
    parts: list[str | int] = [str(path), status.st_dev, status.st_ino]
    if not os.path.samestat(status, named):
        parts += [named.st_dev, named.st_ino, named.st_ctime_ns]
    if stat.S_ISREG(status.st_mode):
        parts += [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode]
    return json.dumps(parts)


def read_contents(paths: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
    """(path → content of each file up to `MAX_STORED` bytes, one text per path that changes with the file's content and
    mode). Does not follow a link at the path itself, and does not wait for pipes. Blocking."""
    stored: dict[str, bytes] = {}
    digests: list[str] = []
    for path in sorted(set(paths)):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            digests.append(json.dumps([path, error.errno]))
            continue
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                digests.append(json.dumps([path, "no file"]))
                continue
            digest, data = hashlib.sha256(), b""
            while part := file.read(_CHUNK):
                digest.update(part)
                if len(data) <= MAX_STORED:
                    data += part
            if len(data) <= MAX_STORED:
                stored[path] = data
            digests.append(json.dumps([path, status.st_mode, digest.hexdigest()]))
    return stored, digests


def fingerprint(parts: Sequence[str]) -> str:
    """One digest of several texts, unambiguous about where each ends."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
