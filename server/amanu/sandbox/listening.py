"""Unix sockets that somebody outside the sandbox serves. The kernel tells of a socket that listens the name it was
bound to, as the server wrote it: the last part is compared. What serves in a container is not told."""

import os
from collections.abc import Iterable
from pathlib import Path

_TABLE = Path("/proc/net/unix")
_FIELDS = 7
"""Before the name."""


def served(sockets: Iterable[Path]) -> tuple[Path, ...]:
    """Of these sockets, those that are served; the others are left over, and a command may well remove them. All of
    them where the system does not tell. Blocking; reads nothing when there are none."""
    found = tuple(sockets)
    if not found:
        return ()
    try:
        lines = _TABLE.read_bytes().splitlines()
    except OSError:
        return found
    parts = (line.split(maxsplit=_FIELDS) for line in lines)
    names = {each[_FIELDS].rpartition(b"/")[2] for each in parts if len(each) > _FIELDS}
    return tuple(each for each in found if os.fsencode(each.name) in names)
