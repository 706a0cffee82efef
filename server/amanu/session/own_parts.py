"""The parts that every session has. Other features of the session know some of them, so they are no folders of their
own (`parts.py`)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from amanu.core.agent import AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.session_part import SessionPart, Slot
from amanu.session.core import SessionCore
from amanu.session.mcp import SessionMcp
from amanu.session.mcp_decisions import McpDecisions
from amanu.session.memory import SessionMemory
from amanu.session.service_tier import SessionServiceTier
from amanu.session.shared_work import SharedWork
from amanu.session.skills import SessionSkills
from amanu.session.status_note import SessionStatus
from amanu.session.step_notes import StepNotes
from amanu.session.title import SessionTitle
from amanu.session.todos import TodoReminder
from amanu.tools.environment import ToolEnvironment


class TodosPart(SessionPart):
    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._reminder = TodoReminder(core.todos, core.conversation)

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [self._reminder]} if self._core.is_chat(run) else {}


class OwnParts:
    KINDS: ClassVar[Sequence[type[SessionPart]]] = (
        SessionMemory,
        McpDecisions,
        SessionSkills,
        SessionMcp,
        SessionServiceTier,
    )
    """The parts with requests or slash commands, in the order of the list of slash commands."""

    def __init__(self, core: SessionCore, work: SharedWork, environment: ToolEnvironment) -> None:
        """`environment` is what the session's tools work with."""
        self.status = SessionStatus(
            core.conversation,
            core.state,
            core.plan.path,
            headless=core.services.headless,
            sub_agent=core.assignment is not None,
        )
        self.mcp = SessionMcp(core, environment)
        self.mcp_decisions = McpDecisions(core, self.mcp)
        self.skills = SessionSkills(core)
        self.memory = SessionMemory(core)
        self.title = SessionTitle(core)
        self.service_tier = SessionServiceTier(core)
        self.all: Sequence[SessionPart] = (
            self.mcp,
            self.skills,
            StepNotes(core, work.feedback, self.status),
            self.memory,
            TodosPart(core),
            core.plan,
            *([core.jobs] if core.assignment is None else []),  # a sub-agent has those of its parent
            self.title,
            self.mcp_decisions,
            self.service_tier,
        )
        """The parts, in the order in which they are asked."""
