"""The sub-agents of one session: started for calls of `run_agent`, stopped, reported on.

A sub-agent works in its own session, with its own journal and conversation, but shares what belongs to its parent:
proposals, approvals, questions, background commands, mode, rules, trust, money (`core.Assignment`). So whatever needs
the user is asked in the parent, and the agent's edits are part of the parent's turn. When the work is done, its session
is closed; opened again, that is a session like any other.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence

from amanu.agents.definitions import AgentPlaces, FoundAgents
from amanu.agents.model import AgentReport, AgentTask
from amanu.agents.report import findings_notice
from amanu.agents.work import AgentWork
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import CallContext, ToolError
from amanu.session.child_sessions import ChildSessions
from amanu.session.core import SessionCore
from amanu.text.fences import block
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    AgentChanged,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ItemCompleted,
    ItemStarted,
    SessionChanged,
)
from amanu_protocol.items import Question, SubAgent
from amanu_protocol.requests import AgentParams, AgentResult

STOP_SECONDS = 0.45
"""A stop waits no longer: as with cancelling a turn, it is acknowledged within half a second."""


class SessionAgents:
    """Implements `run_agent.Agents`. `on_start` and `on_end` are the places to listen to sub-agents."""

    def __init__(self, core: SessionCore, sessions: ChildSessions, places: AgentPlaces) -> None:
        self._core = core
        self._sessions = sessions
        self._places = places
        self._found = FoundAgents([])
        self._warned: set[str] = set()
        self._free = asyncio.Semaphore(core.services.settings.agents.parallel)
        self._works: dict[str, AgentWork] = {}
        """Agent id → its work, while it works."""
        self.on_start: list[Callable[[AgentWork], None]] = []
        """Called when a sub-agent's session is open and before it is prompted."""
        self.on_end: list[Callable[[AgentWork], None]] = []
        """Called when a sub-agent has ended in any way; its `report` says how."""
        self._core.emit.listeners.append(self._on_event)

    async def refresh(self) -> None:
        """Read the definitions again: a turn is about to start."""
        self._found = await asyncio.to_thread(self._places.find)
        for warning in self._found.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._core.notices.report_on_session("agentFile", "warning", warning)

    @property
    def running(self) -> bool:
        return any(work.shown.works for work in self._works.values())

    # For the model ----------------------------------------------------------------------------------

    def available(self) -> Sequence[AgentDefinition]:
        return self._found.agents

    async def run(self, task: AgentTask, call: CallContext) -> AgentReport:
        definition = self._found.find(task.agent)
        if definition is None:
            raise ToolError(f"There is no agent {task.agent!r} any more.")
        shown = SubAgent(
            agent_id=self._new_id(),
            name=definition.name,
            description=task.description,
            session_id=f"agent-{uuid.uuid4().hex}",
            tool_call_id=call.call_id,
            background=(task.background or definition.background) and not self._core.services.headless,
            state="waiting",
            started_at=int(time.time() * 1000),
            activity="Waiting for its turn",
        )
        work = self._works[shown.agent_id] = AgentWork(self._core, self._sessions, definition, shown, call.turn_id)
        work.start(task.prompt, self._free, self._started)
        assert work.task is not None
        work.task.add_done_callback(lambda _: self._ended(work))
        if shown.background:
            message = f"{shown.agent_id} ({shown.name}) works in the background. You will be told when it ends."
            return AgentReport(shown.agent_id, shown.name, shown.session_id, None, message, "")
        try:
            return await asyncio.shield(work.task)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work.task})
            raise

    def end_notes(self) -> list[str]:
        """The ends of background sub-agents that the model has not been told; they count as told once this returns."""
        notes: list[str] = []
        for agent in [agent for agent in self._core.state.agents if not (agent.works or agent.told)]:
            self._core.emit(AgentChanged(agent=agent.model_copy(update={"told": True, "report": ""})))
            if agent.background:  # for any other, its call says how it ended
                text = agent.report or _unreported(agent)
                notes.append(block("agent_result", text, f"{agent.agent_id} {agent.name}"))
        return notes

    def note_with_prompt(self) -> str:
        """The text sent with a prompt: how background sub-agents ended, and which are still at work; "" for nothing."""
        going_on = [agent for agent in self._core.state.agents if agent.background and agent.works]
        names = ", ".join(f"{agent.agent_id} ({agent.name}: {agent.description})" for agent in going_on)
        return "\n".join([*self.end_notes(), *([f"Agents at work in the background: {names}."] if names else [])])

    # Requests ---------------------------------------------------------------------------------------

    async def stop(self, params: AgentParams) -> AgentResult:
        """End a sub-agent's work, unless it has ended. Raises `AmanuError` (agentNotFound)."""
        shown = next((agent for agent in self._core.state.agents if agent.agent_id == params.agent_id), None)
        if shown is None:
            raise AmanuError("agentNotFound", f"This session has no agent {params.agent_id}.")
        work = self._works.get(params.agent_id)
        if work is not None and work.task is not None:
            work.cancel()
            await asyncio.wait({work.task}, timeout=STOP_SECONDS)
            shown = work.shown
        await self._core.emit.durable()
        return AgentResult(agent=shown)

    async def close(self) -> None:
        """Stop all of them: the session is being closed."""
        for work in self._works.values():
            work.cancel("closed")
        tasks = [work.task for work in self._works.values() if work.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        numbers = [int(agent.agent_id.rpartition("-")[2]) for agent in self._core.state.agents]
        return f"agent-{max(numbers, default=0) + 1}"

    def _started(self, work: AgentWork) -> None:
        for listener in self.on_start:
            listener(work)

    def _ended(self, work: AgentWork) -> None:
        assert work.report is not None
        del self._works[work.label.agent_id]
        if work.shown.background and work.shown.state != "cancelled":
            level = "info" if work.report.completed else "warning"
            self._core.notices.report_on_session("agentEnded", level, work.report.message)
        if (text := findings_notice(work.label, work.complete_task.fields)) is not None:
            self._core.notices.report_on_session("agentFindings", "info", text)
        for listener in self.on_end:
            listener(work)
        self._core.list_changed()

    def _on_event(self, event: Event, position: int) -> None:
        """An `EventListener` of the session."""
        match event:
            case ApprovalRequested() | ApprovalResolved():
                self._show_waits()
            case ItemStarted(item=Question()) | ItemCompleted(item=Question()):
                self._show_waits()
            case SessionChanged():
                for work in self._works.values():
                    work.show_setting()
            case _:
                pass

    def _show_waits(self) -> None:
        for work in self._works.values():
            work.show_wait()


def _unreported(agent: SubAgent) -> str:
    """A sentence about the end of a sub-agent that could not report."""
    ways = {"interrupted": "was interrupted when the daemon stopped,", "cancelled": "was cancelled"}
    how = ways.get(agent.state, agent.state)
    return f"{agent.name} ({agent.agent_id}) {how} without a report. All it did is in its session, {agent.session_id}."
