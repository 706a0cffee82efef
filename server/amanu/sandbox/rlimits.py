"""What the kernel holds a command to: how large a file, how many processes and open files; that it leaves no core; and
how much memory, where nobody was asked about it.

Set on the way into the command (`way_in`), inside its sandbox, never in the daemon between fork and exec, which has
threads. Memory is what a process may write to, its data: address space is no measure of it (Go, Java, node and
sanitizers reserve terabytes of it).
"""

import contextlib
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from amanu.sandbox.entry_shell import EntryShell

OPEN_FILES = 65_536
"""That the daemon asks for itself: journals, sockets and pipes of many sessions. Login shells give 1,024."""
FILE_BYTES = 64 << 30
"""Of one file a command writes. Far above any build, far below a runaway `yes > x` on a large disk."""
MORE_PROCESSES = 4_096
"""Beside those the machine runs: a parallel build has a few hundred, a fork bomb has them in a second."""


LEAST_MEMORY = 1 << 30
"""Of one process, on small machines."""


class KernelLimits(NamedTuple):
    """For one command. None: not set here (the system does not tell, or does not know such a limit)."""

    file_bytes: int
    processes: int | None
    """Of this user, in a user namespace those that are in it; threads too. The kernel does not hold root to it."""
    open_files: int | None
    """The soft limit the daemon was started with: programs that use `select` break above 1,024."""
    memory: int | None = None
    """Bytes of one process."""


_given_files: int | None = None


def raise_file_limit(want: int = OPEN_FILES) -> int | None:
    """Let this process open up to `want` files, as far as the system allows. Returns the limit now, None where there is
    none to be had (Windows). Commands get the old one back (`limits`)."""
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
    """What holds for a command that starts now; of memory, one of so many parts of this machine's, None: all of it.
    Reads one line of /proc."""
    memory = None if parts is None or (all_of_it := _memory()) is None else max(LEAST_MEMORY, all_of_it // parts)
    return KernelLimits(FILE_BYTES, _processes(), _given_files, memory)


def limited_entry_shell(bash: str, requested: KernelLimits | None = None) -> EntryShell:
    """Into a command that is held to the limits. One the system refuses is left out; the command runs all the same.
    POSIX only."""
    effective = requested or limits()
    memory = None if effective.memory is None else effective.memory >> 10
    ulimits = [
        ("c", 0),
        ("f", effective.file_bytes >> 10),
        ("u", effective.processes),
        ("n", effective.open_files),
        ("d", memory),
    ]
    # Hard and soft: a command cannot take them back. Of open files only the soft one: node and others raise it.
    steps = [
        f"ulimit -{'S' * (letter == 'n')}{letter} {value} 2>/dev/null" for letter, value in ulimits if value is not None
    ]
    # `-f` counts in blocks of 1,024 bytes in bash, of 512 in POSIX mode.
    return EntryShell(bash, ("set +o posix", *steps))


def _processes() -> int | None:
    """All of this machine that run now, and some more."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2]) + MORE_PROCESSES
    except (OSError, ValueError, IndexError):
        return None


@cache
def _memory() -> int | None:
    """Bytes of this machine, or of the container we are in."""
    sizes: list[int] = []
    for path, field in (("/proc/meminfo", 1), ("/sys/fs/cgroup/memory.max", 0)):
        with contextlib.suppress(OSError, ValueError, IndexError):
            sizes.append(int(Path(path).read_text().split()[field]) << (10 if field else 0))
    return min(sizes, default=None)
