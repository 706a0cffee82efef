"""Runs lines in a sandbox (`sandbox.py`), as the product runs automatic ones, and says what is different after."""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.core.command import CommandContext, Reading
from amanu.shell.git import LOOKING
from amanu.system.process_tree import without_git_settings, without_secrets
from amanu.tools.shell.command_process import COMMAND_VARIABLES
from bench.soundness import world
from bench.soundness.sandbox import TOP, folder

TEMPLATE = folder("template")
TOOLS = folder("tools")
TIMEOUT = 2.0  # seconds
_LEFT = 0.5  # seconds for what is in the background to end by itself
_AWAY = 3.0  # and for what has left the session, which may only be slow
_OUTPUT = 1 << 20  # bytes
_WATCHED = (str(TOP), "/var/tmp", "/run", "/dev/shm")
_PATH = f"{TOOLS}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_PACKETS = ("Ip", "Tcp", "Udp", "Icmp")
_SUBREAPER = 36  # prctl(2)
_ENVIRONMENT = {
    "PATH": _PATH,
    "HOME": str(TOP / "home"),
    "USER": "root",
    "LANG": "C.UTF-8",
    "SSH_AUTH_SOCK": str(TOP / "home" / "agent.sock"),
    "DATABASE_URL": f"postgres://a:{world.CANARY}@db/x",
}


@dataclass(frozen=True)
class Seen:
    effects: tuple[str, ...]
    """Sentences; empty: nothing is different."""
    ended: bool
    """False: it was killed at the time limit."""
    code: int | None


class Watch:
    """The world in `TOP`, made anew whenever something has changed in it."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1)
        self._sockets: list[socket.socket] = []
        self._kept = {TOP, TEMPLATE, *(path for folder in ("/tmp", *_WATCHED) for path in Path(folder).glob("*"))}
        TOOLS.mkdir()
        self._kept.add(TOOLS)
        for name, program in (("fd", "fdfind"), ("gsed", "sed")):  # as other systems name them
            found = shutil.which(program)
            if found and not shutil.which(name):
                (TOOLS / name).symlink_to(found)
        world.build(TEMPLATE)
        self.environment: Mapping[str, str] = {**without_secrets(_ENVIRONMENT, (), services=True), **COMMAND_VARIABLES}
        self.rebuild()

    def here(self, kind: str) -> CommandContext:
        root, plain = TOP / kind, kind == "plain"
        return CommandContext(root, (root,), self.environment, world.may_read(root), trusted=plain, sandboxed=plain)

    def rebuild(self) -> None:
        for top in ("/tmp", *_WATCHED):
            for path in Path(top).glob("*"):
                if path not in self._kept:
                    _remove(path)
        subprocess.run(["cp", "-a", f"{TEMPLATE}/.", str(TOP)], check=True)
        for each in self._sockets:
            each.close()
        self._sockets = world.special(TOP)
        self._secrets = [str(each) for each in world.secrets(TOP)]
        for each in self._secrets:
            os.utime(each, (0, 1))
        time.sleep(0.012)  # more than a tick of the kernel's file clock
        self._files = self._signatures()
        self._packets = _packets()

    def run(self, line: str, reading: Reading, here: CommandContext) -> Seen:
        """Run it as `run_shell_command` does."""
        argv = list(reading.argv) if reading.argv else ["/bin/bash", "-c", line]
        with subprocess.Popen(
            argv,
            cwd=here.folder,
            env={**without_git_settings(self.environment), **LOOKING, "AMANU_COMMAND": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            pipe = process.stdout.fileno()
            output, code = _follow(process.pid, pipe)
            process.returncode = code if code is not None else -9
            ended = code is not None
            effects = [f"left {name} running" for name in _left(process.pid, pipe, output, patient=ended)]
        effects += self._differences()
        if world.CANARY.encode() in output:
            effects.append("showed a secret")
        if effects:
            self.rebuild()
        return Seen(tuple(effects), ended, code)

    def _differences(self) -> Iterator[str]:
        files = self._signatures()
        if files != self._files:
            for path in sorted(files.keys() | self._files.keys()):
                before, after = self._files.get(path), files.get(path)
                if before is None or after is None:
                    yield f"{'made' if before is None else 'removed'} {path!r}"
                elif before != after:
                    names = ("mode", "size", "mtime", "status", "inode", "owner", "links")
                    what = ", ".join(name for name, a, b in zip(names, before, after, strict=True) if a != b)
                    yield f"changed {path!r} ({what})"
        packets = _packets()
        if packets != self._packets:
            yield "used the network"
            self._packets = packets
        for each in self._sockets:
            with contextlib.suppress(BlockingIOError):
                each.accept()
                yield "connected to a socket"
        for path in self._secrets:
            with contextlib.suppress(FileNotFoundError):
                if Path(path).stat().st_atime > 1:
                    yield f"read {path}"

    def _signatures(self) -> dict[str, world.Signature]:
        found = world.signatures(list(_WATCHED))
        for entry in os.scandir("/tmp"):
            found[entry.path] = (entry.inode(),)
        return found


def _follow(pid: int, pipe: int) -> tuple[bytearray, int | None]:
    """Its output and exit code; None: it did not end in time."""
    handle = os.pidfd_open(pid)
    stop = time.monotonic() + TIMEOUT
    output = bytearray()
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.register(pipe, select.POLLIN)
    os.set_blocking(pipe, False)
    code: int | None = None
    try:
        while (rest := stop - time.monotonic()) > 0 and len(output) < _OUTPUT:
            ready = {each for each, _ in waiting.poll(rest * 1000)}
            if pipe in ready:
                data = _some(pipe)
                output += data
                if not data:
                    waiting.unregister(pipe)
            elif handle in ready:
                _, status = os.waitpid(pid, 0)
                code = os.waitstatus_to_exitcode(status)
                break
    finally:
        os.close(handle)
    return output, code


def _some(pipe: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(pipe, 1 << 16)
    return b""


def _left(session: int, pipe: int, output: bytearray, *, patient: bool) -> list[str]:
    """Names of processes that have left the session and not ended by themselves. All are killed; what is in the
    session, and `sleep`, the product ends with the line, too."""
    begun = time.monotonic()
    names: set[str] = set()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            while said := _some(pipe):
                output += said
            return sorted(names) if patient else []
        if pid:
            continue
        output += _some(pipe)  # or who writes to it waits for ever
        waited = time.monotonic() - begun
        if not patient or waited > _LEFT:
            away = set(_running(session)) - {"sleep"}
            if not (patient and away) or waited > _AWAY:
                names |= away
                os.kill(-1, signal.SIGKILL)
        time.sleep(0.001)


def _running(session: int) -> Iterator[str]:
    """Names of processes outside of that session, ours left out."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) not in (1, os.getpid()):
            with contextlib.suppress(OSError):
                before, _, after = (each / "stat").read_text().rpartition(")")
                state, _, _, its = after.split()[:4]
                if state != "Z" and int(its) != session:
                    yield before.partition("(")[2]


def _packets() -> list[str]:
    """The kernel's counters of this network of ours: what was sent, and what no way was found for."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    six = Path("/proc/net/snmp6").read_text().splitlines()
    return [each for each in lines if each.startswith(_PACKETS)] + [each for each in six if "Out" in each]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
