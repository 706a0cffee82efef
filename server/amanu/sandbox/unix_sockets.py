"""Find unix sockets that are served from outside the sandbox. The kernel lists bound sockets by the names their servers
used. It does not list those served from containers, but the environment may name them.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_TABLE = Path("/proc/net/unix")
_FIELDS = 7
"""How many fields precede the name in the table."""
_ABSOLUTE = re.compile(r"/[^\s,;:]+")
"""A path in an environment variable: `unix:path=/run/user/1000/bus,guid=…`, `/tmp/tmux-1000/default,7,0`."""


def served_sockets(sockets: Iterable[Path], names: Iterable[bytes]) -> tuple[Path, ...]:
    """Those of the sockets that are served; the others are leftovers that a command may remove. A server may have
    written its path in any form, so only the last part is compared."""
    candidates = tuple(sockets)
    last = {name.rpartition(b"/")[2] for name in names} if candidates else set[bytes]()
    return tuple(socket_path for socket_path in candidates if os.fsencode(socket_path.name) in last)


def outside_sockets(
    names: Iterable[bytes], environment: Mapping[str, str], is_visible: Callable[[str], bool]
) -> list[Path]:
    """Real paths of the sockets named by absolute path that a command would see. Connecting needs no write access to
    their folder, so every visible one must be closed. Blocking."""
    socket_paths = [os.fsdecode(name) for name in names if name.startswith(b"/")]
    socket_paths += [path for value in environment.values() if "/" in value for path in _ABSOLUTE.findall(value)]
    return [
        Path(os.path.realpath(path)) for path in dict.fromkeys(socket_paths) if _is_socket(path) and is_visible(path)
    ]


def bound_names() -> list[bytes] | None:
    """The names of all bound unix sockets; None where the system does not tell. Blocking."""
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
