"""A URL that may be fetched. An odd one is refused, not repaired: checks are bypassed where two programs read
the same URL differently."""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from amanu.web.addresses import is_private_name, is_public
from amanu.web.errors import WebError
from amanu_protocol import hidden

MAX_URL = 2_000
"""Characters."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OWN_MACHINE = ("localhost", "127.0.0.1", "::1")
_OTHER_SERVICES = {
    *(1719, 1720, 1723, 2049, 2375, 2376, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566),
    *(*range(6665, 6670), 6679, 6697, 9200, 10080, 11211, 27017),
}
"""Ports, from 1024, of programs that speak no HTTP, or trust whoever reaches them (fetch.spec.whatwg.org, "bad
ports", and databases)."""
_ODD = re.compile(r"[\x00-\x20\x7f\\]|" + hidden.pattern())
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_LONG_QUERY = 120
_LONG_PART = 80
"""Characters of a part of the path, or of the host. A commit's digest has 64."""
_LONG_TARGET = 250
_LONG_LABEL = 40
"""Characters of a part of the host: to look a name up sends it out."""


@dataclass(frozen=True)
class WebUrl:
    """A URL whose every part was checked. Only the addresses that its name resolves to are still unknown."""

    scheme: str
    host: str
    """A name in lower case and ASCII, or an IP address without brackets."""
    port: int
    target: str
    """Path and query."""
    local: bool = False
    """A place on the user's own computer or network."""

    @property
    def authority(self) -> str:
        """The host, with its port if that is an unusual one: what consent is about."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] and not self.local else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def carries_data(self) -> bool:
        """Whether it is long enough to carry data away without anybody noticing."""
        path, _, query = self.target.partition("?")
        return (
            len(query) > _LONG_QUERY
            or len(self.target) > _LONG_TARGET
            or len(self.host) > _LONG_PART
            or any(len(part) > _LONG_PART for part in path.split("/"))
            or any(len(label) > _LONG_LABEL for label in self.host.split("."))
        )


def parse_url(text: str, allow_hosts: Collection[str] = ()) -> WebUrl:
    """The URL of a text. `allow_hosts`: `host:port` of the user's own network that may be reached. Plain `http` becomes
    `https` where no port says otherwise. Raises `WebError` (badUrl, denied)."""
    scheme, netloc, path, query = _split(text)
    name, port = _host_and_port(netloc, text)
    host = _host(name, text)
    number = port or _DEFAULT_PORTS[scheme]
    target = quote(path or "/", safe="/%:@!$&'()*+,;=~-._") + (
        f"?{quote(query, safe='/?%:@!$&()*+,;=~-._')}" * bool(query)
    )
    shown = f"[{host}]" if ":" in host else host
    own = host in _OWN_MACHINE and port is not None and port >= 1024 and port not in _OTHER_SERVICES
    if own or f"{shown}:{number}" in allow_hosts or (port is None and shown in allow_hosts):
        return WebUrl(scheme, host, number, target, local=True)
    _require_public(host, f"{shown}:{number}", text)
    if scheme == "http" and port in (None, 80):
        scheme, number = "https", 443
    if (number < 1024 and number not in (80, 443)) or number in _OTHER_SERVICES:
        raise WebError("denied", f"Port {number} is not a web port, so {_shown(text)} is not fetched.")
    return WebUrl(scheme, host, number, target)


def _split(text: str) -> tuple[str, str, str, str]:
    if len(text) > MAX_URL:
        raise WebError("badUrl", f"The URL has {len(text):,} characters; at most {MAX_URL:,} are allowed.")
    if _ODD.search(text):
        raise WebError("badUrl", f"The URL {_shown(text)} contains spaces, backslashes or invisible characters.")
    if not re.match(r"https?://[^/?#]", text, re.IGNORECASE):
        raise WebError("badUrl", f"{_shown(text)} is not fetched: a URL must begin with https:// or http://.")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise WebError("badUrl", f"{_shown(text)} is not a URL: {error}.") from None
    return parts.scheme.lower(), parts.netloc, parts.path, parts.query


def _host_and_port(netloc: str, text: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]@:%]+)(?::(\d{1,5}))?", netloc)
    if match is None:
        raise WebError("badUrl", f"{_shown(text)} must name a plain host, without user, password or escapes.")
    port = None if match[2] is None else int(match[2])
    if port is not None and not 1 <= port <= 65535:
        raise WebError("badUrl", f"{_shown(text)} has no valid port.")
    return match[1], port


def _host(name: str, text: str) -> str:
    if name.startswith("["):
        try:
            return ipaddress.IPv6Address(name[1:-1]).compressed
        except ValueError:
            raise WebError("badUrl", f"{_shown(text)} names no valid IPv6 address.") from None
    host = name.lower()
    if not host.isascii():
        import idna

        try:
            host = idna.encode(host, uts46=True, std3_rules=True).decode()
        except (idna.IDNAError, UnicodeError):
            raise WebError("badUrl", f"The host of {_shown(text)} is not a valid name.") from None
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            message = f"{_shown(text)} writes an IP address in an unusual way. Write it as in 192.0.2.1."
            raise WebError("badUrl", message) from None
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise WebError("badUrl", f"The host of {_shown(text)} is not a valid name.")
    return host


def _require_public(host: str, place: str, text: str) -> None:
    is_address = ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
    if is_public(host) if is_address else not is_private_name(host):
        return
    hint = f' The user can allow it in their config.toml: [web] allow_hosts = ["{place}"].'
    gives_keys = host.startswith(("169.254.", "metadata")) or host in ("100.100.100.200", "fd00:ec2::254")
    message = f"{_shown(text)} is not fetched: {host} is not on the public internet.{'' if gives_keys else hint}"
    raise WebError("denied", message)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:199] + "…")
