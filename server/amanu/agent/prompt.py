"""The system prompt, from parts. Stable within a session, to the byte: caches and thinking blocks depend on it."""

import importlib.resources
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from amanu_protocol.items import Notice


@dataclass(frozen=True)
class Prompt:
    """The system prompt. Its memory is told apart because a person wants to know what it takes of the window."""

    core: str
    memory: str
    """With what is said about it; "" if there is none."""

    @property
    def text(self) -> str:
        return f"{self.core}\n\n{self.memory}" if self.memory else self.core


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


def system_prompt(family: str, roots: Sequence[str], memory: str = "") -> Prompt:
    """The core rules, what this model family needs to hear, where the work is, and project memory.

    `family` names a file in `prompts/` ("claude", "gemini-3", …); one without a file adds nothing.
    """
    parts = [part("core"), addition(family), _surroundings(roots)]
    core = "\n\n".join(part for part in parts if part)
    return Prompt(core, f"{part('memory')}\n\n{memory}" if memory else "")


def addition(family: str) -> str:
    """What a family's models need to hear besides; "" if nothing."""
    return part(family)


def _surroundings(roots: Sequence[str]) -> str:
    lines = ["# Where you are", "", f"- Operating system: {platform.system()}"]
    lines += [f"- Workspace root: {root}" for root in roots]
    lines.append("- Paths in tool calls are relative to a workspace root, or absolute inside one.")
    return "\n".join(lines)


@cache
def part(name: str) -> str:
    file = importlib.resources.files("amanu.agent") / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
