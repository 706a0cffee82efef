"""Plan mode, as tools see it: the session's plan, and the ways in and out."""

from pathlib import Path
from typing import Protocol

from amanu_protocol.items import Mode


class PlanMode(Protocol):
    """Implemented by `session/plan.py`."""

    @property
    def path(self) -> Path:
        """The plan's file, resolved; it need not exist."""
        ...

    @property
    def active(self) -> bool:
        """Whether the session is in plan mode."""
        ...

    def enter(self) -> None:
        """Begin planning: the user agreed."""
        ...

    async def approve(self, text: str, mode: Mode, *, fresh_context: bool) -> None:
        """The user approved the plan with that text, to be carried out in that mode. It is kept and told to the model;
        with `fresh_context`, in place of the conversation so far. Raises `AmanuError` storageError; then nothing has
        changed."""
        ...
