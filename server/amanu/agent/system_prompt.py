"""The system prompt, from parts. Stable within a session, to the byte: caches and thinking blocks depend on it."""

import importlib.resources
import platform
from collections.abc import Sequence
from functools import cache

from amanu.core.agent import SystemPrompt


def system_prompt(family: str, roots: Sequence[str], memory: str = "") -> SystemPrompt:
    """The core rules, what this model family needs to hear, where the work is, and project memory.

    `family` names a file in `prompts/` ("claude", "gemini-3", …); one without a file adds nothing.
    """
    parts = [load_prompt("core"), addition(family), _surroundings(roots)]
    core = "\n\n".join(part for part in parts if part)
    return SystemPrompt(core, f"{load_prompt('memory')}\n\n{memory}" if memory else "")


def addition(family: str) -> str:
    """What a family's models need to hear besides; "" if nothing."""
    return load_prompt(family)


def _surroundings(roots: Sequence[str]) -> str:
    lines = ["# Where you are", "", f"- Operating system: {platform.system()}"]
    lines += [f"- Workspace root: {root}" for root in roots]
    lines.append("- Paths in tool calls are relative to a workspace root, or absolute inside one.")
    return "\n".join(lines)


@cache
def load_prompt(name: str) -> str:
    file = importlib.resources.files("amanu.agent") / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
