"""`Servers` over a workspace and a configuration of a test's own."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amanu.config import SandboxSettings
from amanu.home import Home, find_home
from amanu.mcp.model import CallAnswer, CallClient, McpServer, ServerView
from amanu.mcp.servers import Servers
from amanu.sandbox.sandbox import Sandbox

SUPPORT = Path(__file__).parent


@dataclass
class Folder:
    """A workspace."""

    roots: Sequence[Path]
    trusted: bool = True
    session_id: str = "s"


@dataclass
class Harness:
    servers: Servers
    home: Home
    workspace: Folder
    changes: int = field(default=0)

    def configure(self, **servers: Mapping[str, Any]) -> None:
        """Write the user's own file."""
        lines: list[str] = []
        for name, table in servers.items():
            lines.append(f"[servers.{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
        (self.home.config / "mcp.toml").write_text("\n".join(lines) + "\n")

    def server(self, name: str) -> McpServer:
        by_name = {server.view.name: server for server in self.servers.servers(self.workspace)}
        return by_name[name]

    def view(self, name: str) -> ServerView:
        return self.server(name).view

    async def approved(self, name: str) -> McpServer:
        """Agree to it, and wait until it is ready."""
        await self.servers.sandbox.proved()
        await self.servers.approve(self.workspace, name, self.view(name).digest)
        await self.until(lambda: self.view(name).state != "starting" and self.view(name).state != "configured")
        return self.server(name)

    async def call(self, server: str, tool: str, client: CallClient | None = None, **arguments: Any) -> CallAnswer:
        return await self.server(server).call_tool(tool, arguments, client or CallClient())

    async def text(self, server: str, tool: str, **arguments: Any) -> str:
        return "".join(part.text for part in (await self.call(server, tool, **arguments)).content)

    async def until(self, condition: Callable[[], bool], seconds: float = 40) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.02)


def python_server(program: str = "mcp_server.py", args: Sequence[str] = (), **table: Any) -> dict[str, Any]:
    """The table of a server in Python."""
    return {"command": sys.executable, "args": [str(SUPPORT / program), *args], **table}


def plain_server(**table: Any) -> dict[str, Any]:
    """The table of a server that starts at once."""
    return python_server("plain_mcp_server.py", **table)


@contextlib.asynccontextmanager
async def harness(tmp_path: Path, variables: Mapping[str, str] | None = None) -> AsyncGenerator[Harness]:
    home = find_home({"AMANU_HOME": str(tmp_path / "ours")}).make()
    root = tmp_path / "work"
    root.mkdir(exist_ok=True)
    repository = SUPPORT.parents[1]
    sandbox = Sandbox(SandboxSettings(read=(str(repository), sys.prefix, sys.base_prefix)), home)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), **(variables or {})}
    (tmp_path / "home").mkdir(exist_ok=True)
    servers = Servers(home, sandbox, variables=environment)
    made = Harness(servers, home, Folder([root]))
    servers.listeners.append(lambda: setattr(made, "changes", made.changes + 1))
    try:
        yield made
    finally:
        await servers.close()
        await sandbox.close()


def processes(folder: Path) -> list[str]:
    """The command lines of processes that a server of this test left: its home is in their environment."""
    needle, left = f"HOME={folder / 'home'}".encode(), list[str]()
    for entry in Path("/proc").iterdir():
        try:
            if needle in (entry / "environ").read_bytes().split(b"\0") and entry.name != str(os.getpid()):
                command = (entry / "cmdline").read_bytes()
                left += [command.replace(b"\0", b" ").decode()] if command else []
        except OSError:
            continue
    return left


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return json.dumps(value)
