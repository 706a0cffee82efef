"""Which addresses and names are on the public internet. Everything else may be a router, a database, or the service
that gives a cloud machine its credentials."""

import ipaddress
import re

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            # What `is_global` takes for public, in whole or in part, in some Python before 3.13.
            *("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15"),
            *("::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
            *("fc00::/7", "fe80::/10", "fec0::/10"),
        ),
    )
)
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""NAT64: the last four bytes are the IPv4 address that is reached."""

_PRIVATE_NAME = re.compile(
    r"(?:.*\.)?(?:localhost|localdomain|local|internal|intranet|lan|home|corp|private|test|onion|home\.arpa)"
)
"""Names that no public DNS has; `metadata.google.internal` is one."""


def is_public(address: str) -> bool:
    """Whether an IP address is on the public internet. False for anything that is not an IP address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return all(map(_is_public, _inner(ip)))


def is_private_name(host: str) -> bool:
    """Whether a host name, in lower case, is one of the user's own network, or of their machine."""
    return "." not in host or _PRIVATE_NAME.fullmatch(host) is not None


def _is_public(ip: _Address) -> bool:
    denied = any(ip.version == network.version and ip in network for network in _NOT_PUBLIC)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not denied


def _inner(ip: _Address) -> tuple[_Address, ...]:
    """The address, or those that it wraps: all of them must be public."""
    if isinstance(ip, ipaddress.IPv4Address):
        return (ip,)
    if ip.ipv4_mapped is not None:
        return (ip.ipv4_mapped,)
    if ip.sixtofour is not None:
        return (ip, ip.sixtofour)
    if ip in _TRANSLATED:
        return (ipaddress.IPv4Address(ip.packed[-4:]),)
    return (ip,)
