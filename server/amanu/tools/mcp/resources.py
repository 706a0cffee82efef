"""What MCP servers offer to read. On the list only where a server has something."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, Tool, ToolError
from amanu.mcp.model import McpServer
from amanu.text.display import one_line, visible
from amanu.text.fences import block
from amanu.tools.environment import ToolEnvironment
from amanu.tools.mcp.results import outcome_of_content

MAX_LISTED = 200
"""Resources of one server."""
_MAX_LINE = 300


class ListMcpResourcesParams(Params):
    server: str | None = Field(default=None, description="Only of this server.")


class ListMcpResources(Tool[ListMcpResourcesParams]):
    name = "list_mcp_resources"
    effect = "read"
    description = "Lists what MCP servers offer to read."
    params = ListMcpResourcesParams

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = servers

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "List resources of MCP servers"

    async def preview(self, params: ListMcpResourcesParams, call: CallContext) -> Preview:
        chosen = self._chosen(params)
        names = ", ".join(server.name for server in chosen)
        return Preview(
            title=f"List resources of {names}", subject=Subject(self.name, self.effect, names), detail=f"Of {names}"
        )

    async def run(self, params: ListMcpResourcesParams, call: CallContext) -> Outcome:
        lines: list[str] = []
        count = 0
        for server in self._chosen(params):
            name = server.name
            try:
                resources = await server.list_resources()
            except ToolError as error:
                lines.append(f"{name}: {error}")
                continue
            count += len(resources)
            for resource in resources[:MAX_LISTED]:
                about = " — ".join(filter(None, [resource.uri, resource.name, resource.description]))
                lines.append(one_line(f"{name}: {about}")[:_MAX_LINE])
            if len(resources) > MAX_LISTED:
                lines.append(f"{name}: … and {len(resources) - MAX_LISTED} more")
        text = block("mcp_resources", "\n".join(lines) or "(none)")
        return Outcome(text, f"{count} resource{'s' * (count != 1)}")

    def _chosen(self, params: ListMcpResourcesParams) -> Sequence[McpServer]:
        return self._servers if params.server is None else [find_server(self._servers, params.server)]


class ReadMcpResourceParams(Params):
    server: str
    uri: str


class ReadMcpResource(Tool[ReadMcpResourceParams]):
    name = "read_mcp_resource"
    effect = "read"
    description = "Reads a resource of an MCP server."
    params = ReadMcpResourceParams

    def __init__(self, servers: Sequence[McpServer], environment: ToolEnvironment) -> None:
        self._servers = servers
        self._environment = environment

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return one_line(f"Read {arguments.get('server', '')}:{arguments.get('uri', '')}")

    async def preview(self, params: ReadMcpResourceParams, call: CallContext) -> Preview:
        server = find_server(self._servers, params.server).view
        subject = Subject(self.name, self.effect, f"{server.name}:{params.uri}", server=server.name, read_only=True)
        return Preview(
            title=self.title_of(params.model_dump()),
            subject=subject,
            detail="\n".join(filter(None, [visible(params.uri), f"of the MCP server {server.name}", server.access])),
            digest=server.digest,
        )

    async def run(self, params: ReadMcpResourceParams, call: CallContext) -> Outcome:
        server = find_server(self._servers, params.server)
        content = await server.read_resource(params.uri)
        return await outcome_of_content(content, f"{params.server}:{params.uri}", self._environment)


def find_server(servers: Sequence[McpServer], name: str) -> McpServer:
    """The server of that name. Raises `ToolError`."""
    server = next((server for server in servers if server.name == name), None)
    if server is None:
        available = ", ".join(server.name for server in servers)
        raise ToolError(f"There is no MCP server {name!r} with resources. Available: {available}.")
    return server
