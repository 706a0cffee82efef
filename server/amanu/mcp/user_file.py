"""Changes the user's own file of servers, and leaves the rest of it as they wrote it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomlkit

from amanu.storage.toml_file import read_document, write_document
from amanu_protocol.errors import AmanuError


def add_server(path: Path, name: str, table: Mapping[str, Any]) -> None:
    """Write `[servers.NAME]`. Raises `AmanuError`: invalidParams for a name that is there, and for a file that is not
    TOML; storageError."""
    document = read_document(path)
    servers: Any = document.setdefault("servers", tomlkit.table(is_super_table=True))
    if name in servers:
        raise AmanuError(
            "invalidParams", f"There is a server {name!r} in {path}.", hint=f"Remove it first: amanu mcp remove {name}"
        )
    made = tomlkit.table()
    for key, value in table.items():
        if isinstance(value, Mapping):
            inline = tomlkit.inline_table()
            inline.update(value)  # pyright: ignore[reportUnknownMemberType]
            made.add(key, inline)
        else:
            made.add(key, value)
    servers.add(name, made)
    write_document(path, document)


def remove_server(path: Path, name: str) -> None:
    """Remove `[servers.NAME]`. Raises like `add_server`; mcpServerNotFound when it is not there."""
    document = read_document(path)
    servers = cast(Any, document).get("servers")
    if name not in cast("dict[str, Any]", servers if isinstance(servers, dict) else {}):
        raise AmanuError("mcpServerNotFound", f"There is no server {name!r} in {path}.")
    del cast("dict[str, Any]", servers)[name]
    write_document(path, document)
