"""What a task is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench.tasks.hand import Hand
from support.strict_services.http import Step


@dataclass
class Stage:
    """A VS Code on `folder`, and the chat in its side bar."""

    page: Any
    folder: Path
    chat: Any

    async def result(self, locator: Any) -> None:
        """It is on the screen."""
        await locator.first.wait_for(timeout=60_000)


class Task(ABC):
    """Set up by `prepare`, which counts for nothing; then played by one hand until `result`."""

    name: ClassVar[str]
    title: ClassVar[str]
    begins: ClassVar[str]
    """Where it begins, and with what on the screen."""
    script: ClassVar[Mapping[str, Sequence[Step]]] = {}
    """What the model says to a prompt with these words, one step after the other."""

    async def prepare(self, stage: Stage) -> None:
        """Bring the stage to where the task begins."""
        return

    @abstractmethod
    async def pointer(self, stage: Stage, hand: Hand) -> None: ...

    @abstractmethod
    async def keyboard(self, stage: Stage, hand: Hand) -> None: ...

    @abstractmethod
    async def result(self, stage: Stage) -> None:
        """Wait until what was wanted is on the screen."""
