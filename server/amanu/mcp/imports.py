"""Servers that other programs have configured, as tables of our own file. Read only when the user asks for it; nothing
another program allows its servers is taken over."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from amanu.mcp.config import NAME
from amanu.mcp.config_files import MAX_BYTES
from amanu.text.redaction import holds_secret

Fields = dict[str, Any]


@dataclass(frozen=True)
class ImportedServer:
    """A server as it would stand in our file."""

    name: str
    table: Fields
    """Of `ServerTable`; empty: it cannot be used, and the notes say why."""
    notes: tuple[str, ...] = ()
    """What was left out or must be done, as sentences."""


@dataclass(frozen=True)
class ImportFile:
    """A file of another program."""

    path: Path
    servers: tuple[ImportedServer, ...] = ()
    problem: str = ""
    """Why it could not be read, as a sentence."""


PROGRAMS: Mapping[str, tuple[str, ...]] = {
    # Name → its files; those that begin with `~` are the user's, others the workspace's.
    "claude": (
        *(".mcp.json", "~/.claude.json", "~/.config/Claude/claude_desktop_config.json"),
        "~/Library/Application Support/Claude/claude_desktop_config.json",
    ),
    "vscode": (".vscode/mcp.json", "~/.config/Code/User/mcp.json", "~/Library/Application Support/Code/User/mcp.json"),
    "cursor": (".cursor/mcp.json", "~/.cursor/mcp.json"),
    "gemini": (".gemini/settings.json", "~/.gemini/settings.json"),
    "codex": (".codex/config.toml", "~/.codex/config.toml"),
}


def find_files(program: str, workspace: Path, home: Path) -> list[ImportFile]:
    """The files of that program that are there. Blocking."""
    paths = [home / name[2:] if name.startswith("~/") else workspace / name for name in PROGRAMS[program]]
    return [read_import(program, path, workspace) for path in paths if path.is_file()]


def read_import(program: str, path: Path, workspace: Path) -> ImportFile:
    """The servers in a file of that program. Blocking."""
    try:
        if path.stat().st_size > 20 * MAX_BYTES:
            return ImportFile(path, problem=f"{path} is too big.")
        text = path.read_text(encoding="utf-8-sig")
        tree: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(_without_comments(text))
    except OSError as error:
        return ImportFile(path, problem=f"{path} cannot be read: {error.strerror}.")
    except (ValueError, RecursionError) as error:
        return ImportFile(path, problem=f"{path} is not valid: {error}.")
    key = {"vscode": "servers", "codex": "mcp_servers"}.get(program, "mcpServers")
    found = _table(tree, key)
    if program == "claude":
        own: Any = _table(_table(tree, "projects"), str(workspace))
        found = {**found, **_table(own, key)}  # what Claude Code has for this folder alone goes before
    convert = {"gemini": _gemini, "codex": _codex}.get(program, _common)
    return ImportFile(path, tuple(_server(name, fields, convert) for name, fields in found.items()))


def _server(name: str, entry: Any, convert: "Callable[[Fields, Fields, list[str]], None]") -> ImportedServer:
    if not isinstance(entry, dict):
        return ImportedServer(name, {}, ("It is not a table.",))
    fields, table = dict(cast("Fields", entry)), Fields()
    notes: list[str] = []
    kind = fields.pop("type", fields.pop("transport", None))
    if kind == "ws":
        return ImportedServer(name, {}, ("It is a server of type ws, which is not supported.",))
    if kind == "sse" or (kind is None and "url" in fields and "httpUrl" not in fields and convert is _gemini):
        table["type"] = "sse"
    elif kind is not None and "/sse" in str(fields.get("url")):
        table["type"] = "http"
    convert(fields, table, notes)
    for key in fields:
        notes.append(f"{key} was left out: it has no meaning here.")
    table |= {key: _text(table[key]) for key in ("args", "env", "headers") if key in table}
    table = {key: _references(value, notes) for key, value in table.items() if value not in ("", [], {}, None)}
    for key in ("env", "headers"):
        for variable, value in cast("dict[str, str]", table.get(key, {})).items():
            if "${" not in value and holds_secret(variable, value):
                notes.append(f"The value of {variable} was copied as it is: it looks like a secret.")
    if bool(table.get("command")) == bool(table.get("url")):
        return ImportedServer(name, {}, ("It has neither a command nor an address.",))
    short = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40]
    if not NAME.match(short):
        return ImportedServer(name, {}, ("Its name has no characters that are allowed here.",))
    if short != name:
        notes.append(f"It is called {short} here.")
    return ImportedServer(short, table, tuple(dict.fromkeys(notes)))


def _common(fields: Fields, table: Fields, notes: list[str]) -> None:
    """Claude Code, Cursor, VS Code."""
    _take(fields, table, command="command", args="args", cwd="cwd", env="env", url="url", headers="headers")
    if fields.pop("disabled", False) is True:
        table["enabled"] = False
    if "envFile" in fields:
        notes.append(f"envFile {fields.pop('envFile')} was left out: write its variables into env.")
    for key in ("alwaysAllow", "autoApprove", "trust"):
        if fields.pop(key, None):
            notes.append(f"{key} was left out: Amanu asks until one of your rules allows a tool.")
    if fields.pop("timeout", None) is not None:  # in seconds or milliseconds, as the program likes
        notes.append("timeout was left out: set call_seconds.")
    for key in ("dev", "sandbox", "gallery", "version", "description", "icon"):
        fields.pop(key, None)


def _gemini(fields: Fields, table: Fields, notes: list[str]) -> None:
    if "httpUrl" in fields:
        table["url"] = fields.pop("httpUrl")
        fields.pop("url", None)
    if isinstance(timeout := fields.pop("timeout", None), int | float) and timeout > 0:
        table["call_seconds"] = timeout / 1000
    _tools(fields, table, "includeTools", "excludeTools")
    _common(fields, table, notes)
    for key in ("env", "headers"):
        if isinstance(table.get(key), dict):
            table[key] = {name: re.sub(r"\$(\w+)", r"${\1}", str(value)) for name, value in table[key].items()}


def _codex(fields: Fields, table: Fields, notes: list[str]) -> None:
    _tools(fields, table, "enabled_tools", "disabled_tools")
    renamed = {"startup_timeout_sec": "start_seconds", "tool_timeout_sec": "call_seconds", "env_vars": "env_pass"}
    _take(fields, table, **renamed, http_headers="headers", enabled="enabled")
    headers = {name: f"${{{variable}}}" for name, variable in _pairs(fields.pop("env_http_headers", None))}
    if isinstance(variable := fields.pop("bearer_token_env_var", None), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    if headers:
        table["headers"] = {**table.get("headers", {}), **headers}
    fields.pop("required", None)
    _common(fields, table, notes)


def _take(fields: Fields, table: Fields, **names: str) -> None:
    for theirs, ours in names.items():
        if theirs in fields:
            table[ours] = fields.pop(theirs)


def _tools(fields: Fields, table: Fields, include: str, exclude: str) -> None:
    tools = {"include": fields.pop(include, None), "exclude": fields.pop(exclude, None)}
    if kept := {key: value for key, value in tools.items() if value}:
        table["tools"] = kept


def _references(value: Any, notes: list[str]) -> Any:
    """Their references to variables as ours."""
    if isinstance(value, str):
        for name in re.findall(r"\$\{input:([^}]+)\}", value):
            variable = re.sub(r"\W", "_", name).upper()
            value = value.replace(f"${{input:{name}}}", f"${{{variable}}}")
            notes.append(f"Set the variable {variable}: the other program asks for it as {name!r}.")
        value = re.sub(r"\$\{env:(\w+)\}", r"${\1}", value)
        value = value.replace("${workspaceRoot}", "${workspaceFolder}").replace("${userHome}", "${HOME}")
        notes += [f"{other} means nothing here: write its value instead." for other in _UNKNOWN.findall(value)]
        return value
    if isinstance(value, list):
        return [_references(each, notes) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): _references(each, notes) for key, each in cast("Fields", value).items()}
    return value


_UNKNOWN = re.compile(r"\$\{(?!\w+(?::-[^}]*)?\})[^}]*\}")
"""A reference to something of the other program's: `${config:x}`."""


def _text(value: Any) -> Any:
    """A number or a boolean as a program gets it, in a list or a table, too."""
    if isinstance(value, list):
        return list(map(_text, cast("list[Any]", value)))
    if isinstance(value, dict):
        return {key: _text(each) for key, each in cast("Fields", value).items()}
    return json.dumps(value) if isinstance(value, int | float) else value


def _table(tree: Any, key: str) -> Fields:
    value: Any = cast("Fields", tree).get(key) if isinstance(tree, dict) else None
    return cast("Fields", value) if isinstance(value, dict) else {}


def _pairs(value: Any) -> list[tuple[str, str]]:
    return [(str(name), str(each)) for name, each in cast("Fields", value).items()] if isinstance(value, dict) else []


_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def _without_comments(text: str) -> str:
    """JSON as VS Code has it, without comments and commas before a closing bracket."""
    return _PIECES.sub(lambda match: match[0] if match[0].startswith('"') else "", text)
