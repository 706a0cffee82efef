"""The daemon's socket: where it is, who is at its other end, and the token that opens it. Standard library only (the
relay uses it).

The token is a secret the daemon makes when it starts, in a file beside the socket that only its user can read. A
process of the same user that has the socket but not the file (a sandbox or a container into which it was mounted) is
not served.
"""

import os
import socket
import stat
import struct
import sys
from pathlib import Path

from amanu.home import Home

TOKEN_BYTES = 32
LONGEST = 100
"""Bytes of a socket's path; the kernel's limit is 108 on Linux and 104 on macOS."""


def socket_path(home: Home) -> Path:
    """The socket of a home; for a home too deep for a socket, one in a private folder of the temporary folder.

    Raises `PermissionError` when somebody else made that folder.
    """
    path = home.socket
    if len(os.fsencode(path)) <= LONGEST:
        return path
    import hashlib
    import tempfile

    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"amanu-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not private to you")
    return folder / path.name


def make_token(home: Home) -> str:
    """A new token, in its file; the one before it is void. Raises `OSError`."""
    import secrets

    token = secrets.token_hex(TOKEN_BYTES)
    beside = home.token.with_name(f"{home.token.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # of a process that had our number and was killed
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)  # whatever the umask is
        os.write(handle, token.encode())
    finally:
        os.close(handle)
    beside.replace(home.token)
    return token


def read_token(home: Home) -> str:
    """The token of the daemon that runs; "" when there is none, or none that only this user can have read or
    written."""
    try:
        handle = os.open(home.token, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        status = os.fstat(handle)
        private = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
        return os.read(handle, 2 * TOKEN_BYTES).decode("ascii", "replace") if private else ""
    except OSError:
        return ""
    finally:
        os.close(handle)


def opening(token: str) -> bytes:
    """How a hello begins. The daemon reads that many bytes and compares them before it looks at any other, so a hello
    is a JSON object whose first member is the token; to a daemon from before there were tokens it is a hello as
    well."""
    return b'{"token": "%b", ' % token.encode("ascii", "replace")


def peer_uid(link: socket.socket) -> int | None:
    """The user of the process at the other end; None where the system does not tell."""
    if sys.platform == "linux":
        data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", data)[1]
    if sys.platform == "darwin":
        # struct xucred { u_int cr_version; uid_t cr_uid; … }, by LOCAL_PEERCRED (1) at SOL_LOCAL (0).
        return struct.unpack_from("2I", link.getsockopt(0, 1, 76))[1]
    return None
