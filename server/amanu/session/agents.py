"""The sub-agents of one session: started for calls of `run_agent`, watched, stopped, reported on.

A sub-agent works in a session of its own, with a journal and a conversation of its own, but with what belongs to its
parent: proposals, approvals, questions, background commands, mode, rules, trust, money (`core.Assignment`). So whatever
needs the user is asked in the parent, and its edits are part of the parent's turn. When its work is done its session is
closed; opened again, it is a session like any other.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from amanu.context.agent_files import AgentPlaces, FoundAgents
from amanu.context.editor import EditorContext
from amanu.context.mentions import without_mentions
from amanu.core.agent import AgentLimits
from amanu.core.sub_agents import AgentDefinition, AgentEnd, AgentReport, AgentTask
from amanu.core.tool import AgentLabel, CallContext, ToolError
from amanu.models import routing
from amanu.session.agent_mirror import AgentMirror
from amanu.session.agent_report import conclude, findings_notice
from amanu.session.core import Assignment, SessionCore
from amanu.session.services import Services
from amanu.text.fences import block
from amanu.text.wording import summarize_agent
from amanu.tools.complete_task import CompleteTask
from amanu.tools.run_agent import report_text
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    AgentChanged,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    EventMessage,
    ItemCompleted,
    ItemStarted,
    SessionChanged,
    StepEnded,
    TurnEnded,
    UsageChanged,
)
from amanu_protocol.items import Question, SubAgent, ToolCall
from amanu_protocol.requests import AgentParams, AgentResult, PromptSendParams, PromptSendResult

log = logging.getLogger(__name__)

STOP_SECONDS = 0.45
"""As for a turn that is cancelled: the stop is acknowledged within half a second."""


class ChildPrompts(Protocol):
    async def send(self, params: PromptSendParams, client: "ParentClient") -> PromptSendResult: ...

    async def stop(self) -> None: ...


class ChildSession(Protocol):
    """The session of a sub-agent (`session.Session`)."""

    @property
    def core(self) -> SessionCore: ...

    @property
    def prompts(self) -> ChildPrompts: ...

    async def wait_for_turn(self, turn_id: str) -> TurnEnded: ...


@dataclass(frozen=True)
class NewChild:
    """A session that is to be made for a sub-agent."""

    session_id: str
    title: str
    model_id: str
    assignment: Assignment


class ChildSessions(Protocol):
    """Opens and closes the sessions of sub-agents. Implemented by `sessions.Sessions`."""

    async def begin_child(self, child: NewChild) -> ChildSession:
        """Raises `AmanuError`: storageError, tooManySessions."""
        ...

    async def end_child(self, session_id: str) -> None:
        """Close the session of a sub-agent whose work is over. Raises nothing."""
        ...


@dataclass(frozen=True)
class ParentClient:
    """In whose name a sub-agent is prompted: its parent's. It shows nothing."""

    environment: Mapping[str, str]
    name: str = ""
    trusted_roots: None = None
    ripgrep: None = None
    context: EditorContext | None = None

    def send(self, message: EventMessage) -> None:
        pass

    def mcp_changed(self) -> None:
        pass

    def list_changed(self, session_id: str) -> None:
        pass


@dataclass
class Work:
    """One sub-agent at work."""

    definition: AgentDefinition
    label: AgentLabel
    prompt: str
    shown: SubAgent
    complete_task: CompleteTask
    end: AgentEnd | None = None
    """Why it was stopped, or None."""
    message: str = ""
    """What failed, as a sentence."""
    said: str = ""
    """Its last answer."""
    child: ChildSession | None = None
    task: "asyncio.Task[AgentReport] | None" = None
    report: AgentReport | None = None
    is_announced: bool = True
    """Clients know `shown`."""

    def cancel(self) -> None:
        """Stop it. Once: a second cancellation would cut short what the first one waits for."""
        if self.end is None and self.task is not None:
            self.end = "cancelled"
            self.task.cancel()


StartListener = Callable[[SubAgent, ChildSession], None]


class SessionAgents:
    """Implements `core.sub_agents.SubAgents`. `on_start` and `on_end` are the places to listen to sub-agents."""

    def __init__(self, core: SessionCore, children: ChildSessions, places: AgentPlaces, assign: "Assign") -> None:
        """`assign` makes what a sub-agent's session gets of this one."""
        self._core = core
        self._children = children
        self._places = places
        self._assign = assign
        self._settings = core.services.settings.agents
        self._found = FoundAgents([])
        self._warned: set[str] = set()
        self._free = asyncio.Semaphore(self._settings.parallel)
        self._work: dict[str, Work] = {}
        """By agent: those that run, and those in the background of which the model has not heard."""
        self.on_start: list[StartListener] = []
        """Called when a sub-agent's session is open and before it is prompted."""
        self.on_end: list[Callable[[SubAgent, AgentReport], None]] = []
        """Called when a sub-agent has ended, however it did."""
        core.emit.listeners.append(self._on_event)

    async def refresh(self) -> None:
        """Read the definitions again: a turn is about to start."""
        self._found = await asyncio.to_thread(self._places.find)
        for warning in self._found.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._core.notices.report_on_session("agentFile", "warning", warning)

    @property
    def running(self) -> bool:
        return any(work.shown.works for work in self._work.values())

    # For the model ----------------------------------------------------------------------------------

    def available(self) -> Sequence[AgentDefinition]:
        return self._found.agents

    async def run(self, task: AgentTask, call: CallContext) -> AgentReport:
        definition = self._found.find(task.agent)
        if definition is None:
            raise ToolError(f"There is no agent {task.agent!r} any more.")
        work = self._new_work(definition, task, call)
        work.task = asyncio.create_task(self._run(work), name=work.label.agent_id)
        if work.shown.background:
            message = (
                f"{work.label.agent_id} ({work.label.name}) works in the background. You will be told when it ends."
            )
            return AgentReport(work.label.agent_id, work.label.name, work.shown.session_id, None, message, "")
        try:
            return await asyncio.shield(work.task)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work.task})
            raise

    def end_notes(self) -> list[str]:
        """How each sub-agent in the background ended of which the model does not know; told when this returns."""
        untold = [agent for agent in self._core.state.agents if agent.background and not agent.works and not agent.told]
        notes: list[str] = []
        for agent in untold:
            work = self._work.pop(agent.agent_id, None)
            text = None if work is None or work.report is None else report_text(work.report)
            text = text or f"{agent.agent_id} ({agent.name}) ended with the daemon; its task is not completed."
            notes.append(block("agent_result", text, f"{agent.agent_id} {agent.name}"))
            self._core.emit(AgentChanged(agent=agent.model_copy(update={"told": True})))
        return notes

    def note_with_prompt(self) -> str:
        """What goes with a prompt: which sub-agents in the background ended, and which go on; "" for nothing."""
        going_on = [agent for agent in self._core.state.agents if agent.background and agent.works]
        names = ", ".join(f"{agent.agent_id} ({agent.name}: {agent.description})" for agent in going_on)
        return "\n".join([*self.end_notes(), *([f"Agents at work in the background: {names}."] if names else [])])

    # Requests ---------------------------------------------------------------------------------------

    async def stop(self, params: AgentParams) -> AgentResult:
        """End a sub-agent's work, unless it has ended. Raises `AmanuError` (agentNotFound)."""
        shown = next((agent for agent in self._core.state.agents if agent.agent_id == params.agent_id), None)
        if shown is None:
            raise AmanuError("agentNotFound", f"This session has no agent {params.agent_id}.")
        work = self._work.get(params.agent_id)
        if work is not None and work.task is not None:
            work.cancel()
            await asyncio.wait({work.task}, timeout=STOP_SECONDS)
            shown = work.shown
        await self._core.emit.durable()
        return AgentResult(agent=shown)

    async def close(self) -> None:
        """Stop all of them: the session is being closed."""
        for work in self._work.values():
            work.cancel()
        tasks = [work.task for work in self._work.values() if work.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    # One sub-agent ----------------------------------------------------------------------------------

    def _new_work(self, definition: AgentDefinition, task: AgentTask, call: CallContext) -> Work:
        known = [int(agent.agent_id.rpartition("-")[2]) for agent in self._core.state.agents]
        agent_id = f"agent-{max(known, default=0) + 1}"
        shown = SubAgent(
            agent_id=agent_id,
            name=definition.name,
            description=task.description,
            session_id=f"{agent_id}-{uuid.uuid4().hex[:16]}",
            tool_call_id=call.call_id,
            background=task.background or definition.background,
            state="waiting",
            started_at=_now(),
            activity="Waits for its turn",
        )
        label = AgentLabel(agent_id, definition.name, call.turn_id)
        prompt = f"Task: {task.description}\n\n{without_mentions(task.prompt)}"  # it must attach nothing
        work = Work(definition, label, prompt, summarize_agent(shown), CompleteTask(definition.output_schema))
        self._work[agent_id] = work
        self._core.emit(AgentChanged(agent=work.shown))
        return work

    async def _run(self, work: Work) -> AgentReport:
        """From the wait for a free place to the end. Never fails."""
        ended: TurnEnded | None = None
        try:
            async with self._free:
                ended = await self._run_child(work)
        except asyncio.CancelledError:
            work.end = work.end or "cancelled"
        except AmanuError as error:
            work.end, work.message = "failed", f"{error} {error.data.hint or ''}".strip()
        except Exception:
            log.exception("%s failed unexpectedly", work.label.agent_id)
            work.end, work.message = "failed", "Internal error in Amanu; see `amanu logs`."
        work.report = conclude(work.label, work.shown, work.complete_task, ended, work.end, work.message, work.said)
        state: Literal["completed", "cancelled", "failed"] = (
            work.report.end if work.report.end in ("completed", "cancelled") else "failed"
        )
        in_call = not work.shown.background
        self._show(work, state=state, ended_at=_now(), activity="", told=in_call)
        if in_call:
            del self._work[work.label.agent_id]
        elif state != "cancelled":
            self._core.notices.report_on_session(
                "agentEnded", "info" if state == "completed" else "warning", work.report.message
            )
        if (text := findings_notice(work.label, work.complete_task.fields)) is not None:
            self._core.notices.report_on_session("agentFindings", "info", text)
        for listener in self.on_end:
            listener(work.shown, work.report)
        self._core.list_changed()
        return work.report

    async def _run_child(self, work: Work) -> TurnEnded:
        model_id = await self._model(work.definition)
        assignment = self._assign(work.label, work.definition, self._limits(work.definition), work.complete_task)
        title = f"{work.label.name}: {work.shown.description}"
        session_id = work.shown.session_id
        child = work.child = await self._children.begin_child(NewChild(session_id, title, model_id, assignment))
        try:
            self._core.proposals.shown_files[work.label.agent_id] = child.core.workspace.shown_files
            mirror = AgentMirror(self._core.emit, work.label, lambda title: self._show(work, activity=title))
            child.core.emit.listeners += [mirror.on_event, partial(self._follow, work)]
            for listener in self.on_start:
                listener(work.shown, child)
            self._show(work, state="running", activity="Starts")
            prompt = PromptSendParams(session_id=session_id, prompt_id=f"{session_id}-task", text=work.prompt)
            started = await child.prompts.send(prompt, ParentClient(dict(self._core.environment)))
            assert started.turn_id is not None
            return await self._until_over(work, child, started.turn_id)
        finally:
            await child.prompts.stop()
            self._core.proposals.shown_files.pop(work.label.agent_id, None)
            await self._children.end_child(session_id)

    async def _until_over(self, work: Work, child: ChildSession, turn_id: str) -> TurnEnded:
        """Wait for the end of its turn, and stop it when nothing comes from it for too long."""
        over = asyncio.create_task(child.wait_for_turn(turn_id))
        stall = self._settings.stall_seconds
        seen, since = child.core.emit.seq, time.monotonic()
        try:
            while not (await asyncio.wait({over}, timeout=stall / 4))[0]:
                if child.core.emit.seq != seen or self._is_busy(work, child):
                    seen, since = child.core.emit.seq, time.monotonic()
                elif time.monotonic() - since >= stall:
                    work.end = "stalled"
                    await child.prompts.stop()
            return await over
        finally:
            over.cancel()

    def _is_busy(self, work: Work, child: ChildSession) -> bool:
        """Whether it waits for something else than its model: for the user, or for a tool, which has limits of its
        own."""
        calls = (item for item in reversed(child.core.state.items[-200:]) if isinstance(item, ToolCall))
        return self._waits(work) or any(call.state in ("executing", "scheduled") for call in calls)

    def _limits(self, definition: AgentDefinition) -> AgentLimits:
        return AgentLimits(
            min(definition.steps or self._settings.steps, self._settings.steps),
            min(definition.seconds or self._settings.seconds, self._settings.seconds),
        )

    async def _model(self, definition: AgentDefinition) -> str:
        """The model it works with: the first that can be had of its definition's, the settings' and the turn's."""
        services: Services = self._core.services
        state = self._core.state
        own = state.model_id if state.turn is None else state.turn.model_id
        for model_id in (definition.model, services.settings.routing.subagent):
            if model_id is None:
                continue
            try:
                await routing.check(model_id, services.settings, services.registry, self._core.environment)
            except AmanuError as error:
                text = f"{definition.name} works with the session's model: {error}"
                self._core.notices.report_on_session("agentModel", "warning", text)
            else:
                return model_id
        return own

    # Showing ----------------------------------------------------------------------------------------

    def _show(self, work: Work, **changes: object) -> None:
        work.shown = summarize_agent(work.shown.model_copy(update=changes))
        if work.is_announced:
            work.is_announced = False
            asyncio.get_running_loop().call_soon(self._announce, work)
        if not work.shown.works:
            self._announce(work)

    def _announce(self, work: Work) -> None:
        """Emit what has changed, all at once; never inside of a listener, which must not emit what overtakes its own
        event."""
        if not work.is_announced:
            work.is_announced = True
            self._core.emit(AgentChanged(agent=work.shown))

    def _follow(self, work: Work, event: Event, position: int) -> None:
        """What happens in the sub-agent's session."""
        match event:
            case StepEnded(step=step):
                self._show(work, steps=step, activity="Thinks")
            case UsageChanged(usage=usage):
                self._show(work, cost_usd=usage.cost_usd)
            case ItemCompleted(item=item) if item.kind == "answer" and item.text.strip():
                work.said = item.text
            case _:
                pass

    def _on_event(self, event: Event, position: int) -> None:
        """What happens in this session: its sub-agents' questions, and what holds for them, too."""
        match event:
            case ApprovalRequested() | ApprovalResolved():
                self._show_waits()
            case ItemStarted(item=Question()) | ItemCompleted(item=Question()):
                self._show_waits()
            case SessionChanged():
                shared = event.model_dump(include={"mode", "trusted", "trust_changed", "sandbox"}, exclude_none=True)
                changed = event.model_copy(
                    update={name: None for name in type(event).model_fields if name != "kind" and name not in shared}
                )
                for work in self._work.values() if shared else ():
                    if work.child is not None and work.shown.works and work.child.core.access.writable:
                        work.child.core.emit(changed)
            case _:
                pass

    def _show_waits(self) -> None:
        for work in self._work.values():
            waits = self._waits(work)
            if work.child is not None and work.shown.works and (work.shown.state == "waiting") != waits:
                self._show(work, state="waiting" if waits else "running")

    def _waits(self, work: Work) -> bool:
        """Whether it waits for the user."""
        state = self._core.state
        return any(asked.agent_id == work.label.agent_id for asked in (*state.approvals, *state.questions))


class Assign(Protocol):
    """Makes an `Assignment` of the session's parts."""

    def __call__(
        self, label: AgentLabel, definition: AgentDefinition, limits: AgentLimits, complete_task: CompleteTask
    ) -> Assignment: ...


def _now() -> int:
    return int(time.time() * 1000)
