"""One sub-agent at work: its session is opened, prompted, watched, shown in its parent's session, and closed."""

import asyncio
import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Literal

from amanu.agents.assigned import AssignedPart
from amanu.agents.complete_task import CompleteTask
from amanu.agents.mirror import AgentMirror
from amanu.agents.model import AgentEnd, AgentReport
from amanu.agents.report import conclude
from amanu.agents.run_agent import report_text
from amanu.context.mentions import without_mentions
from amanu.core.agent import AgentLimits
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import AgentLabel
from amanu.models import routing
from amanu.session.child_sessions import ChildSession, ChildSessions, NewChild, ParentClient
from amanu.session.core import Assignment, SessionCore
from amanu.text.wording import summarize_agent
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import AgentChanged, Event, ItemCompleted, SessionChanged, StepEnded, TurnEnded, UsageChanged
from amanu_protocol.items import Answer, SubAgent, ToolCall
from amanu_protocol.requests import PromptSendParams

log = logging.getLogger(__name__)

_PARENTS = ("mode", "trusted", "trust_changed", "sandbox")
"""The fields that a sub-agent's session copies from its parent's."""
_STATES: Mapping[AgentEnd | None, Literal["completed", "cancelled"]] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "closed": "cancelled",
}
"""End → the state that is shown; any other end is shown as a failure."""
SMALLEST_ALLOWANCE = 1e-6
"""US dollars; above 0, so that a sub-agent with nothing left still ends at its cost limit."""
RECENT = 200
"""Items of its session among which its running calls are looked for."""


class AgentWork:
    """`shown` is the sub-agent as clients see it, or soon will."""

    def __init__(
        self,
        core: SessionCore,
        sessions: ChildSessions,
        definition: AgentDefinition,
        shown: SubAgent,
        turn_id: str,
    ) -> None:
        """`core` is that of the session it works for, `turn_id` that of the turn there."""
        self._core = core
        self._sessions = sessions
        self._definition = definition
        self._settings = core.services.settings.agents
        self.label = AgentLabel(shown.agent_id, definition.name, turn_id)
        self.shown = summarize_agent(shown)
        self.complete_task = CompleteTask(definition.output_schema)
        self.child: ChildSession | None = None
        """Its session, once it is open."""
        self.report: AgentReport | None = None
        """None until it has ended."""
        self.task: asyncio.Task[AgentReport] | None = None
        self._stopped: AgentEnd | None = None
        """Why it was stopped from outside."""
        self._last_answer = ""
        self._announced = True
        """Whether clients have been told of `shown`."""
        self._core.emit(AgentChanged(agent=self.shown))

    def start(self, prompt: str, free: asyncio.Semaphore, on_start: Callable[["AgentWork"], None]) -> None:
        """Have it work as soon as a place is `free`. `on_start` is called when its session is open, before it is
        prompted."""
        self.task = asyncio.create_task(self._run(prompt, free, on_start), name=self.label.agent_id)

    def cancel(self, end: Literal["cancelled", "closed"] = "cancelled") -> None:
        """Stop it, unless it has ended. Its task is cancelled only once: a second time would cut short what the first
        one is waiting for."""
        if self._stopped is None and self.report is None and self.task is not None:
            self._stopped = end
            asyncio.get_running_loop().call_soon(
                self.task.cancel
            )  # one that has not begun would never say how it ended

    def show_setting(self) -> None:
        """Show, in its session, the settings of its parent that apply to it. Decisions themselves ask the parent
        (`core.SessionPolicy`)."""
        if self.child is None or not self.child.core.access.writable:
            return
        parent, shown = self._core.state, self.child.core.state
        values = {name: getattr(parent, name) for name in _PARENTS}
        values = {name: value for name, value in values.items() if value not in (None, getattr(shown, name))}
        if values:
            self.child.core.emit(SessionChanged.model_validate(values, by_name=True))

    def show_wait(self) -> None:
        """Show whether it is waiting for the user."""
        waits = self._waits
        if self.child is not None and self.shown.works and (self.shown.state == "waiting") != waits:
            self._show(state="waiting" if waits else "running")

    # ------------------------------------------------------------------------------------------------

    async def _run(self, prompt: str, free: asyncio.Semaphore, on_start: Callable[["AgentWork"], None]) -> AgentReport:
        """From the wait for a free place to the end. Never fails."""
        ended: TurnEnded | None = None
        message = ""
        try:
            async with free:
                ended = await self._run_session(prompt, on_start)
        except asyncio.CancelledError:
            self._stopped = self._stopped or "cancelled"
        except AmanuError as error:
            if self.child is not None and self.child.core.access.closed:  # before its turn could begin
                self._stopped = self._stopped or "closed"
            else:
                self._stopped, message = "failed", f"{error} {error.data.hint or ''}".strip()
        except Exception:
            log.exception("%s failed unexpectedly", self.label.agent_id)
            self._stopped, message = "failed", "Internal error in Amanu; see `amanu logs`."
        report = conclude(self.label, self.shown, self.complete_task, ended, self._stopped, message, self._last_answer)
        self.report = report
        await self._show_end(report)
        return report

    async def _show_end(self, report: AgentReport) -> None:
        """Show how it ended. A background agent's report is put on disk first: its call ended earlier, so nothing else
        has it."""
        changes: dict[str, object] = {
            "state": _STATES.get(report.end, "failed"),
            "ended_at": int(time.time() * 1000),
            "activity": "",
            "told": not self.shown.background,
        }
        if self.shown.background:
            changes["report"] = self._core.emit.redact(report_text(report))
            ended = summarize_agent(self.shown.model_copy(update=changes))
            with contextlib.suppress(AmanuError):  # others report a full disk
                await self._core.emit.save(AgentChanged(agent=ended))
        self._show(**changes)

    async def _run_session(self, prompt: str, on_start: Callable[["AgentWork"], None]) -> TurnEnded:
        if self._definition.output_schema is not None:
            await asyncio.to_thread(importlib.import_module, "jsonschema")  # `CompleteTask` needs it, and it is slow
        limits = AgentLimits(
            min(self._definition.steps or self._settings.steps, self._settings.steps),
            min(self._definition.seconds or self._settings.seconds, self._settings.seconds),
        )
        session_id, title = self.shown.session_id, f"{self.label.name}: {self.shown.description}"
        assignment = self._assignment(AssignedPart(self.complete_task, limits, self._core.approvals.wait))
        child = self.child = await self._sessions.begin_child(
            NewChild(session_id, title, await self._model(), assignment)
        )
        self.show_setting()  # they may have changed while the session was being opened
        known_files = self._core.proposals.shown_files
        known_files[self.label.agent_id] = child.core.workspace.shown_files
        try:
            mirror = AgentMirror(self._core.emit, self.label, lambda activity: self._show(activity=activity))
            child.core.emit.listeners += [mirror.on_event, self._on_event]
            on_start(self)
            self._show(state="running", activity="Starts")
            text = f"Task: {self.shown.description}\n\n{without_mentions(prompt)}"  # a model's words attach nothing
            params = PromptSendParams(session_id=session_id, prompt_id=f"{session_id}-task", text=text)
            started = await child.prompts.send_prompt(params, ParentClient(dict(self._core.environment)))
            assert started.turn_id is not None, "nothing else was sent to it"
            ended = await self._until_over(child, started.turn_id)
            if ended.reason == "cancelled" and child.core.access.closed:
                self._stopped = self._stopped or "closed"
            return ended
        finally:
            await child.prompts.stop()
            del known_files[self.label.agent_id]
            await self._sessions.end_child(session_id)

    def _assignment(self, part: AssignedPart) -> Assignment:
        left, work = self._core.costs.limits.left, self._core.work
        assert work is not None, "a session has it before its parts"
        allowance = None if left is None else max(left * self._settings.cost_share, SMALLEST_ALLOWANCE)
        return Assignment(self._core, self.label, self._definition, part.run_limits, allowance, part, work)

    async def _until_over(self, child: ChildSession, turn_id: str) -> TurnEnded:
        """Wait for the end of its turn, and stop it if nothing comes from it for too long."""
        over = asyncio.create_task(child.wait_for_turn(turn_id))
        stall = self._settings.stall_seconds
        seen, since = child.core.emit.seq, time.monotonic()
        try:
            while not (await asyncio.wait({over}, timeout=stall / 4))[0]:
                if child.core.emit.seq != seen or self._is_busy(child):
                    seen, since = child.core.emit.seq, time.monotonic()
                elif time.monotonic() - since >= stall:
                    self._stopped = "stalled"
                    await child.prompts.stop()
            return await over
        finally:
            over.cancel()

    def _is_busy(self, child: ChildSession) -> bool:
        """Whether it is waiting for something other than its model: the user, or a tool, which has its own limits."""
        calls = (item for item in child.core.state.items[-RECENT:] if isinstance(item, ToolCall))
        return self._waits or any(call.state in ("executing", "scheduled") for call in calls)

    async def _model(self) -> str:
        """The model it works with: its definition's, the settings' or the turn's, whichever is the first available."""
        services, state = self._core.services, self._core.state
        for model_id in (self._definition.model, services.settings.routing.subagent):
            if model_id is None:
                continue
            try:
                await routing.check(model_id, services.settings, services.registry, self._core.environment)
            except AmanuError as error:
                text = f"{self.label.name} works with the session's model: {error}"
                self._core.notices.report_on_session("agentModel", "warning", text)
            else:
                return model_id
        return state.model_id if state.turn is None else state.turn.model_id

    # Showing ----------------------------------------------------------------------------------------

    @property
    def _waits(self) -> bool:
        """Whether it is waiting for the user."""
        state = self._core.state
        return any(asked.agent_id == self.label.agent_id for asked in (*state.approvals, *state.questions))

    def _show(self, **changes: object) -> None:
        """Change what is shown of it: at once when it ends, otherwise together with other changes of the same moment.
        Never inside a listener of the parent, whose own event must not be overtaken by what it emits."""
        self.shown = summarize_agent(self.shown.model_copy(update=changes))
        if self._announced:
            self._announced = False
            asyncio.get_running_loop().call_soon(self._announce)
        if not self.shown.works:
            self._announce()

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            self._core.emit(AgentChanged(agent=self.shown))

    def _on_event(self, event: Event, position: int) -> None:
        """An `EventListener` of its session."""
        match event:
            case StepEnded(step=step):
                self._show(steps=step, activity="Thinks")
            case UsageChanged(usage=usage):
                self._show(cost_usd=usage.cost_usd)
            case ItemCompleted(item=Answer(text=text)) if text.strip():
                self._last_answer = text
            case _:
                pass
