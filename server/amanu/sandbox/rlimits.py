"""Resource limits of a command: file size, processes, open files, no core dumps, and memory where nobody approved it.

They are set by the command's entry shell (`limited_entry_shell`), inside its sandbox, since the daemon has threads and
must do nothing between fork and exec. Memory means a process's data, which it can write: address space is no measure
of it (Go, Java, node and sanitizers reserve terabytes).
"""

import contextlib
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from amanu.sandbox.entry_shell import EntryShell

OPEN_FILES = 65_536
"""How many the daemon asks for itself, for journals, sockets and pipes of many sessions. Login shells allow 1,024."""
FILE_BYTES = 64 << 30
"""Largest file a command may write. Far above any build, far below a runaway `yes > x` on a large disk."""
MORE_PROCESSES = 4_096
"""How many a command may add to those that run: a parallel build has a few hundred, a fork bomb this many in a
second."""


LEAST_MEMORY = 1 << 30
"""The least memory limit of one process in bytes, for small machines."""


class KernelLimits(NamedTuple):
    """The limits of one command. None: not set, since the system does not tell the value or has no such limit."""

    file_bytes: int
    processes: int | None
    """Processes and threads of this user, or in the user namespace. The kernel does not apply it to root."""
    open_files: int | None
    """The soft limit the daemon was started with: programs that use `select` break above 1,024."""
    memory: int | None = None
    """Bytes of one process."""


_given_files: int | None = None


def raise_file_limit(want: int = OPEN_FILES) -> int | None:
    """Let this process open up to `want` files, as far as the system allows. Returns the new limit, or None on Windows,
    which has none. Commands get the original one (`limits`)."""
    global _given_files
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _given_files is None:
        _given_files = soft
    target = want if hard == resource.RLIM_INFINITY else min(want, hard)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return soft
    with contextlib.suppress(ValueError, OSError):  # macOS allows less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def limits(parts: int | None = None) -> KernelLimits:
    """The limits of a command that starts now. Its memory is this machine's divided by `parts`; None: not limited.
    Reads one line of /proc."""
    memory = None if parts is None or (all_of_it := _memory()) is None else max(LEAST_MEMORY, all_of_it // parts)
    return KernelLimits(FILE_BYTES, _processes(), _given_files, memory)


def limited_entry_shell(bash: str, requested: KernelLimits | None = None) -> EntryShell:
    """A shell that enters a command with these limits. A limit that the system refuses is skipped, and the command
    still runs. POSIX only."""
    effective = requested or limits()
    memory = None if effective.memory is None else effective.memory >> 10
    ulimits = [
        ("c", 0),
        ("f", effective.file_bytes >> 10),
        ("u", effective.processes),
        ("n", effective.open_files),
        ("d", memory),
    ]
    # Hard and soft, so a command cannot raise them. Of open files only the soft one, since node and others raise it.
    steps = [
        f"ulimit -{'S' * (letter == 'n')}{letter} {value} 2>/dev/null" for letter, value in ulimits if value is not None
    ]
    # `-f` counts in blocks of 1,024 bytes in bash, of 512 in POSIX mode.
    return EntryShell(bash, ("set +o posix", *steps))


def _processes() -> int | None:
    """The processes that run on this machine now, plus `MORE_PROCESSES`."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2]) + MORE_PROCESSES
    except (OSError, ValueError, IndexError):
        return None


@cache
def _memory() -> int | None:
    """The memory of this machine or of the container we are in, in bytes."""
    sizes: list[int] = []
    for path, field in (("/proc/meminfo", 1), ("/sys/fs/cgroup/memory.max", 0)):
        with contextlib.suppress(OSError, ValueError, IndexError):
            sizes.append(int(Path(path).read_text().split()[field]) << (10 if field else 0))
    return min(sizes, default=None)
