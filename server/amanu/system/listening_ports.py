"""The TCP ports that a command listens on, in its own network namespace or in ours (Linux)."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_LISTENS = "0A"
_MAX_PROCESSES = 500


def listening_ports(leader: int) -> list[int]:
    """The ports that the process and its descendants accept connections on, lowest first. Empty where there is no
    /proc. Blocking."""
    sockets: set[str] = set()
    tables: dict[str, int] = {}
    """A process of each network namespace."""
    for pid in _family(leader):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
                    if target.startswith("socket:["):
                        sockets.add(target[8:-1])
            tables.setdefault(os.readlink(f"/proc/{pid}/ns/net"), pid)  # noqa: PTH115
    if not sockets:
        return []
    return sorted({port for pid in tables.values() for port in _listening(pid, sockets)})


def _family(leader: int) -> Iterator[int]:
    todo, visited = [leader], set[int]()
    while todo and len(visited) < _MAX_PROCESSES:
        pid = todo.pop()
        if pid in visited:
            continue
        visited.add(pid)
        yield pid
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                with contextlib.suppress(OSError, ValueError):
                    todo += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())


def _listening(pid: int, sockets: set[str]) -> Iterator[int]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTENS and fields[9] in sockets:
                    yield int(fields[1].rpartition(":")[2], 16)
