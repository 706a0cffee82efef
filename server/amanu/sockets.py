"""The daemon's socket: where it is and who is at its other end. Standard library only (the relay uses it)."""

import os
import socket
import stat
import struct
import sys
from pathlib import Path

from amanu.home import Home

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
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not private to you")
    return folder / path.name


def peer_uid(link: socket.socket) -> int | None:
    """The user of the process at the other end; None where the system does not tell."""
    if sys.platform == "linux":
        data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", data)[1]
    if sys.platform == "darwin":
        # struct xucred { u_int cr_version; uid_t cr_uid; … }, by LOCAL_PEERCRED (1) at SOL_LOCAL (0).
        return struct.unpack_from("2I", link.getsockopt(0, 1, 76))[1]
    return None
