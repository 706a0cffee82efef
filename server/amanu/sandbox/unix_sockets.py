"""Unix sockets that somebody outside the sandbox serves. The kernel tells of a socket that is bound the name it was
bound to, as the server wrote it. What serves in a container is not told; the environment may name that.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_TABLE = Path("/proc/net/unix")
_FIELDS = 7
"""Before the name."""
_ABSOLUTE = re.compile(r"/[^\s,;:]+")
"""In a value of the environment: `unix:path=/run/user/1000/bus,guid=…`, `/tmp/tmux-1000/default,7,0`."""


def served_sockets(sockets: Iterable[Path], names: Iterable[bytes]) -> tuple[Path, ...]:
    """Of these sockets, those that are served; the others are left over, and a command may well remove them. A server
    may have written the way to its own in any manner: the last part of the names is compared."""
    candidates = tuple(sockets)
    last = {name.rpartition(b"/")[2] for name in names} if candidates else set[bytes]()
    return tuple(socket_path for socket_path in candidates if os.fsencode(socket_path.name) in last)


def outside_sockets(
    names: Iterable[bytes], environment: Mapping[str, str], is_visible: Callable[[str], bool]
) -> list[Path]:
    """Sockets by their whole paths that a command would see: who connects needs no right to write where they are, so
    none that is shown can be left open. Real paths. Blocking."""
    socket_paths = [os.fsdecode(name) for name in names if name.startswith(b"/")]
    socket_paths += [path for value in environment.values() if "/" in value for path in _ABSOLUTE.findall(value)]
    return [
        Path(os.path.realpath(path)) for path in dict.fromkeys(socket_paths) if _is_socket(path) and is_visible(path)
    ]


def bound_names() -> list[bytes] | None:
    """The names of unix sockets here that have one; None where the system does not tell. Blocking."""
    try:
        lines = _TABLE.read_bytes().splitlines()
    except OSError:
        return None
    parts = (line.split(maxsplit=_FIELDS) for line in lines)
    return [fields[_FIELDS] for fields in parts if len(fields) > _FIELDS]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False
