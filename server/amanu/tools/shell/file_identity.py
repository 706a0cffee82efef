"""Which files these are, and what is in them: what an approval is bound to (facts/security.md §8.1)."""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

MAX_STORED = 4 * 1024 * 1024
"""Bytes of one file that are kept as they were approved; of a bigger one only the digest."""
_CHUNK = 1 << 20


def identity(path: str | Path) -> str:
    """A text that changes when there is another file, folder or link at that path; of a file also when it was
    written."""
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
    """(path → bytes of files that can be kept, a text for each file that changes with its bytes and its mode). Follows
    no link in the last place, waits for no pipe."""
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
    """One digest of texts, none of which can run into the next."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
