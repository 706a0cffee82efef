"""Servers that clients hand over to one session: the user configured them in their editor. They are kept in memory
only, with what the user decides about them: their variables and headers may hold keys."""

import re
from collections.abc import Sequence
from dataclasses import replace

from amanu.mcp.config import NAME, ServerConfig
from amanu.mcp.config_files import ConfigFile, read_entry
from amanu.mcp.pins import Pin
from amanu.text.display import one_line
from amanu_protocol.requests import OfferedServer

UNNAMED_CLIENT = "the editor"
"""Stands for a client without a name."""
_MAX_CLIENT = 60
_NO_FILE = ConfigFile()


class OfferedServers:
    """What is offered to each session, and what of it was approved since."""

    def __init__(self) -> None:
        self._files: dict[str, ConfigFile] = {}
        self._pins: dict[str, dict[str, Pin]] = {}
        """By session and name."""

    def put(self, session_id: str, client: str, servers: Sequence[OfferedServer]) -> bool:
        """See `McpServers.offer`. Returns whether the offer changed."""
        before = self.file(session_id)
        file = read_offer(session_id, client, servers)
        if file == before:
            return False
        pins = self._pins.pop(session_id, {})
        self._files.pop(session_id, None)
        if servers:
            self._files[session_id] = file
            self._pins[session_id] = {
                name: pin for name, pin in pins.items() if file.servers.get(name) == before.servers[name]
            }
        return True

    def file(self, session_id: str) -> ConfigFile:
        """What is offered to that session, as if it were in a file."""
        return self._files.get(session_id, _NO_FILE)

    def has(self, config: ServerConfig) -> bool:
        """Whether exactly that one is still offered."""
        return self.file(config.session_id).servers.get(config.name) == config

    def pin(self, config: ServerConfig) -> Pin | None:
        """What was recorded of it; None: nothing."""
        return self._pins[config.session_id].get(config.name) if self.has(config) else None

    def save(self, config: ServerConfig, pin: Pin) -> None:
        """Record it, as long as the server is offered."""
        if self.has(config):
            self._pins[config.session_id][config.name] = pin


def read_offer(session_id: str, client: str, servers: Sequence[OfferedServer]) -> ConfigFile:
    """What a client offers to that session, as if it were in a file."""
    source = one_line(client)[:_MAX_CLIENT].strip() or UNNAMED_CLIENT
    configs: dict[str, ServerConfig] = {}
    problems: list[str] = []
    for server in sorted(
        servers, key=lambda server: NAME.match(server.name) is None
    ):  # names that need no replacement come first
        name = re.sub(r"[^A-Za-z0-9_-]", "_", server.name)
        left_out = f"The server {server.name!r} of {source} is left out:"
        if not NAME.match(name):
            problems.append(f"{left_out} a name is at most 40 letters, digits, _ and -.")
        elif name in configs:
            problems.append(f"{left_out} another server is already named {name}.")
        else:
            configs[name] = _config(name, source, server, session_id)
    return ConfigFile(configs, tuple(problems))


def _config(name: str, source: str, server: OfferedServer, session_id: str) -> ServerConfig:
    """With the fields of its kind alone."""
    fields = ("command", "args", "env") if server.kind == "stdio" else ("url", "headers")
    entry = {field: getattr(server, field) for field in fields}
    config = read_entry(name, source, entry, None, is_json=True)
    fault = config.fault
    if (
        "/" in server.command and not server.command.startswith("/") and not fault
    ):  # a workspace could have put it there
        fault = f"{name} in {source}: its command must be an absolute path, or a name on PATH."
    return replace(config, session_id=session_id, fault=fault)
