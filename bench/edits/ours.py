"""Ours, as the tool calls it."""

from amanu.core.tool import ToolError
from amanu.tools.edits.match import replace_text


def edit(text: str, old: str, new: str) -> str | None:
    """The file after the edit; None: refused."""
    try:
        return replace_text(text, old, new, replace_all=False, path="f").text
    except ToolError:
        return None
