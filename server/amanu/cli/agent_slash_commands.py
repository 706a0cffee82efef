"""`/agents` in the chat: the sub-agents of a session, listed, stopped, their work printed."""

import time

from amanu.cli.console import Console, Style
from amanu.cli.render import Renderer
from amanu.client.session_view import SessionView
from amanu.text.sub_agents import describe_agent, find_agent
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import SubAgent

_STYLES: dict[str, Style] = {"running": "green", "waiting": "yellow", "completed": "", "failed": "red"}
USAGE = "Usage: /agents [stop ID | open ID]"


class AgentSlashCommands:
    """The slash commands of the chat that are about sub-agents. Raise `AmanuError`."""

    def __init__(self, view: SessionView, console: Console) -> None:
        self._view = view
        self._console = console

    async def run(self, argument: str) -> None:
        word, _, agent_id = argument.partition(" ")
        match word, agent_id.strip():
            case "", "":
                self.show(self._view.state.agents)
                if not self._view.state.agents:
                    self._console.line(("dim", "No agents."))
            case "stop", agent_id if agent_id:
                await self._stop(self._find(agent_id))
            case "open", agent_id if agent_id:
                await self._open(self._find(agent_id))
            case _:
                self._console.line(("red", USAGE))

    def show(self, agents: list[SubAgent]) -> None:
        """A line each."""
        for agent in agents:
            self._console.line((_STYLES.get(agent.state, "dim"), describe_agent(agent, time.time())))

    async def _stop(self, agent: SubAgent) -> None:
        params = r.AgentParams(session_id=self._view.session_id, agent_id=agent.agent_id)
        answer = await self._view.client.request("amanu/agent/stop", params, r.AgentResult)
        self._console.line(("dim", describe_agent(answer.agent, time.time())))

    async def _open(self, agent: SubAgent) -> None:
        """Print all that its own session holds, and how to go there."""
        params = r.SessionAttachParams(session_id=agent.session_id)
        answer = await self._view.client.request("amanu/session/attach", params, r.SessionAttachResult)
        left = r.SessionParams(session_id=agent.session_id)
        await self._view.client.request("amanu/session/detach", left, r.Empty)
        assert answer.state is not None, "without sinceSeq the whole state is the answer"
        Renderer(self._console, details_hint="/notes", trust="/trust").show_items(answer.state.items, answer.state)
        self.show([agent])
        self._console.line(("dim", f"/sessions {agent.session_id} goes to its session."))

    def _find(self, typed: str) -> SubAgent:
        """By its id, or the number in it. Raises `AmanuError` (agentNotFound)."""
        agent = find_agent(self._view.state.agents, f"agent-{typed}" if typed.isdecimal() else typed)
        if agent is None:
            raise AmanuError("agentNotFound", f"There is no agent {typed} in this session.", hint="/agents lists them.")
        return agent
