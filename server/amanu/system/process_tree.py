"""Processes of a command: the environment they get, and how all of them are found and ended, including those that left
their process group."""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from amanu.text.redaction import holds_secret, without_service_access

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL
_GIVE_UP = 3.0  # seconds of SIGKILL; a process that survives hangs in the kernel, and nobody can end it
_POLL = 0.02
_NEVER_PASSED = re.compile(r".*_API_KEY|.*_AUTH_TOKEN|AMANU_.*|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4", re.I)
"""Keys of model services, and variables that make a shell run foreign code. No setting passes these on."""

_IDENTITY = re.compile(r"GIT_(AUTHOR|COMMITTER)_|GIT_TERMINAL_PROMPT$")
_NO_HOOKS = ("core.hooksPath", "/dev/null")
_QUIET_GIT = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("core.sshCommand", "ssh"),
    ("gpg.program", "gpg"),
    ("protocol.ext.allow", "never"),
)


def without_secrets(
    environment: Mapping[str, str],
    key_variables: Collection[str],
    passed: Collection[str] = (),
    *,
    services: bool = False,
) -> dict[str, str]:
    """The environment that a child process may have. `key_variables` hold keys of the user's own endpoints; `passed`
    are variables the user wants passed on although they hold secrets. `services`: the user let the command reach
    services, so it gets the access to them (`DATABASE_URL` with its password, `SSH_AUTH_SOCK` …)."""
    harmless: dict[str, str] = {}
    for name, value in environment.items():
        if _NEVER_PASSED.fullmatch(name) or name in key_variables:
            continue
        if name in passed or (services and not holds_secret(name, value)):
            harmless[name] = value
        elif not holds_secret(name, value) and (reduced := without_service_access(name, value)) is not None:
            harmless[name] = reduced
    return harmless


def without_git_settings(
    environment: Mapping[str, str], *, hooks: bool = False, logs_in: bool = False
) -> dict[str, str]:
    """The environment with git's default settings, so that git runs nothing that a repository or the environment names:
    no pagers, no file system monitors and, unless `hooks`, no hooks. The author's identity stays. `logs_in`: so does
    the user's own way to log in over ssh, which may name their key."""
    harmless = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_") or _IDENTITY.match(name) or (logs_in and name == "GIT_SSH_COMMAND")
    }
    settings = _QUIET_GIT if hooks else (*_QUIET_GIT, _NO_HOOKS)
    for index, (name, value) in enumerate(settings):
        harmless |= {f"GIT_CONFIG_KEY_{index}": name, f"GIT_CONFIG_VALUE_{index}": value}
    return {**harmless, "GIT_CONFIG_COUNT": str(len(settings))}


def with_untouched_index(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with which git writes no index just because files look different from outside: who only looks at
    a repository does not change it."""
    counted = environment.get("GIT_CONFIG_COUNT", "")
    count = int(counted) if counted.isdecimal() else 0
    setting = {f"GIT_CONFIG_KEY_{count}": "diff.autoRefreshIndex", f"GIT_CONFIG_VALUE_{count}": "false"}
    return {**environment, **setting, "GIT_CONFIG_COUNT": str(count + 1), "GIT_OPTIONAL_LOCKS": "0"}


async def end_all(leader: int, mark: str, holders: int = 0) -> int:
    """End the process session of that leader, all its descendants, and every process with `mark` in its environment:
    SIGTERM first, then SIGKILL. Returns how many there were. They are gone when this returns, unless they hang in the
    kernel.

    `holders`: how many processes, the leader and its first descendants, belong to the sandbox around the others. They
    get no SIGTERM, because the others would be killed with them at once, and they are not counted."""
    alive = await asyncio.to_thread(living, leader, mark)
    holding = await asyncio.to_thread(_single_line, leader, holders)
    count = len(alive - holding)
    for term, limit in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GIVE_UP)):
        stop = time.monotonic() + limit
        signalled: set[int] = set()
        while alive and time.monotonic() < stop:
            # Parents, which are older, before their children: a shell whose command has ended would run the next one.
            for pid in sorted(alive - signalled - (holding if term is signal.SIGTERM else set())):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, term)
            signalled |= alive
            await asyncio.sleep(_POLL)
            alive = await asyncio.to_thread(living, leader, mark)
    return count


async def interrupt_all(leader: int, mark: str, holders: int = 0) -> None:
    """Send SIGINT, as Ctrl-C does, to the processes that `end_all` would end."""
    alive = await asyncio.to_thread(living, leader, mark)
    for pid in alive - await asyncio.to_thread(_single_line, leader, holders):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGINT)


def living(leader: int, mark: str) -> set[int]:
    """The ids of the processes `end_all` ends. Without /proc (macOS) only the process group is visible: its leader's
    negative id stands for it."""
    if not Path("/proc/self/stat").exists():
        try:
            os.killpg(leader, 0)
        except (ProcessLookupError, PermissionError):
            return set()
        return {-leader}
    parents: dict[int, int] = {}
    processes: set[int] = set()
    needle = mark.encode()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            # The fields after the command's name, which may hold anything: state, parent, group, session.
            state, parent, group, session = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()[:4]
            if state in (b"Z", b"X") or pid == os.getpid():
                continue
            parents[pid] = int(parent)
            if leader in (pid, int(group), int(session)) or needle in _read(f"/proc/{name}/environ").split(b"\0"):
                processes.add(pid)
        except (OSError, ValueError):
            continue  # it has ended, or belongs to another user
    while children := {pid for pid, parent in parents.items() if parent in processes} - processes:
        processes |= children
    return processes


def start_time(pid: int) -> int | None:
    """When the process began, in the kernel's ticks since boot: with its id this names one process only. None when it
    is gone, or where there is no /proc."""
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _single_line(leader: int, length: int) -> set[int]:
    """The process and its descendants while each has only one child; at most `length` of them."""
    line: list[int] = []
    pid: int | None = leader
    while pid is not None and len(line) < length:
        line.append(pid)
        try:
            children = _read(f"/proc/{pid}/task/{pid}/children").split()
        except OSError:
            children = []
        pid = int(children[0]) if len(children) == 1 else None
    return set(line)


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        while part := os.read(handle, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)
