"""A server as a file configures it, and what of that a user approves."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from amanu.core.place import MACHINE, Place, Reach

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
"""Of a server: it becomes part of the names of tools, which may have 64 characters."""
_EVENTS = re.compile(r"\A[^?#]*/sse/?(?:[?#]|\Z)")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ToolFilter(BaseModel):
    """Which of a server's tools are offered to models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include: tuple[str, ...] = ()
    """Only these; if empty, all."""
    exclude: tuple[str, ...] = ()
    """Not these."""

    def allows(self, name: str) -> bool:
        return (not self.include or name in self.include) and name not in self.exclude


class ServerTable(BaseModel):
    """One `[servers.NAME]`. `${VAR}` and `${VAR:-default}` are variables of the environment, `${workspaceFolder}` the
    first folder of the workspace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = ""
    """The program of a server on this machine: an absolute path, or a name on `PATH`."""
    args: tuple[str, ...] = ()
    cwd: str = ""
    """The folder it starts in; the first folder of the workspace if empty."""
    env: dict[str, str] = Field(default={}, repr=False)
    """Variables it gets besides `PATH`, `HOME`, the language and the like."""
    env_pass: tuple[str, ...] = ()
    """Variables of your environment that it also gets. API keys of model services are never passed on."""
    url: str = ""
    """The address of a remote server."""
    type: Literal["", "stdio", "http", "sse"] = ""
    """The transport: `http` (streamable HTTP) or `sse` (as in revision 2024-11-05); if not set, `sse` for an address
    that ends in `/sse`, else `http`."""
    headers: dict[str, str] = Field(default={}, repr=False)
    network: bool | None = None
    """It may use the network; if not set, only programs that fetch what they run, such as `npx` and `uvx`, may."""
    writes: bool = False
    """It may change files of the workspace."""
    caches: tuple[str, ...] | None = None
    """Folders outside the workspace that it may write; if not set, those of `npx`, `uvx` and their like."""
    sandbox: bool = True
    """false: it runs outside the sandbox and can do anything you can."""
    tools: ToolFilter = ToolFilter()
    start_seconds: float = Field(default=60, gt=0)
    """How long it may take to start before it counts as failed; if it starts later, it is used anyway."""
    call_seconds: float = Field(default=300, gt=0)
    """How long a call may go without progress."""
    idle_seconds: float = Field(default=600, gt=0)
    """How long without a call before it is stopped, until it is needed again."""
    enabled: bool = True


@dataclass(frozen=True)
class Access:
    """What a server's process may do besides reading the workspace."""

    network: bool = False
    writes: bool = False
    caches: tuple[str, ...] = ()
    """As configured: `~` is the home folder."""
    sandbox: bool = True

    @property
    def place(self) -> Place:
        return Place(writes=self.writes, reach=Reach(network=self.network)) if self.sandbox else MACHINE

    @property
    def is_contained(self) -> bool:
        """It may change and reach nothing."""
        return self.sandbox and not (self.network or self.writes or self.caches)


@dataclass(frozen=True)
class ServerConfig:
    """A server as one file configures it, its references to variables not yet replaced."""

    name: str
    source: str
    """For the user: "your mcp.toml", ".mcp.json of this workspace"."""
    table: ServerTable
    access: Access = Access()
    root: Path | None = None
    """The folder of the workspace whose file it is; None: the user's own."""
    fault: str = ""
    """Why it cannot be started as it is configured: a sentence."""
    folder: Path | None = None
    """Of the plug-in whose server it is, which it may read; a real path."""
    session_id: str = ""
    """The session that a client offered it to; "": a file configures it."""

    @property
    def kind(self) -> Literal["stdio", "http"]:
        return "http" if self.table.url else "stdio"

    @property
    def has_events(self) -> bool:
        """The server speaks HTTP as in revision 2024-11-05."""
        return self.table.type == "sse" or (not self.table.type and _EVENTS.search(self.table.url) is not None)

    @property
    def is_literal(self) -> bool:
        """Its texts refer to no variables: the client that offered it has replaced its own."""
        return bool(self.session_id)

    @property
    def variables(self) -> list[str]:
        """The variables of the user's environment that it gets to know, sorted."""
        if self.is_literal:
            return []
        table = self.table
        texts = (table.command, *table.args, table.cwd, table.url, *table.env.values(), *table.headers.values())
        return sorted({*table.env_pass, *(name for text in texts for name in references(text))})

    @property
    def digest(self) -> str:
        """Of all that an approval is about. In a workspace's file the values of variables and headers count, too: a
        variable can make a program run something else."""
        table = self.table
        own = self.root is None
        about = {
            "command": [table.command, *table.args] if table.command else [],
            "cwd": table.cwd,
            "env": sorted(table.env) if own else sorted(table.env.items()),
            "env_pass": sorted(table.env_pass),
            "url": table.url,
            "headers": sorted(table.headers) if own else sorted(table.headers.items()),
            "access": [
                self.access.network,
                self.access.writes,
                sorted(self.access.caches),
                self.access.sandbox,
            ],
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def references(text: str) -> Iterator[str]:
    """The variables of the environment that a text refers to."""
    for match in _REFERENCE.finditer(text):
        if match[1] != "workspaceFolder":
            yield match[1]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with its references replaced. Raises `KeyError` with the name of a variable that is not set."""

    def value(match: "re.Match[str]") -> str:
        if match[2] is not None:
            return variables.get(match[1]) or match[2]
        return variables[match[1]]

    return _REFERENCE.sub(value, text)
