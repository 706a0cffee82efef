"""The sub-agents of a session."""

from amanu.agents.part import AgentsPart
from amanu.agents.session_agents import SessionAgents
from amanu.session.session import Session


def agents_of(session: Session) -> SessionAgents:
    part = session.core.parts.find(AgentsPart)
    assert part is not None
    return part.agents
