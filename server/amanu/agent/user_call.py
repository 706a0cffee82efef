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
    """A user's request that is carried out by one tool call, without a reply of the model."""

    @property
    def text(self) -> str:
        """The request in the user's words, as the model is told of it."""
        ...

    async def call(self, turn: Turn) -> UserCall:
        """The call that carries it out. Raises `ToolError` or `ModelError` if there can be none."""
        ...
