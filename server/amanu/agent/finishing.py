"""Keeps a turn going until the model says that the task is done, by calling a tool."""

from amanu.agent.recovery import REMEDIES, RemedyCounts
from amanu.core.ending import Ending
from amanu.core.listeners import Continue, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted
from amanu.core.notes import SystemNote
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
