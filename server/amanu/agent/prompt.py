"""The system prompt, from parts. Stable within a session, to the byte: caches and thinking blocks depend on it."""

import importlib.resources
import platform
from collections.abc import Sequence
from functools import cache


def system_prompt(family: str, roots: Sequence[str], *, trusted: bool) -> str:
    """The core rules, what this model family needs to hear, and where the work is.

    `family` names a file in `prompts/` ("claude", "gemini-3", …); one without a file adds nothing.
    """
    parts = [_part("core"), addition(family), _surroundings(roots, trusted)]
    return "\n\n".join(part for part in parts if part)


def addition(family: str) -> str:
    """What a family's models need to hear besides; "" if nothing."""
    return _part(family)


def _surroundings(roots: Sequence[str], trusted: bool) -> str:
    lines = ["# Where you are", "", f"- Operating system: {platform.system()}"]
    lines += [f"- Workspace root: {root}" for root in roots]
    lines.append("- Paths in tool calls are relative to a workspace root, or absolute inside one.")
    if not trusted:
        lines.append("- The person has not declared this workspace trusted: its own instructions are not loaded.")
    return "\n".join(lines)


@cache
def _part(name: str) -> str:
    file = importlib.resources.files("amanu.agent") / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
