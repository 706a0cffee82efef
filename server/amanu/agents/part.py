"""Sub-agents as a part of a session, and of the daemon."""

from collections.abc import Mapping, Sequence

from amanu.agents.definitions import AgentPlaces
from amanu.agents.run_agent import RunAgent
from amanu.agents.session_agents import SessionAgents
from amanu.context.plugins import plugin_folders
from amanu.core.notes import SystemNote
from amanu.core.session_part import Request, SessionPart
from amanu.core.tool import AnyTool
from amanu.session.core import SessionCore
from amanu.session.daemon_part import DaemonPart
from amanu.text.amounts import plural
from amanu_protocol.requests import AgentParams


class AgentsPart(SessionPart):
    """The sub-agents of one session."""

    def __init__(self, agents: SessionAgents, *, enabled: bool) -> None:
        """Unless `enabled`, no new sub-agents are started, but the session may still have old ones."""
        self.agents = agents
        self._enabled = enabled
        self._run_agent = RunAgent(agents)

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        async def stop(part: AgentsPart, params: AgentParams, client: object) -> object:
            return await part.agents.stop(params)

        return {"amanu/agent/stop": Request(AgentParams, stop)}

    def tools(self) -> Sequence[AnyTool]:
        return [self._run_agent] if self._enabled else []

    async def begin_turn(self) -> None:
        if self._enabled:
            await self.agents.refresh()

    def note(self) -> str:
        return self.agents.note_with_prompt()

    def note_between_steps(self) -> SystemNote | None:
        ended = self.agents.end_notes()
        if not ended:
            return None
        return SystemNote("\n\n".join(ended), f"The model was told how {plural(len(ended), 'agent')} ended.")

    @property
    def idle(self) -> bool:
        return not self.agents.running

    async def stop(self) -> None:
        await self.agents.close()


class DaemonAgents(DaemonPart):
    """Gives users' sessions their sub-agents, and a sub-agent's session the part that was made for its task."""

    session_part = AgentsPart

    def part_of(self, core: SessionCore) -> SessionPart | None:
        if core.assignment is not None:
            return core.assignment.part
        if self.sessions is None:
            return None
        agents = SessionAgents(core, self.sessions, _places(core))
        return AgentsPart(agents, enabled=core.services.settings.agents.enabled)


def _places(core: SessionCore) -> AgentPlaces:
    home = core.services.home
    return AgentPlaces(
        [home.agents],
        core.workspace,
        core.approvals.allowed,
        core.covers,
        core.trusted,
        lambda: plugin_folders(home.plugins, "agent"),
    )


DAEMON_PART = DaemonAgents
