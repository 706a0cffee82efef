"""System notes: what the daemon says in its own name, as values that listeners return and the loop passes on."""

from dataclasses import dataclass
from typing import Literal

from amanu_protocol.items import Notice


@dataclass(frozen=True)
class SystemNote:
    """A note for the model, for the user, or for both."""

    text: str
    """For the model, appended to the conversation; "" when the note is for the user alone."""
    user_text: str
    """For the user, in a notice: what the model was told, or what happened."""
    code: str = "modelTold"
    """The notice's code, for clients."""
    detail: str = ""
    level: Literal["info", "warning"] = "info"
    status: bool = False
    """As in `SystemText`."""

    def notice(self, item_id: str, turn_id: str) -> Notice:
        """The item the user sees."""
        return Notice(
            item_id=item_id, turn_id=turn_id, level=self.level, code=self.code, text=self.user_text, detail=self.detail
        )
