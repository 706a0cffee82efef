"""Keeps a sub-agent going until it has called the tool that ends its work."""

import time

from amanu.core.agent import AgentLimits
from amanu.core.ending import Ending
from amanu.core.listeners import Continue, Notes, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted
from amanu.core.notes import SystemNote
from amanu.core.sub_agents import COMPLETE_TASK
from amanu.permissions.user_wait import UserWait

GRACE = AgentLimits(steps=1, seconds=60)
"""The extra that a sub-agent gets beyond its limits, to call `complete_task` with what it has (Gemini CLI's local
executor grants one turn and 60 s)."""


class CompleteTaskRequired(TurnListener):
    """Ends the run of a sub-agent when it has called `complete_task`. The agent is reminded once, at its limits or when
    it stops without that call. Lives for one run; the clock starts when this is made, and stops while the user is being
    asked."""

    def __init__(self, limits: AgentLimits, wait: UserWait) -> None:
        self._limits = limits
        self._wait = wait
        self._started = time.monotonic() - wait.seconds
        self._reminded = False

    async def before_request(self, turn: TurnView, step: int) -> Notes:
        seconds = time.monotonic() - self._wait.seconds - self._started
        if self._reminded or (step <= self._limits.steps and seconds < self._limits.seconds):
            return ()
        self._reminded = True
        limit = "step" if step > self._limits.steps else "time"
        text = f"You have reached your {limit} limit. Call {COMPLETE_TASK} now with what you have; nothing else counts."
        return [SystemNote(text, f"The agent reached its {limit} limit and was told to complete its task.")]

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending | None:
        ended = any(result.tool == COMPLETE_TASK and not result.is_error for result in step.results)
        return Ending("completed") if ended else None

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending:
        if self._reminded:
            return Ending("completed")
        self._reminded = True
        text = (
            f"Nobody reads this text. Go on if anything is left to do; otherwise call {COMPLETE_TASK} with the result."
        )
        return Continue([SystemNote(text, f"The agent was reminded to call {COMPLETE_TASK}.")])
