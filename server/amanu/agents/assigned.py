"""The part of a sub-agent's session that takes its result and ends its run."""

from collections.abc import Mapping, Sequence

from amanu.agents.complete_task import CompleteTask
from amanu.agents.task_required import GRACE, CompleteTaskRequired
from amanu.core.agent import AgentLimits, AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.session_part import SessionPart, Slot
from amanu.core.tool import AnyTool
from amanu.permissions.user_wait import UserWait


class AssignedPart(SessionPart):
    """Made together with the assignment, before the session."""

    def __init__(self, complete_task: CompleteTask, limits: AgentLimits, wait: UserWait) -> None:
        self._complete_task = complete_task
        self._limits = limits
        self._wait = wait

    @property
    def run_limits(self) -> AgentLimits:
        """The limits of the run: slightly more than the task's, so that the agent can still call `complete_task`."""
        return AgentLimits(self._limits.steps + GRACE.steps, self._limits.seconds + GRACE.seconds)

    def tools(self) -> Sequence[AnyTool]:
        return [self._complete_task]

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [CompleteTaskRequired(self._limits, self._wait)]} if run.label is not None else {}
