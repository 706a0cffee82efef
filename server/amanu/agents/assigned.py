"""What a sub-agent needs for its work, as a part of the session in which it does it."""

from collections.abc import Mapping, Sequence

from amanu.agents.complete_task import CompleteTask
from amanu.agents.task_required import GRACE, CompleteTaskRequired
from amanu.core.agent import AgentLimits, AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.session_part import SessionPart, Slot
from amanu.core.tool import AnyTool
from amanu.permissions.user_wait import UserWait


class AssignedPart(SessionPart):
    """Made with the assignment, before the session."""

    def __init__(self, complete_task: CompleteTask, limits: AgentLimits, wait: UserWait) -> None:
        self._complete_task = complete_task
        self._limits = limits
        self._wait = wait

    @property
    def run_limits(self) -> AgentLimits:
        """The limits of the run: a little more, in which it can call `complete_task`."""
        return AgentLimits(self._limits.steps + GRACE.steps, self._limits.seconds + GRACE.seconds)

    def tools(self) -> Sequence[AnyTool]:
        return [self._complete_task]

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [CompleteTaskRequired(self._limits, self._wait)]} if run.label is not None else {}
