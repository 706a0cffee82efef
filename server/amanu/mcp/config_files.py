"""Which servers are configured, and what each may do.

    <config>/mcp.toml             the user's own, `[servers.NAME]`: `ServerTable` has its keys
    <workspace>/.amanu/mcp.toml   the same keys, of a trusted workspace
    <workspace>/.mcp.json         `mcpServers`, as Claude Code and others write it

Nothing here starts anything. What a file has wrong is a sentence: about one entry in `ServerConfig.fault`, about the
rest in `ConfigFile.problems`.
"""

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from amanu.mcp.config import NAME, Access, ServerConfig, ServerTable

MAX_BYTES = 256 * 1024
"""Of a file; longer ones are not read."""
USER_SOURCE = "your mcp.toml"
_FOREIGN = {
    "servers": "VS Code's",
    "mcp_servers": "Codex's",
    "mcpServers": "Claude Code's",
    "mcp": "OpenCode's",
    "context_servers": "Zed's",
}
_TYPES = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}
"""Names in JSON files → ours."""
_CACHE_FOLDERS = {
    # What a package runner writes at a server's first start: it has nothing to run before it has fetched it.
    "npx": ("~/.npm",),
    "npm": ("~/.npm",),
    "pnpm": ("~/.cache/pnpm", "~/.local/share/pnpm"),
    "bunx": ("~/.bun",),
    "uvx": ("~/.cache/uv", "~/.local/share/uv"),
    "uv": ("~/.cache/uv", "~/.local/share/uv"),
    "pipx": ("~/.cache/pipx", "~/.local/share/pipx"),
    "deno": ("~/.cache/deno",),
}
_WORKSPACE_CACHES = tuple(dict.fromkeys(folder for folders in _CACHE_FOLDERS.values() for folder in folders))


@dataclass(frozen=True)
class PluginServers:
    """The servers that a plug-in brings."""

    plugin: str
    folder: Path
    """Of the plug-in; a real path."""
    entries: Mapping[str, Mapping[str, Any]]
    """Name → configuration as in a `.mcp.json`."""

    def read(self) -> "ConfigFile":
        """The servers, named as Claude Code names them: `plugin_PLUGIN_SERVER`."""
        source = f"the plug-in {self.plugin}"
        servers: dict[str, ServerConfig] = {}
        problems: list[str] = []
        for own_name, entry in self.entries.items():
            name = f"plugin_{self.plugin}_{own_name}"
            if NAME.match(name):
                servers[name] = replace(read_entry(name, source, dict(entry), None, is_json=True), folder=self.folder)
            else:
                problems.append(f"The server {own_name!r} of {source} is left out: its name is too long, or not ASCII.")
        return ConfigFile(servers, tuple(problems))


@dataclass(frozen=True)
class ConfigFile:
    """What one file configures."""

    servers: Mapping[str, ServerConfig] = field(default_factory=dict[str, ServerConfig])
    problems: tuple[str, ...] = ()
    """What is wrong with it, as sentences for the user."""


class ConfigFiles:
    """The files, read again when they changed. Blocking: a few `stat`."""

    def __init__(self, user_file: Path) -> None:
        self.user_file = user_file
        self._read: dict[Path, tuple[object, ConfigFile]] = {}

    def user(self) -> ConfigFile:
        """What the user's own file configures."""
        return self._current(self.user_file, None)

    def workspace(self, root: Path) -> ConfigFile:
        """What the files of that folder of a workspace configure. Only for one that is trusted."""
        servers: dict[str, ServerConfig] = {}
        problems: list[str] = []
        for path in workspace_files(root):
            if not os.path.lexists(path):
                continue  # the usual case, and each prompt looks several times
            if Path(os.path.realpath(path)) != Path(os.path.realpath(root)) / path.relative_to(root):
                continue  # a link: what it names is not the workspace's to show us
            file = self._current(path, root)
            problems += file.problems
            for name, server in file.servers.items():
                if name in servers:
                    problems.append(f"{path}: {name} is also in {servers[name].source}, which takes precedence.")
                else:
                    servers[name] = server
        return ConfigFile(servers, tuple(problems))

    def _current(self, path: Path, root: Path | None) -> ConfigFile:
        try:
            status = path.stat()
        except OSError:
            self._read.pop(path, None)
            return ConfigFile()
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._read.get(path)
        if known is None or known[0] != version:
            known = self._read[path] = (version, read_file(path, root, status))
        return known[1]


def workspace_files(root: Path) -> tuple[Path, Path]:
    """The files of a workspace that may configure servers; the first one counts where both name a server."""
    return root / ".amanu" / "mcp.toml", root / ".mcp.json"


def read_file(path: Path, root: Path | None, status: os.stat_result | None = None) -> ConfigFile:
    """What that file configures; `root` as in `ServerConfig`. Blocking."""
    try:
        status = status or path.stat()
        if not stat.S_ISREG(status.st_mode):
            return ConfigFile(problems=(f"{path} is not a file.",))
        if status.st_size > MAX_BYTES:
            return ConfigFile(problems=(f"{path} is too big; the limit is {MAX_BYTES // 1024} KB.",))
        data = path.read_bytes()
    except OSError as error:
        return ConfigFile(problems=(f"{path} cannot be read: {error.strerror}.",))
    source = USER_SOURCE if root is None else f"{path.relative_to(root)} of this workspace"
    is_json = path.suffix == ".json"
    try:
        tree: Any = json.loads(data) if is_json else tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        return ConfigFile(problems=(f"{path} is not valid {'JSON' if is_json else 'TOML'}: {error}.",))
    key = "mcpServers" if is_json else "servers"
    problems: list[str] = []
    entries: Any = cast("dict[str, Any]", tree).get(key, {}) if isinstance(tree, dict) else None
    if not isinstance(entries, dict):
        return ConfigFile(problems=(f"{path}: {key} must be a table of servers.",))
    for other in cast("dict[str, Any]", tree):
        if other in _FOREIGN and other != key:
            problems.append(f"{path}: {other} is {_FOREIGN[other]} key and does nothing here; servers go under {key}.")
        elif other != key and not is_json:
            problems.append(f"{path}: {other} is not a known key; servers are [servers.NAME].")
    servers: dict[str, ServerConfig] = {}
    for name, entry in cast("dict[str, Any]", entries).items():
        if not NAME.match(name):
            problems.append(f"{path}: the server {name!r} is left out: a name is at most 40 letters, digits, _ and -.")
        else:
            servers[name] = read_entry(name, source, entry, root, is_json=is_json)
    return ConfigFile(servers, tuple(problems))


def default_access(command: str) -> Access:
    """What a program needs to work at all: those that fetch what they run need the network and their cache."""
    caches = _CACHE_FOLDERS.get(Path(command).name, ())
    return Access(network=bool(caches), caches=caches)


def read_entry(name: str, source: str, entry: Any, root: Path | None, *, is_json: bool) -> ServerConfig:
    """One server of a file, or of what is like a file: `source`, `root` as in `ServerConfig`."""
    if not isinstance(entry, dict):
        return ServerConfig(name, source, ServerTable(), root=root, fault=f"{name} in {source} is not a table.")
    fields = cast("dict[str, Any]", entry)
    try:
        table = ServerTable.model_validate(_from_json(fields) if is_json else fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, ("servers", name, *first["loc"])))
        fault = f"{where} in {source}: {first['msg']}."
        return ServerConfig(name, source, ServerTable(), root=root, fault=fault)
    asked = default_access(table.command)
    access = Access(
        network=asked.network if table.network is None else table.network,
        writes=table.writes,
        caches=asked.caches if table.caches is None else table.caches,
        sandbox=table.sandbox,
    )
    fault = _fault(table, fields if is_json else {}) or (_refused(access) if root is not None else "")
    return ServerConfig(name, source, table, access, root, f"{name} in {source}: {fault}" if fault else "")


def _from_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that mean the same here. Others may neither grant nor allow anything, so they are left out."""
    kept = {name: fields[name] for name in ("command", "args", "cwd", "env", "url", "headers") if name in fields}
    if kind := _TYPES.get(_type(fields), ""):
        kept["type"] = kind
    if fields.get("disabled") is True:
        kept["enabled"] = False
    return kept


def _type(fields: Mapping[str, Any]) -> str:
    """The transport that a JSON file gives for a server; "" if it gives none."""
    return str(fields.get("type", fields.get("transport")) or "")


def _fault(table: ServerTable, fields: Mapping[str, Any]) -> str:
    if (kind := _type(fields)) not in ("", *_TYPES):
        return f"servers of type {kind!r} are not supported; use stdio, http (streamable HTTP) or sse."
    if bool(table.command) == bool(table.url):
        return "it needs either a command or a url."
    if "\0" in "".join((table.command, *table.args, *table.env, *table.env.values())):
        return "a command cannot contain a NUL character."
    if table.url:
        try:
            address = urlsplit(table.url)
        except ValueError:
            return "its url is not valid."
        if address.scheme not in ("http", "https") or not address.hostname:
            return "its url must begin with https:// or http://."
        if address.username is not None or address.password is not None:
            return "its url contains a password; put it in headers."
    return ""


def _refused(access: Access) -> str:
    """What a workspace cannot even ask for."""
    if not access.sandbox:
        return "only your own mcp.toml can let a server run outside the sandbox."
    others = [folder for folder in access.caches if folder not in _WORKSPACE_CACHES]
    if others:
        return f"only your own mcp.toml can let a server write {others[0]}."
    return ""
