"""No test leaves the machine: sockets of this process reach loopback and unix sockets, no names are looked up."""

import re
import socket
from typing import Any

_LOOPBACK = re.compile(r"127(\.\d+){3}|::1|::ffff:127(\.\d+){3}|localhost|0\.0\.0\.0|::|")

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


class NetworkForbidden(AssertionError):
    """A test tried to leave the machine."""


def only() -> None:
    """Refuse all other addresses in this process from now on."""
    socket.getaddrinfo = _look_up
    socket.socket.connect = _checked_connect  # pyright: ignore[reportAttributeAccessIssue]
    socket.socket.connect_ex = _checked_connect_ex  # pyright: ignore[reportAttributeAccessIssue]


def _checked_connect(self: socket.socket, address: Any) -> None:
    _check(self.family, address)
    _connect(self, address)


def _checked_connect_ex(self: socket.socket, address: Any) -> int:
    _check(self.family, address)
    return _connect_ex(self, address)


def _look_up(host: Any, *rest: Any, **named: Any) -> Any:
    _check(socket.AF_INET, (host, 0))
    return _getaddrinfo(host, *rest, **named)


def _check(family: int, address: Any) -> None:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return
    host = address[0].decode() if isinstance(address[0], bytes) else address[0]
    if host is not None and not _LOOPBACK.fullmatch(str(host)):
        raise NetworkForbidden(f"no test needs the network, but one asked for {host}")
