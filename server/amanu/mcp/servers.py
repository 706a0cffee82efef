"""All servers of the process: which there are, which the user approved, and the connections that sessions share.

Of servers that a client offered to one session (`offered.py`) there are connections of that session's own.
"""

import asyncio
import hashlib
import importlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amanu.core.tool import ToolError
from amanu.home import Home
from amanu.mcp.access import access_sentence, target_text
from amanu.mcp.config import ServerConfig
from amanu.mcp.config_files import ConfigFile, ConfigFiles, PluginServers
from amanu.mcp.model import (
    CallAnswer,
    CallClient,
    Content,
    McpServer,
    ServerPrompt,
    ServerResource,
    ServerState,
    ServerView,
    Workspace,
)
from amanu.mcp.offered import OfferedServers
from amanu.mcp.pins import Pin, Pins
from amanu.mcp.program_files import ProgramFiles, unapproved
from amanu.mcp.variables import UserVariables
from amanu.mcp.withheld import withheld
from amanu.sandbox.sandbox import Sandbox
from amanu.system.private_file import PrivateFile
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import OfferedServer

if TYPE_CHECKING:
    from amanu.mcp.connection import Connection

log = logging.getLogger(__name__)

Roots = tuple[Path, ...]


class Servers:
    """Implements `McpServers`. One per process:

        servers = Servers(home, sandbox, key_variables=settings.key_variables)
        …
        await servers.close()      # before `sandbox.close()`

    It reads nothing and starts nothing until it is asked. `key_variables` are variables of the environment that hold
    keys of models' services: no server ever gets them. `variables` is the environment that servers get a part of;
    `of_plugins` gives the servers that plug-ins bring."""

    def __init__(
        self,
        home: Home,
        sandbox: Sandbox,
        *,
        key_variables: Collection[str] = (),
        variables: Mapping[str, str] = os.environ,
        of_plugins: Callable[[], Sequence[PluginServers]] = tuple,
    ) -> None:
        self.listeners: list[Callable[[], None]] = []
        self.home = home
        self.sandbox = sandbox
        self.variables = UserVariables(variables, key_variables)
        self.programs = ProgramFiles(self.variables)
        self.tokens = PrivateFile(home.config / "mcp-auth.json")
        self._of_plugins = of_plugins
        self._files = ConfigFiles(home.config / "mcp.toml")
        self._pins = Pins(home.state / "mcp" / "pins.json")
        self._offered = OfferedServers()
        self._connections: dict[tuple[str, Roots], Connection] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def servers(self, workspace: Workspace) -> Sequence[McpServer]:
        """See `McpServers`."""
        roots = real_roots(workspace)
        configs = self._configs(workspace, roots)
        self._stop_unapproved(workspace, roots, configs)
        return [_Server(self, configs[name], roots, workspace.trusted) for name in configs]

    def program_files(self, workspace: Workspace) -> list[Path]:
        """See `McpServers`."""
        roots = real_roots(workspace)
        configs = [config for config in self._configs(workspace, roots).values() if self._may_start(config)]
        return [path for config in configs for path in self.programs.paths(config, roots)]

    def problems(self, workspace: Workspace) -> list[str]:
        """See `McpServers`. What is wrong with one server is in its view."""
        files = self._config_files(workspace, real_roots(workspace))
        problems = [problem for file in files for problem in file.problems]
        names: dict[str, ServerConfig] = {}
        for file in files:
            for name, config in file.servers.items():
                if name in names:
                    problems.append(f"{name} of {config.source} is left out: {names[name].source} has that name.")
                names.setdefault(name, config)
        try:
            self._pins.find("", None)
        except AmanuError as error:
            problems.append(str(error))
        return problems

    def offer(self, workspace: Workspace, client: str, servers: Sequence[OfferedServer]) -> None:
        """See `McpServers`."""
        session_id = workspace.session_id
        if not self._offered.put(session_id, client, servers):
            return
        wanted = {self._launch_key(config) for config in self._offered.file(session_id).servers.values()}
        self._stop_soon(
            key
            for key, connection in self._connections.items()
            if connection.session_id == session_id and key[0] not in wanted
        )
        if wanted:
            task = asyncio.create_task(self._start_offered(workspace))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
        self.notify()

    async def approve(self, workspace: Workspace, name: str, digest: str) -> None:
        """See `McpServers`. Returns once it is recorded; the server starts meanwhile."""
        config, roots = self._find(workspace, name)
        await self.sandbox.proved()
        if config.fault:
            raise AmanuError("invalidParams", config.fault)
        if not workspace.trusted and (reason := self._untrusted(config, roots)):
            raise AmanuError("permissionDenied", f"The MCP server {name} is not started. {reason}")
        if digest != self.digest(config, roots):
            raise AmanuError(
                "mcpServerChanged",
                f"The MCP server {name} has changed since it was shown.",
                hint="Look at it again, then decide.",
            )
        pin = self._find_pin(config)
        approved = self._configured_digest(config)
        pin = replace(pin, off=False) if pin.digest == approved else Pin(approved)
        self._save_pin(config, replace(pin, files={**pin.files, **self.programs.digests(config, roots)}))
        (await self.connection(config, roots)).start_anew()
        self.notify()

    async def approve_tools(self, workspace: Workspace, name: str, tools_digest: str) -> None:
        """See `McpServers`."""
        config, roots = self._find(workspace, name)
        pin = self.pin(config, roots)
        if pin.listing is None or pin.listing.digest != tools_digest:
            raise AmanuError(
                "mcpServerChanged",
                f"The tools of the MCP server {name} have changed since they were shown.",
                hint="Look at them again, then decide.",
            )
        self._save_pin(config, replace(pin, texts=pin.listing.texts))
        self.notify()

    async def turn_off(self, workspace: Workspace, name: str) -> None:
        """See `McpServers`."""
        config, _ = self._find(workspace, name)
        self._save_pin(config, replace(self._find_pin(config), off=True))
        for key in [key for key, connection in self._connections.items() if connection.name == name]:
            if self._launch_key(config) == key[0]:
                await self._connections.pop(key).stop()
        self.notify()

    async def restart(self, workspace: Workspace, name: str) -> None:
        """See `McpServers`. Returns once it has ended; it starts meanwhile. One that is not approved, or off, is not
        started."""
        config, roots = self._find(workspace, name)
        if self.state(config, roots, trusted=workspace.trusted)[0] in ("unapproved", "off") or config.fault:
            return
        connection = await self.connection(config, roots)
        await connection.stop()
        connection.start_anew()

    async def sign_in(self, workspace: Workspace, name: str, open_page: Callable[[str], None]) -> None:
        """See `McpServers`."""
        config, roots = self._find(workspace, name)
        if (
            config.kind == "stdio"
            or self.state(config, roots, trusted=workspace.trusted)[0] in ("unapproved", "off")
            or config.fault
        ):
            raise AmanuError(
                "authRequired", f"{name} is not a server you can sign in to: it must have an address, and be turned on."
            )
        connection = await self.connection(config, roots)
        await connection.stop()
        opening = await self._opening()
        await opening.sign_in(config, roots, self, connection.log, open_page)
        connection.start_anew()

    def forget(self, name: str) -> None:
        """The user removed that server from their file: what was approved is forgotten."""
        self._pins.forget(name, None)
        self.notify()

    async def close(self) -> None:
        """See `McpServers`."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(connection.stop() for connection in connections), return_exceptions=True)
        await asyncio.gather(*self._ending, return_exceptions=True)

    # For its servers --------------------------------------------------------------------------------

    def digest(self, config: ServerConfig, roots: Roots) -> str:
        """The digest of all that an approval is about: the configuration, and the content of the files that it runs."""
        digest, files = self._configured_digest(config), self.programs.digests(config, roots)
        return _sha256([digest, sorted(files.items())]) if files else digest

    def check_files(self, config: ServerConfig, roots: Roots) -> str:
        """Why it may not be started as its files are now, as a sentence; "" when it may."""
        if config.session_id:  # the user approved it by configuring it in their editor
            return ""
        return unapproved(self._find_pin(config).files, self.programs.digests(config, roots), roots)

    def state(self, config: ServerConfig, roots: Roots, *, trusted: bool) -> tuple[ServerState, str]:
        """Its state in these folders, and why. `trusted`: the user trusts them."""
        if config.session_id and not self._offered.has(config):
            return "off", f"{config.source} has taken it back."
        if config.fault:
            return "failed", config.fault
        if not config.table.enabled:
            return "off", f"It is turned off in {config.source}."
        try:
            pin = self._find_pin(config)
        except AmanuError as error:
            return "failed", str(error)
        if pin.off:
            return "off", ""
        if not trusted and (reason := self._untrusted(config, roots)):
            return "unapproved", reason
        if not self._is_approved(config, pin):
            return "unapproved", "Its configuration changed since you approved it." if pin.digest else ""
        if reason := self.check_files(config, roots):
            return "unapproved", reason
        connection = self._connections.get((self._launch_key(config), roots))
        return ("configured", "") if connection is None else (connection.state, connection.reason)

    def pin(self, config: ServerConfig, roots: Roots) -> Pin:
        """What was approved, with what it lists now where it runs."""
        try:
            pin = self._find_pin(config)
        except AmanuError:
            return Pin()
        connection = self._connections.get((self._launch_key(config), roots))
        if connection is None or connection.listing is None:
            return pin
        return replace(pin, listing=connection.listing)

    async def connection(self, config: ServerConfig, roots: Roots) -> "Connection":
        """The one all sessions share; of an offered server, its session's."""
        from amanu.mcp.server_log import ServerLog, log_file

        key = self._launch_key(config), roots
        if key not in self._connections:
            opening = await self._opening()
            if key not in self._connections:
                server_log = ServerLog(log_file(self.home, config.name))
                self._connections[key] = opening.make_connection(
                    config, roots, self, server_log, lambda: self._moved(config, roots)
                )
        return self._connections[key]

    def notify(self) -> None:
        """A view may have changed."""
        for listener in [*self.listeners]:
            try:
                listener()
            except Exception:
                log.exception("a listener of MCP servers failed")

    async def _opening(self) -> Any:
        """What imports the SDK: it takes a third of a second."""
        return await asyncio.to_thread(importlib.import_module, "amanu.mcp.opening")

    # Inside -----------------------------------------------------------------------------------------

    def _find(self, workspace: Workspace, name: str) -> tuple[ServerConfig, Roots]:
        roots = real_roots(workspace)
        configs = self._configs(workspace, roots)
        config = configs.get(name)
        if config is None:
            names = ", ".join(configs) or "none"
            raise AmanuError("mcpServerNotFound", f"There is no MCP server {name!r} here. Available: {names}.")
        return config, roots

    def _configs(self, workspace: Workspace, roots: Roots) -> dict[str, ServerConfig]:
        configs: dict[str, ServerConfig] = {}
        for file in self._config_files(workspace, roots):
            for name in sorted(file.servers):
                configs.setdefault(name, file.servers[name])
        return configs

    def _config_files(self, workspace: Workspace, roots: Roots) -> list[ConfigFile]:
        """All that configure servers; the first one counts where several name one."""
        plugins = [servers.read() for servers in self._of_plugins()]
        own = [self._files.workspace(root) for root in roots if workspace.trusted]
        return [self._files.user(), *plugins, *own, self._offered.file(workspace.session_id)]

    def _find_pin(self, config: ServerConfig) -> Pin:
        """What is recorded of it. Raises `AmanuError`, see `Pins`."""
        if config.session_id:
            return self._offered.pin(config) or Pin(self._configured_digest(config))
        return self._pins.find(config.name, config.root)

    def _save_pin(self, config: ServerConfig, pin: Pin) -> None:
        if config.session_id:
            self._offered.save(config, pin)
        else:
            self._pins.save(config.name, config.root, pin)

    async def _start_offered(self, workspace: Workspace) -> None:
        """Start those whose tools are not known."""
        await self.sandbox.proved()
        roots = real_roots(workspace)
        for config in self._configs(workspace, roots).values():
            new = config.session_id and self.pin(config, roots).listing is None
            if new and self.state(config, roots, trusted=workspace.trusted)[0] == "configured":
                connection = await self.connection(config, roots)
                if self._offered.has(config):
                    connection.start()

    def _untrusted(self, config: ServerConfig, roots: Roots) -> str:
        """Why it does not start in folders that are not trusted; "" when it does."""
        return "It runs files of this folder, which is not trusted." if self.programs.paths(config, roots) else ""

    def _may_start(self, config: ServerConfig) -> bool:
        """Whether the user approved it as it is configured, whatever its files hold."""
        try:
            pin = self._find_pin(config)
        except AmanuError:
            return False
        return config.table.enabled and not config.fault and not pin.off and self._is_approved(config, pin)

    def _configured_digest(self, config: ServerConfig) -> str:
        """The digest of the configuration. Where no sandbox works, an approval is about more than it says."""
        proof = self.sandbox.proof
        return self._digest(config, sandboxed=proof is None or proof.tier != "none")

    def _is_approved(self, config: ServerConfig, pin: Pin) -> bool:
        """Before it is known whether a sandbox works here, either approval counts: nothing is started until then."""
        if config.session_id:  # the user approved it by configuring it in their editor
            return True
        possible = (True, False) if self.sandbox.proof is None else (self.sandbox.proof.tier != "none",)
        return pin.digest in [self._digest(config, sandboxed=sandboxed) for sandboxed in possible]

    def _digest(self, config: ServerConfig, *, sandboxed: bool) -> str:
        if sandboxed or config.kind == "http" or not config.access.sandbox:
            return config.digest
        return hashlib.sha256(f"{config.digest} without a sandbox".encode()).hexdigest()

    def _launch_key(self, config: ServerConfig) -> str:
        """What decides whether two configurations can share a process: values of variables, too."""
        table = config.table
        about = [config.name, str(config.root), config.digest, sorted(table.env.items()), sorted(table.headers.items())]
        about += [table.type, table.start_seconds, table.call_seconds, table.idle_seconds, config.session_id]
        return _sha256(about)

    def _moved(self, config: ServerConfig, roots: Roots) -> None:
        """A connection changed: what it lists first after an approval is approved with it."""
        connection = self._connections.get((self._launch_key(config), roots))
        if connection is not None and connection.listing is not None:
            try:
                pin = self._find_pin(config)
                if pin.listing != connection.listing or pin.texts is None:
                    self._save_pin(config, pin.with_listing(connection.listing))
            except AmanuError as error:
                log.error("the tools of an MCP server could not be recorded: %s", error)
        self.notify()

    def _stop_unapproved(self, workspace: Workspace, roots: Roots, configs: Mapping[str, ServerConfig]) -> None:
        """The file changed, or the user turned it off in another process."""
        if not self._connections:
            return
        wanted = {
            self._launch_key(config)
            for config in configs.values()
            if self.state(config, roots, trusted=workspace.trusted)[0] not in ("unapproved", "off")
        }
        self._stop_soon(
            key
            for key, connection in self._connections.items()
            if key[1] == roots
            and key[0] not in wanted
            and connection.session_id in ("", workspace.session_id)
            and (workspace.trusted or connection.is_users)
        )

    def _stop_soon(self, keys: Iterable[tuple[str, Roots]]) -> None:
        """Stop these connections without waiting for it."""
        for key in [*keys]:
            task = asyncio.create_task(self._connections.pop(key).stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


@dataclass(frozen=True)
class _Server:
    """Implements `McpServer`."""

    servers: Servers
    config: ServerConfig
    roots: Roots
    trusted: bool

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def view(self) -> ServerView:
        config, servers = self.config, self.servers
        state, reason = servers.state(config, self.roots, trusted=self.trusted)
        pin = servers.pin(config, self.roots)
        approved = state not in ("unapproved", "off")
        return ServerView(
            name=config.name,
            state=state,
            reason=reason,
            source=config.source,
            target=target_text(config, servers.variables, self.roots),
            access=access_sentence(config, servers.sandbox, servers.programs.reads(config, self.roots)),
            digest=servers.digest(config, self.roots),
            tools=[tool for tool in pin.tools if config.table.tools.allows(tool.name)] if approved else [],
            changed_tools=pin.changed if approved else [],
            tools_digest=pin.listing.digest if pin.listing else "",
            instructions=pin.instructions if approved else "",
            has_resources=approved and pin.listing is not None and pin.listing.has_resources,
            has_prompts=approved and pin.listing is not None and pin.listing.has_prompts,
            is_offered=bool(config.session_id),
            contained=config.kind == "stdio" and config.access.is_contained and servers.sandbox.tier != "none",
        )

    async def call_tool(self, name: str, arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
        connection = await self._ready()
        view = self.view  # as it lists its tools now, which may be other ones than those that were remembered
        if all(tool.name != name for tool in view.tools):
            if any(tool.name == name for tool in view.changed_tools):
                raise ToolError(
                    f"The tool {name} of the MCP server {self.config.name} is off: its description changed, and the "
                    "user has not approved it yet."
                )
            names = ", ".join(tool.name for tool in view.tools) or "none"
            raise ToolError(f"The MCP server {self.config.name} has no tool {name!r}. Available: {names}.")
        try:
            answer = await connection.call_tool(name, arguments, client)
        except ToolError as error:
            hint = self._withheld(str(error))
            if not hint or hint in str(error):
                raise
            raise ToolError(f"{error} {hint}") from None
        said = "\n".join(piece.text for piece in answer.content) if answer.is_error else ""
        return replace(answer, hint=self._withheld(said))

    def _withheld(self, said: str) -> str:
        return withheld(self.config.access, said) if self.config.kind == "stdio" else ""

    async def list_resources(self) -> Sequence[ServerResource]:
        return await (await self._ready()).list_resources()

    async def read_resource(self, uri: str) -> Sequence[Content]:
        return await (await self._ready()).read_resource(uri)

    async def list_prompts(self) -> Sequence[ServerPrompt]:
        return await (await self._ready()).list_prompts()

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        return await (await self._ready()).get_prompt(name, arguments)

    async def _ready(self) -> "Connection":
        """Start it if the user approved that. Raises `ToolError`."""
        servers = self.servers
        await servers.sandbox.proved()
        state, reason = servers.state(self.config, self.roots, trusted=self.trusted)
        if state in ("unapproved", "off"):
            why = "is turned off" if state == "off" else "needs the user's approval before it starts"
            raise ToolError(f"The MCP server {self.config.name} {why}. {reason}".rstrip())
        if self.config.fault:
            raise ToolError(f"The MCP server {self.config.name} cannot be used. {reason}")
        connection = await servers.connection(self.config, self.roots)
        await connection.ready()
        return connection


def _sha256(about: object) -> str:
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def real_roots(workspace: Workspace) -> Roots:
    """The folders of a workspace as real paths, sorted but for the first: sessions share servers whatever the order
    of the others."""
    roots = [Path(os.path.realpath(root)) for root in workspace.roots]
    return (*roots[:1], *sorted(set(roots[1:]) - set(roots[:1])))
