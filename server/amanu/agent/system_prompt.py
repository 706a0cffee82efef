"""The system prompt, made of the files in `prompts/`. It stays the same to the byte within a session: prompt caches and
thinking blocks depend on that."""

import importlib.resources
import platform
from collections.abc import Sequence
from functools import cache

from amanu.core.agent import SystemPrompt


def system_prompt(family: str, roots: Sequence[str], memory: str = "") -> SystemPrompt:
    """The core rules, the model family's additions, the environment, and project memory.

    `family` names a file in `prompts/` ("claude", "gemini-3", …); a family without a file adds nothing.
    """
    parts = [load_prompt("core"), load_prompt(family), _environment(roots)]
    core = "\n\n".join(part for part in parts if part)
    return SystemPrompt(core, f"{load_prompt('memory')}\n\n{memory}" if memory else "")


def agent_prompt(instructions: str, roots: Sequence[str], memory: str = "") -> SystemPrompt:
    """The system prompt of a sub-agent: its own instructions, what holds for all of them, the environment, and project
    memory."""
    core = "\n\n".join([instructions, load_prompt("sub-agent"), _environment(roots)])
    return SystemPrompt(core, f"{load_prompt('memory')}\n\n{memory}" if memory else "")


def rewrite_prompt(memory: str = "") -> SystemPrompt:
    """The system prompt for rewriting lines in one reply, without tools."""
    return SystemPrompt(load_prompt("rewrite"), f"{load_prompt('memory')}\n\n{memory}" if memory else "")


def _environment(roots: Sequence[str]) -> str:
    lines = ["# Where you are", "", f"- Operating system: {platform.system()}"]
    lines += [f"- Workspace root: {root}" for root in roots]
    lines.append("- Paths in tool calls are relative to a workspace root, or absolute inside one.")
    return "\n".join(lines)


@cache
def load_prompt(name: str) -> str:
    """The text of `prompts/<name>.md`; "" when there is no such file."""
    file = importlib.resources.files("amanu.agent") / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
