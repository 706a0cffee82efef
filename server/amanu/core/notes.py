"""What the model is told beside prompts and results, as values that the loop passes on."""

from dataclasses import dataclass
from typing import Literal

from amanu_protocol.items import Notice


@dataclass(frozen=True)
class Remembered:
    """Project memory that came up later."""

    text: str
    """For the model; "" when there is only something to say to the person."""
    shown: str
    """For the person: which files."""
    detail: str
    level: Literal["info", "warning"] = "info"

    def notice(self, item_id: str, turn_id: str) -> Notice:
        """What the person sees; `item_id` is of what brought it up."""
        return Notice(
            item_id=f"{item_id}.memory",
            turn_id=turn_id,
            level=self.level,
            code="memoryLoaded",
            text=self.shown,
            detail=self.detail,
        )
