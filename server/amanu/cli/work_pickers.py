"""Lists to choose from, of what works for a session: background commands, sub-agents, MCP servers."""

import time
from collections.abc import Callable, Sequence

from amanu.cli.console import Console
from amanu.cli.job_slash_commands import standing
from amanu.cli.question import show_lines
from amanu.cli.text import one_line, stripped, visible
from amanu.cli.ui.dialog import Choice, Dialog, Preview
from amanu.cli.ui.live_choices import LiveChoices
from amanu.cli.ui.terminal import StopRequested, Terminal
from amanu.client.session_view import SessionView
from amanu.text.sub_agents import agent_label, agent_number, agent_standing, find_agent
from amanu_protocol import requests as r
from amanu_protocol.items import Job, Line, SubAgent
from amanu_protocol.state import SessionState

_PREVIEWED = 4_000
"""Bytes at the end of an output, of which the last lines are shown."""
_PREVIEWED_LINES = 8


class WorkPickers:
    """Each returns the slash command that was chosen, or None when the user left with Esc, or was asked something."""

    def __init__(self, view: SessionView, terminal: Terminal, console: Console) -> None:
        self._view = view
        self._terminal = terminal
        self._console = console

    async def job(self) -> str | None:
        job_id = await self._pick("command", lambda: job_choices(self._view.state, time.time()), self._last_lines)
        job = next((job for job in self._view.state.jobs if job.job_id == job_id), None)
        if job is None:
            return None
        verb = await self._pick(job.job_id, lambda: job_actions(job)) if job.state == "running" else "output"
        return None if verb is None else f"/jobs {verb} {job.job_id}"

    async def agent(self) -> str | None:
        agent_id = await self._pick("agent", lambda: agent_choices(self._view.state, time.time()), self._what_it_does)
        agent = find_agent(self._view.state.agents, agent_id or "")
        if agent is None:
            return None
        verb = await self._pick(agent_label(agent.name, agent.agent_id), lambda: agent_actions(agent))
        if verb == "go":
            return f"/sessions {agent.session_id}"
        return None if verb is None else f"/agents {verb} {agent_number(agent.agent_id)}"

    async def server(self) -> bool:
        """Decide on an MCP server. False when there is none. Raises `AmanuError`."""
        params = r.SessionParams(session_id=self._view.session_id)
        listed = await self._view.client.request("amanu/mcp/list", params, r.McpListResult)
        name = await self._pick("server", lambda: [_server_choice(server) for server in listed.servers])
        server = next((server for server in listed.servers if server.name == name), None)
        if server is not None:
            show_lines(server.lines, self._console)  # all that an approval is about
            verb = await self._pick(one_line(server.name, 30), lambda: server_actions(server))
            if verb is not None:
                for line in visible(await self._decide(server, verb)).split("\n"):
                    self._console.line(("", line))
        return bool(listed.servers)

    async def _decide(self, server: r.McpServer, verb: str) -> str:
        """Returns what was done."""
        session_id, client = self._view.session_id, self._view.client
        plain = r.McpServerParams(session_id=session_id, name=server.name)
        match verb:
            case "approve":
                approved = r.McpApproveParams(session_id=session_id, name=server.name, digest=server.digest)
                return (await client.request("amanu/mcp/approve", approved, r.McpServerResult)).summary
            case "approveTools":
                tools = r.McpApproveToolsParams(
                    session_id=session_id, name=server.name, tools_digest=server.tools_digest
                )
                return (await client.request("amanu/mcp/approveTools", tools, r.McpServerResult)).summary
            case "signIn":
                return (await client.request("amanu/mcp/signIn", plain, r.McpSignInResult)).summary
            case "restart":
                return (await client.request("amanu/mcp/restart", plain, r.McpServerResult)).summary
            case _:
                return (await client.request("amanu/mcp/turnOff", plain, r.McpServerResult)).summary

    async def _last_lines(self, job_id: str) -> Sequence[Line]:
        sizes = {job.job_id: job.output_size for job in self._view.state.jobs}
        offset = max(0, sizes.get(job_id, 0) - _PREVIEWED)
        params = r.JobOutputParams(session_id=self._view.session_id, job_id=job_id, offset=offset)
        answer = await self._view.client.request("amanu/job/output", params, r.JobOutputResult)
        lines = stripped(answer.text).rstrip("\n").split("\n")[-_PREVIEWED_LINES:]
        return [Line(tone="plain", text=line) for line in lines if line.strip()] or [_line("No output.")]

    async def _what_it_does(self, agent_id: str) -> Sequence[Line]:
        agent = find_agent(self._view.state.agents, agent_id)
        return [] if agent is None else [_line(text) for text in (agent.description, agent.activity) if text]

    async def _pick(
        self, name: str, find: Callable[[], Sequence[Choice]], preview: Preview | None = None
    ) -> str | None:
        choices = LiveChoices(find)
        if not choices:
            return None
        try:
            return await self._terminal.ask(
                Dialog(f"{name} › ", choices, is_picker=True, valid=self._is_undisturbed, preview=preview)
            )
        except StopRequested:
            return None

    def _is_undisturbed(self) -> bool:
        state = self._view.state
        return not (self._view.client.lost.is_set() or state.approvals or state.questions)


def job_choices(state: SessionState, now: float) -> Sequence[Choice]:
    """The running ones first, the newest first. `now` in seconds since the epoch."""
    jobs = sorted(reversed(state.jobs), key=lambda job: job.state != "running")
    return [
        Choice(
            job.job_id,
            f"{'▸' if job.state == 'running' else '·'} {job.job_id}  {one_line(job.title, 50)}",
            standing(job, now),
        )
        for job in jobs
    ]


def job_actions(job: Job) -> Sequence[Choice]:
    return [
        Choice("output", "Show its output", one_line(job.last_line, 60)),
        Choice("stop", "Stop it", "with all its processes"),
    ]


def agent_choices(state: SessionState, now: float) -> Sequence[Choice]:
    """The working ones first, the newest first."""
    agents = sorted(reversed(state.agents), key=lambda agent: not agent.works)
    return [
        Choice(
            agent.agent_id,
            f"{'▸' if agent.works else '·'} {agent_label(agent.name, agent.agent_id)}",
            agent_standing(agent, now),
        )
        for agent in agents
    ]


def agent_actions(agent: SubAgent) -> Sequence[Choice]:
    stop = [Choice("stop", "Stop it", "the turn goes on")] if agent.works else []
    return [
        Choice("open", "Show what it did", "all that its session holds"),
        Choice("go", "Go to its session", "/sessions returns"),
        *stop,
    ]


def _server_choice(server: r.McpServer) -> Choice:
    name, _, standing = one_line(server.lines[0].text, 300).partition(": ")
    return Choice(server.name, name, standing)


_APPROVE = Choice("approve", "Approve and start it", "exactly as printed above")
_TURN_ON = Choice("approve", "Turn it on", "exactly as printed above")
_APPROVE_TOOLS = Choice("approveTools", "Approve its tools", "as they are now, printed above")
_SIGN_IN = Choice("signIn", "Sign in")
_RESTART = Choice("restart", "Start it again")
_TURN_OFF = Choice("turnOff", "Turn it off", "until it is approved again")
_ACTIONS: dict[str, Sequence[Choice]] = {
    "unapproved": [_APPROVE],
    "off": [_TURN_ON],
    "configured": [_TURN_OFF],
    "starting": [_TURN_OFF],
    "ready": [_RESTART, _TURN_OFF],
    "failed": [_RESTART, _TURN_OFF],
    "needsSignIn": [_SIGN_IN, _TURN_OFF],
}


def server_actions(server: r.McpServer) -> Sequence[Choice]:
    """The decisions about it that are possible now."""
    return [*([_APPROVE_TOOLS] if server.changed_tools else []), *_ACTIONS[server.state]]


def _line(text: str) -> Line:
    return Line(tone="plain", text=one_line(text, 400))
