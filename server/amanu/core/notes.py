"""What the daemon says in its own name, as a value that the loop passes on."""

from dataclasses import dataclass
from typing import Literal

from amanu_protocol.items import Notice


@dataclass(frozen=True)
class SystemNote:
    """For the model, for the user, or for both."""

    text: str
    """For the model, where the conversation ends; "" when it is for the user alone."""
    user_text: str
    """For the user: what the model was told, or what happened."""
    code: str = "modelTold"
    """Of the notice; for clients."""
    detail: str = ""
    level: Literal["info", "warning"] = "info"

    def notice(self, item_id: str, turn_id: str) -> Notice:
        """What the user sees of it."""
        return Notice(
            item_id=item_id, turn_id=turn_id, level=self.level, code=self.code, text=self.user_text, detail=self.detail
        )
