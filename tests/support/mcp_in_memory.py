"""MCP servers without processes: the contract of `amanu.mcp.model`, kept in memory, for tests of what is above it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amanu.core.tool import ToolError
from amanu.mcp.model import (
    CallAnswer,
    CallClient,
    ChangedTool,
    Content,
    ServerPrompt,
    ServerResource,
    ServerTool,
    ServerView,
    Workspace,
)
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import OfferedServer

Answer = Callable[[Mapping[str, Any], CallClient], Awaitable[CallAnswer]]
TEXT: Mapping[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def server_tool(
    name: str, description: str = "Says it again.", schema: Mapping[str, Any] = TEXT, **more: Any
) -> ServerTool:
    return ServerTool(name, "", description, schema, **more)


async def echo(arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
    return text_answer(f"echo: {arguments.get('text', '')}")


def text_answer(text: str) -> CallAnswer:
    return CallAnswer([Content("text", text)])


@dataclass
class Server:
    """A server; `tools` are what it lists now, those in `agreed` are in force once it is approved."""

    name: str
    tools: Sequence[ServerTool] = (server_tool("echo"),)
    answer: Answer = echo
    state: str = "ready"
    reason: str = ""
    target: str = "python3 -m echo"
    access: str = "It runs in the sandbox, without network."
    instructions: str = ""
    resources: Mapping[str, str] = field(default_factory=dict[str, str])
    prompts: Mapping[str, ServerPrompt] = field(default_factory=dict[str, ServerPrompt])
    trusted_only: bool = False
    agreed: Sequence[ServerTool] | None = None
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    starts: int = 0

    def __post_init__(self) -> None:
        if self.agreed is None:
            self.agreed = self.tools if self.state in ("ready", "configured") else ()

    @property
    def view(self) -> ServerView:
        agreed = self.agreed or ()
        changed = [ChangedTool(tool.name, f"+{tool.description}") for tool in self.tools if tool not in agreed]
        runs = self.state not in ("unapproved", "off")
        return ServerView(
            name=self.name,
            state=self.state,  # pyright: ignore[reportArgumentType]
            reason=self.reason,
            source="your mcp.toml",
            target=self.target,
            access=self.access,
            digest=f"digest of {self.target}",
            tools=[tool for tool in self.tools if tool in agreed] if runs else [],
            changed_tools=changed if runs else [],
            tools_digest=f"digest of {[tool.description for tool in self.tools]}",
            instructions=self.instructions,
            has_resources=bool(self.resources),
            has_prompts=bool(self.prompts),
        )

    async def call_tool(self, name: str, arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
        self.calls.append((name, arguments))
        return await self.answer(arguments, client)

    async def list_resources(self) -> Sequence[ServerResource]:
        return [ServerResource(uri, uri.rpartition("/")[2]) for uri in self.resources]

    async def read_resource(self, uri: str) -> Sequence[Content]:
        if uri not in self.resources:
            raise ToolError(f"{self.name} has no resource {uri}.")
        return [Content("resource", self.resources[uri], uri=uri)]

    async def list_prompts(self) -> Sequence[ServerPrompt]:
        return [*self.prompts.values()]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        return f"{self.prompts[name].description}: " + ", ".join(f"{key}={value}" for key, value in arguments.items())


class ServersInMemory:
    """Implements `amanu.mcp.model.McpServers`."""

    def __init__(self, *servers: Server) -> None:
        self.all = list(servers)
        self.listeners: list[Callable[[], None]] = []
        self.faults: list[str] = []
        self.offered: dict[str, Sequence[OfferedServer]] = {}

    def servers(self, workspace: Workspace) -> Sequence[Server]:
        return sorted(
            (server for server in self.all if workspace.trusted or not server.trusted_only), key=lambda each: each.name
        )

    def program_files(self, workspace: Workspace) -> Sequence[Path]:
        return ()

    def problems(self, workspace: Workspace) -> Sequence[str]:
        return self.faults

    def offer(self, workspace: Workspace, client: str, servers: Sequence[OfferedServer]) -> None:
        self.offered[workspace.session_id] = servers

    def changed(self) -> None:
        for listener in [*self.listeners]:
            listener()

    def put(self, name: str, *tools: ServerTool, agreed: bool = True) -> None:
        """The server lists other tools from now on."""
        server = self._server(name)
        server.tools = tools
        if agreed:
            server.agreed = tools
        self.changed()

    async def approve(self, workspace: Workspace, name: str, digest: str) -> None:
        server = self._server(name)
        if digest != server.view.digest:
            raise AmanuError("mcpServerChanged", f"The server {name} is another by now.")
        server.state, server.agreed = "ready", server.tools
        server.starts += 1
        self.changed()

    async def approve_tools(self, workspace: Workspace, name: str, tools_digest: str) -> None:
        server = self._server(name)
        if tools_digest != server.view.tools_digest:
            raise AmanuError("mcpServerChanged", f"The tools of {name} are others by now.")
        server.agreed = server.tools
        self.changed()

    async def turn_off(self, workspace: Workspace, name: str) -> None:
        self._server(name).state = "off"
        self.changed()

    async def restart(self, workspace: Workspace, name: str) -> None:
        server = self._server(name)
        server.state, server.starts = "ready", server.starts + 1
        self.changed()

    async def sign_in(self, workspace: Workspace, name: str, open_page: Callable[[str], None]) -> None:
        open_page("https://sign.in/example")
        self._server(name).state = "ready"
        self.changed()

    async def close(self) -> None:
        self.all.clear()

    def _server(self, name: str) -> Server:
        server = next((server for server in self.all if server.name == name), None)
        if server is None:
            raise AmanuError("mcpServerNotFound", f"There is no MCP server {name}.")
        return server


def changed(tool: ServerTool, description: str) -> ServerTool:
    return replace(tool, description=description)
