"""Notices a session shows to the user; the model does not see them."""

from typing import Literal

from amanu.core.ending import Ending
from amanu.session.events import EventStream
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Notice

Level = Literal["info", "warning"]
RUNNING = "hookRunning"
"""The code of a notice that is shown while hooks run, and withdrawn when they have ended."""


class Notices:
    """Emits the notices of one session."""

    def __init__(self, emit: EventStream) -> None:
        self._emit = emit

    def report_ending(self, turn_id: str | None, ending: Ending) -> None:
        """Say why the turn ended, or, with None, why something could not start."""
        level = "warning" if ending.reason.endswith("Limit") or ending.reason == "refused" else "error"
        notice = Notice(
            item_id=f"{turn_id or f'session.{self._emit.epoch}'}.{self._emit.seq}.end",
            turn_id=turn_id,
            level=level,
            code=ending.kind or ending.reason,
            text=ending.message,
        )
        self._emit(ItemCompleted(item=notice))

    def report_on_prompt(self, item_id: str, turn_id: str, code: str, text: str, level: Level = "warning") -> None:
        """Say something about a prompt of that turn. `item_id`: the prompt's, with a point and a name behind it."""
        self._emit(ItemCompleted(item=Notice(item_id=item_id, turn_id=turn_id, level=level, code=code, text=text)))

    def report_on_session(self, code: str, level: Level, text: str) -> None:
        """Say something about the session, independent of any turn. The item's id ends with the code."""
        item_id = f"session.{self._emit.epoch}.{self._emit.seq}.{code}"
        self._emit(ItemCompleted(item=Notice(item_id=item_id, turn_id=None, level=level, code=code, text=text)))
