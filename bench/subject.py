"""What is measured: a subject says how to start an agent; an agent takes prompts and shows when what came of them."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.plan import Plan
from bench.process import Tree
from bench.rpc import Rpc

Deed = Literal["read", "grep", "glob", "edit", "hunks", "run"]


@dataclass
class Place:
    """Where a subject works: folders of its own, kept over its starts, and the service's address."""

    home: Path
    workspace: Path
    url: str
    """`http://127.0.0.1:port`"""

    @property
    def errors(self) -> Path:
        return self.home / "stderr.log"


@dataclass
class Turn:
    """A prompt as its client sees it; times in seconds of the monotonic clock."""

    sent: float = field(default_factory=time.monotonic)
    first: float | None = None
    """The first text of the reply."""
    ended: float | None = None
    asked: float | None = None
    """The last question for approval."""
    updates: int = 0
    """Messages that carried text."""
    characters: int = 0
    stamps: list[tuple[float, str]] | None = None
    """When which text came; a list where somebody asks for it."""
    reason: str = ""
    began: asyncio.Event = field(default_factory=asyncio.Event)
    question: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def text(self, text: str) -> None:
        self.updates += 1
        self.characters += len(text)
        if self.stamps is not None:
            self.stamps.append((time.monotonic(), text))
        if self.first is None and text:
            self.first = time.monotonic()
            self.began.set()

    def ask(self) -> None:
        self.asked = time.monotonic()
        self.question.set()

    def end(self, reason: str) -> None:
        if self.ended is None:
            self.ended = time.monotonic()
            self.reason = reason
            self.over.set()


class Agent(ABC):
    """One running subject."""

    _rpc: Rpc

    def __init__(self) -> None:
        self.tree = Tree()

    @property
    def received(self) -> int:
        """Bytes its client has read so far."""
        return self._rpc.received

    @abstractmethod
    async def initialize(self) -> None:
        """The handshake; returns when it is answered."""

    @abstractmethod
    async def open(self, folder: Path, *, asks: bool = True) -> str:
        """A new session there; its id. Not `asks`: edits need no approval, where the subject has such a mode."""

    @abstractmethod
    def prompt(self, session: str, plan: Plan) -> Turn: ...

    @abstractmethod
    async def cancel(self, session: str) -> None:
        """Returns when the subject says it has stopped."""

    @abstractmethod
    def approve(self, session: str) -> None:
        """Approves what was asked last."""

    async def stop(self) -> None:
        await self.tree.end()


@dataclass(frozen=True)
class Subject:
    """`uses(deed, arguments)` is the plan's fields for a tool that does it, None if it has none."""

    name: str
    wire: str
    """The service's name for the format it speaks."""
    floor: bool
    start: Callable[[Place], "Any"]
    """Starts the process: an awaitable of an Agent, which has not been spoken to."""
    uses: Callable[[Deed, Mapping[str, str]], dict[str, Any] | None]
    version: str = ""
