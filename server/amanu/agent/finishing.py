"""Keeps a turn going until the model says that the task is done, by calling a tool."""

import time

from amanu.agent.recovery import REMEDIES, RemedyCounts
from amanu.core.agent import AgentLimits
from amanu.core.ending import Ending
from amanu.core.listeners import Continue, Notes, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted
from amanu.core.notes import SystemNote
from amanu.permissions.user_wait import UserWait
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Answer


class FinishTaskRequired(TurnListener):
    """Lives for one turn. `tool` is the name of the tool that ends it; its result becomes the turn's last answer."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._remedies = RemedyCounts()

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending | None:
        self._remedies.on_step()
        summary = next((result for result in step.results if result.tool == self._tool and not result.is_error), None)
        if summary is None:
            return None
        item_id = f"{turn.turn_id}.{step.number}.finished"
        turn.emit(ItemCompleted(item=Answer(item_id=item_id, turn_id=turn.turn_id, text=summary.text)))
        return Ending("completed")

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending:
        remedy = REMEDIES["unfinished"]
        if self._remedies.allow("unfinished"):
            return Continue([SystemNote(remedy.note, remedy.user_note)])
        text = f"The model stopped {remedy.limit + 1} times without calling {self._tool}."
        note = SystemNote("", text, "unfinished", level="warning")
        turn.emit(ItemCompleted(item=note.notice(f"{turn.turn_id}.unfinished", turn.turn_id)))
        return Ending("completed")


GRACE = AgentLimits(steps=1, seconds=60)
"""What a sub-agent gets beyond its limits, to call `complete_task` with what it has (Gemini CLI's local executor grants
one turn and 60 s)."""


class CompleteTaskRequired(TurnListener):
    """Ends the run of a sub-agent when it has called `tool`. At its limits, and when it stops without that call, it is
    reminded once. Lives for one run; the clock starts when this is made, and stops while the user is asked."""

    def __init__(self, tool: str, limits: AgentLimits, wait: UserWait) -> None:
        self._tool = tool
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
        text = f"You have reached your {limit} limit. Call {self._tool} now with what you have; nothing else counts."
        return [SystemNote(text, f"The agent reached its {limit} limit and was told to complete its task.")]

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending | None:
        ended = any(result.tool == self._tool and not result.is_error for result in step.results)
        return Ending("completed") if ended else None

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending:
        if self._reminded:
            return Ending("completed")
        self._reminded = True
        text = f"Nobody reads this text. Go on if anything is left to do; otherwise call {self._tool} with the result."
        return Continue([SystemNote(text, f"The agent was reminded to call {self._tool}.")])
