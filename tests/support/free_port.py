"""A port for a server that must be told one."""

import random
import socket

_PORTS = range(11_000, 32_768)
"""Above the last one that browsers refuse (10080), and below those that Linux gives to outgoing connections
(`ip_local_port_range`): a connection of a test beside this one could take one of those before the server starts."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
