"""The process an editor starts: stdin and stdout to and from the user's daemon. Standard library only.

It answers `initialize` itself (a few milliseconds), finds the daemon or starts it, says hello, and copies bytes. It
ends with its editor: at the end of stdin, or when its parent is gone. When the daemon dies it ends with exit code 1,
so that the editor knows.

On the socket the first line each way is JSON: `Hello` from here, which begins with the token (sockets.py), and
`{"accepted": bool}` back. After that the editor's
bytes go through unchanged. The daemon ends its side with a NUL byte, which no JSON text holds, and the exit code.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from amanu.daemon.sockets import opening, peer_uid, read_token, socket_path
from amanu.frontends.lsp.handshake import BUILD, EarlyRead, answer_first
from amanu.home import Home, find_home
from amanu.system.descriptors import read_descriptor, write_descriptor
from amanu.system.frames import frame

STDIN, STDOUT = 0, 1
START_SECONDS = 60.0
"""For a daemon to start; imports on a cold disk of a busy machine take long."""
PARENT_SECONDS = 1.0
"""Between two looks whether the parent is still ours."""
END_SECONDS = 5.0
"""For the daemon to finish what it writes after the editor closed stdin."""
DAEMON = (sys.executable, "-P", "-m", "amanu.daemon.main")
"""`-P`: never import from the folder the editor runs in (invariant 16)."""
MAX_HELLO = 4 * 1024 * 1024
"""Bytes of a hello line; it carries the environment."""


class NoDaemon(Exception):
    """The daemon cannot be reached or started; the text says why, for the user."""


def main(argv: Sequence[str], command: Sequence[str] = DAEMON) -> int:
    """Run until the editor or the daemon leaves. Returns the exit code LSP wants, 1 when the daemon died.

    `command` starts a daemon; it is given `--detach --ready FD`.
    """
    del argv  # the relay has no options: what matters is in the environment
    if os.name == "nt":
        print("amanu: there is no daemon on Windows; use `amanu serve --alone`.", file=sys.stderr)
        return 1
    _end_with_parent()
    first = answer_first(read_descriptor(STDIN), write_descriptor(STDOUT))
    if not first.received:
        return 0  # nobody said anything
    try:
        link = reach(find_home(), command, first)
    except NoDaemon as error:
        print(f"amanu: {error}", file=sys.stderr)
        if first.answered:
            params = {"type": 1, "message": f"Amanu: {error}"}
            message = {"jsonrpc": "2.0", "method": "window/showMessage", "params": params}
            with contextlib.suppress(OSError):
                write_descriptor(STDOUT)(frame(json.dumps(message).encode()))
        return 1
    return _relay(link)


def reach(home: Home, command: Sequence[str], first: EarlyRead) -> socket.socket:
    """A connection to a daemon of our version that has accepted us. Raises `NoDaemon`."""
    try:
        path = socket_path(home.make())
    except OSError as error:
        raise NoDaemon(f"The folder for the daemon's socket cannot be used: {error}.") from error
    for _ in range(3):  # a daemon may be just leaving, or of another version and leave now
        link = _connect(path) or _start(home, path, command)
        if _hello(link, read_token(home), first):
            link.sendall(first.received)
            return link
        link.close()
    raise NoDaemon("The daemon that was started does not accept this version of Amanu; is Amanu installed twice?")


def _connect(path: Path) -> socket.socket | None:
    """A connection to whoever listens there, if that is this user; None when nobody does."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(os.fspath(path))
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except OSError as error:
        link.close()
        raise NoDaemon(f"{path} cannot be connected to: {error}.") from error
    if peer_uid(link) not in (None, os.getuid()):
        link.close()
        raise NoDaemon(f"{path} belongs to another user's process; remove it.")
    return link


def _start(home: Home, path: Path, command: Sequence[str]) -> socket.socket:
    """Start a daemon unless somebody else does so at this moment, and connect to it."""
    import fcntl

    try:
        lock = os.open(home.runtime / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NoDaemon(f"Amanu cannot write in {home.runtime}: {error.strerror}.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        link = _connect(path)
        if link is None:
            path.unlink(missing_ok=True)  # nobody listens there, and under the lock nobody begins to
            try:
                _spawn(home, command)
            except NoDaemon:
                link = _connect(path)  # maybe one listens by now whose relay was killed while it started
                if link is None:
                    raise
            else:
                link = _connect(path)
        if link is None:
            raise NoDaemon(f"The daemon started and then exited; see {home.logs}.")
        return link
    finally:
        os.close(lock)


def _spawn(home: Home, command: Sequence[str]) -> None:
    """Start a daemon that outlives us, and wait until it listens."""
    import select
    import subprocess

    ready, theirs = os.pipe()
    output = os.open(home.logs / "daemon.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            [*command, "--detach", "--ready", str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=_own_environment(os.environ),
            start_new_session=True,
            pass_fds=(theirs,),
        )
    except OSError as error:
        os.close(ready)
        raise NoDaemon(f"{command[0]} cannot be started: {error.strerror}.") from error
    finally:
        os.close(theirs)
        os.close(output)
    process.wait()
    ready_byte = select.select([ready], [], [], START_SECONDS)[0] and os.read(ready, 1)
    os.close(ready)
    if not ready_byte:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        daemon_output = (home.logs / "daemon.out").read_text("utf-8", "replace").strip()
        why = (
            daemon_output.splitlines()[-1][:500]
            if daemon_output
            else f"it did not answer within {START_SECONDS:g} seconds"
        )
        raise NoDaemon(f"The daemon did not start: {why}")


def _own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the daemon itself gets: no keys, and nothing that vendors' libraries would read by themselves. Each client's
    own environment travels with its hello, so that nothing depends on who happened to start the daemon."""
    secret = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    vendors = ("ANTHROPIC_", "AWS_", "CLOUDSDK_", "GOOGLE_")
    return {
        name: value
        for name, value in environ.items()
        if not any(word in name.upper() for word in secret) and not name.startswith(vendors)
    }


def _hello(link: socket.socket, token: str, first: EarlyRead) -> bool:
    """Introduce ourselves; whether the daemon takes us."""
    hello = {
        "version": BUILD,
        "answered": first.answered,
        "environment": dict(os.environ),
    }
    try:
        link.settimeout(START_SECONDS)
        link.sendall(opening(token) + json.dumps(hello).encode()[1:] + b"\n")
        answer: Any = json.loads(_line(link))
        link.settimeout(None)
        return answer["accepted"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _line(link: socket.socket) -> bytes:
    """One short line, read byte by byte so that nothing after it is taken."""
    line = b""
    while not line.endswith(b"\n") and len(line) < 1000:
        byte = link.recv(1)
        if not byte:
            break
        line += byte
    return line


def _relay(link: socket.socket) -> int:
    """Copy both ways until the daemon ends its side. Returns the exit code it names."""
    threading.Thread(target=copy_in, args=(STDIN, link), daemon=True).start()
    code = copy_out(link, STDOUT)
    if code is None:
        print("amanu: the daemon ended unexpectedly; `amanu logs` shows why.", file=sys.stderr)
        return 1
    return code


def copy_in(descriptor: int, link: socket.socket) -> None:
    """Everything from a descriptor into the socket; at its end only this direction closes."""
    try:
        while data := os.read(descriptor, 65536):
            link.sendall(data)
    except OSError:
        pass
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_WR)
        time.sleep(END_SECONDS)  # this thread ends with the process, which ends when the other side closes
        link.shutdown(socket.SHUT_RDWR)


def copy_out(link: socket.socket, descriptor: int) -> int | None:
    """Everything from the socket to a descriptor, up to the NUL. Returns the exit code after it, None when the
    other side ended without one."""
    write = write_descriptor(descriptor)
    trailer: bytes | None = None
    try:
        while data := link.recv(65536):
            if trailer is not None:
                trailer += data
                continue
            data, nul, remainder = data.partition(b"\0")
            write(data)
            if nul:
                trailer = remainder
    except (OSError, TimeoutError):
        pass
    try:
        return None if trailer is None else int(trailer)
    except ValueError:
        return None


def _end_with_parent() -> None:
    """Leave when the parent does, however it dies. Polled; on Linux the kernel also knocks.

    The knock (PR_SET_PDEATHSIG) comes when the *thread* that started us ends, which editors' threads may do while
    the editor lives on: it is only a reason to look.
    """
    parent = os.getppid()

    def look(*_: object) -> None:
        if os.getppid() != parent:
            _leave()

    def watch() -> None:
        while True:
            time.sleep(PARENT_SECONDS)
            look()

    if sys.platform == "linux":
        import ctypes

        signal.signal(signal.SIGUSR1, look)
        ctypes.CDLL(None).prctl(1, signal.SIGUSR1)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=watch, daemon=True).start()


def _leave() -> NoReturn:
    os._exit(1)  # threads wait in read and recv; there is nothing to put in order


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
