"""`/running` in the chat: everything that runs for a session, and the MCP servers among it, kept fresh."""

import time
from typing import Any

from amanu.cli.agent_slash_commands import AgentSlashCommands
from amanu.cli.console import Console
from amanu.cli.job_slash_commands import describe
from amanu.cli.question import STYLES
from amanu.cli.renewal import Renewal
from amanu.cli.text import visible
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu.text.sub_agents import working
from amanu_protocol import requests as r

_RUNNING = ("starting", "ready")


class RunningServers:
    """The MCP servers of a session's folders that run. The daemon says when to ask for them again."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._renewal = Renewal(self.refresh)
        self.servers: list[r.McpServer] = []

    def on_notification(self, method: str, params: Any) -> None:
        """A `DaemonClient.on_notification`."""
        if method == "amanu/mcp/changed":
            self._renewal.request()

    async def refresh(self) -> None:
        """Ask now. Raises `AmanuError`, `Disconnected`."""
        params = r.SessionParams(session_id=self._view.session_id)
        listed = await self._view.client.request("amanu/mcp/list", params, r.McpListResult)
        self.servers = [server for server in listed.servers if server.state in _RUNNING]

    @property
    def count(self) -> str:
        """For the line below the prompt; "" when none runs."""
        return plural(len(self.servers), "server") if self.servers else ""


async def show_running(view: SessionView, servers: RunningServers, console: Console) -> None:
    """Print agents, background commands and MCP servers that run, a line each. Raises `AmanuError`."""
    await servers.refresh()
    agents = working(view.state.agents)
    jobs = [job for job in view.state.jobs if job.state == "running"]
    AgentSlashCommands(view, console).show(agents)
    for job in jobs:
        console.line(("green", describe(job, time.time())))
    for server in servers.servers:
        console.line((STYLES[server.lines[0].tone], visible(server.lines[0].text)))
    if not (agents or jobs or servers.servers):
        console.line(("dim", "Nothing is running."))
        return
    ways = {"/agents stop ID": agents, "/jobs stop ID": jobs, "/mcp off NAME": servers.servers}
    console.line(("dim", " · ".join(way for way, running in ways.items() if running)))
