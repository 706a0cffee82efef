"""A call that the user asks for and no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from amanu.agent.turn import Turn


@dataclass(frozen=True)
class UserCall:
    tool: str
    arguments: Mapping[str, JsonValue]


class UserRequest(Protocol):
    """What the user wants done in a turn without a reply of the model."""

    @property
    def text(self) -> str:
        """What the model hears of the request, in the user's words."""
        ...

    async def call(self, turn: Turn) -> UserCall:
        """The call that does it. Raises `ToolError` and `ModelError` when there is none."""
        ...
