"""The daemon of a test's own home."""

import os
import signal
import socket
import struct
from collections.abc import Mapping

from amanu.daemon.sockets import socket_path
from amanu.home import find_home


def daemon_pid(environ: Mapping[str, str] = os.environ) -> int | None:
    """The process that listens, in the home of that environment; None when there is none."""
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(str(socket_path(find_home(environ))))
        except OSError:
            return None
        return struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def signal_daemon(number: signal.Signals = signal.SIGTERM) -> int | None:
    """Send it a signal, if there is one; its process id."""
    if (pid := daemon_pid()) is not None:
        os.kill(pid, number)
    return pid
