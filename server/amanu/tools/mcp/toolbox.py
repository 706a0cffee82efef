"""The tools of MCP servers that a turn has.

Where they would take too much of the model's window, they are not told one by one: the model gets `search_tools`, and
calls what it finds through `call_tool`. So the list of tools, and with it the prefix that caches hold, stays the same
whatever the model finds.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from amanu.core.model import MAX_TOOLS
from amanu.core.tool import AnyTool
from amanu.mcp.model import McpServer, ServerTool
from amanu.tools.environment import ToolEnvironment
from amanu.tools.mcp.deferred import CallTool, SearchTools
from amanu.tools.mcp.mcp_tool import McpTool
from amanu.tools.mcp.names import model_name
from amanu.tools.mcp.resources import ListMcpResources, ReadMcpResource

SHARE = 0.1
"""Share of the window that the tools of servers may take before they are deferred."""
MAX_LISTED = MAX_TOOLS - 48
"""Tools of servers that are told one by one; the other places are for built-in tools."""
USABLE = ("configured", "starting", "ready")
"""States of servers whose tools models get: whoever calls one starts it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Toolbox:
    """What a turn has of its servers."""

    by_server: Mapping[str, Sequence[McpTool]]
    """Every tool of each server, in order."""
    listed: Sequence[AnyTool]
    """The tools that the model is told of, behind the built-in ones."""
    deferred: bool
    """The servers' tools are found by a search."""
    tokens: Mapping[str, int]
    """By server: what its tools take in every request, or would if they were not deferred."""


class Toolboxes:
    """Makes the toolboxes of one session. Tools whose name `allows` refuses are left out."""

    def __init__(self, environment: ToolEnvironment, allows: Callable[[str], bool] = lambda name: True) -> None:
        self._environment = environment
        self._allows = allows
        self._made: dict[str, tuple[McpServer, Sequence[ServerTool], Sequence[McpTool]]] = {}
        """By server: its tools as they were made last; converting hundreds of schemas anew would delay each prompt."""

    def make(self, servers: Iterable[McpServer], window: int) -> Toolbox:
        """The tools of those servers that can be used now, for a model with a window of so many tokens. The same
        servers give the same tools, to the byte and in the same order."""
        views = [(server, server.view) for server in sorted(servers, key=lambda server: server.name)]
        usable = [(server, view) for server, view in views if view.state in USABLE]
        by_server = {server.name: self._tools_of(server, view.tools) for server, view in usable}
        every = [tool for tools in by_server.values() for tool in tools]
        tokens = {name: round(sum(tool.spec().tokens for tool in tools)) for name, tools in by_server.items()}
        deferred = sum(tokens.values()) > window * SHARE or len(every) > MAX_LISTED
        listed: list[AnyTool] = [SearchTools(every), CallTool(every)] if deferred else [*every]
        if with_resources := [server for server, view in usable if view.has_resources]:
            resources = (ListMcpResources(with_resources), ReadMcpResource(with_resources, self._environment))
            listed += [tool for tool in resources if self._allows(tool.name)]
        return Toolbox(by_server, listed, deferred, tokens)

    def _tools_of(self, server: McpServer, listed: Sequence[ServerTool]) -> Sequence[McpTool]:
        made = self._made.get(server.name)
        if made is not None and made[0] == server and made[1] == listed:
            return made[2]
        tools: dict[str, McpTool] = {}
        for tool in sorted(listed, key=lambda tool: tool.name):
            name = model_name(server.name, tool.name)
            if name in tools:
                log.warning("the MCP server %s has two tools that come to be named %s", server.name, name)
                continue
            if not self._allows(name):
                continue
            tools[name] = McpTool(name, server, tool, self._environment)
        self._made[server.name] = (server, listed, [*tools.values()])
        return self._made[server.name][2]
