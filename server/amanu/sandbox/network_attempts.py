"""Whether a command without network access tried to use the network, whatever it says of that.

Its network namespace counts what found no route: connections as well as queries of names. The counters are files of
/proc that can be read, once opened, after all processes of the namespace have ended.
"""

import contextlib
import os
import re
from collections.abc import Generator
from contextlib import contextmanager

NO_RESOLVER = b"nameserver 192.0.2.1\n"
"""The resolver configuration of a namespace without network. Where systemd-resolved or dnsmasq runs, the machine's own
names a server on loopback, and queries to it would not be counted. RFC 5737 gives this address to nobody."""

_FILES = ("snmp", "snmp6")
_NO_ROUTES = re.compile(r"^Ip6OutNoRoutes\s+(\d+)", re.MULTILINE)
_SIZE = 1 << 16


class NetworkAttempts:
    """The attempts of one command."""

    def __init__(self) -> None:
        self._files: list[int] = []

    def watch(self, pid: int) -> None:
        """Take the namespace of this process, which has not begun."""
        for name in _FILES:
            with contextlib.suppress(OSError):  # hidden from us, or a kernel without IPv6
                self._files.append(os.open(f"/proc/{pid}/net/{name}", os.O_RDONLY | os.O_CLOEXEC))

    def seen(self) -> bool | None:
        """Whether there were any. None: it is not known."""
        try:
            return (
                any(_count(os.pread(file, _SIZE, 0).decode("ascii")) for file in self._files) if self._files else None
            )
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())


@contextmanager
def network_attempts() -> Generator[NetworkAttempts]:
    """Counters that are open until the context is left."""
    attempts = NetworkAttempts()
    try:
        yield attempts
    finally:
        attempts.close()


def _count(text: str) -> int:
    if found := _NO_ROUTES.search(text):
        return int(found[1])
    lines = [line.split() for line in text.splitlines() if line.startswith("Ip: ")]
    if len(lines) != 2:
        return 0
    names, values = lines
    return int(values[names.index("OutNoRoutes")])
