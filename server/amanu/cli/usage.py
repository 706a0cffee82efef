"""How full the model's window is and what fills it, in the words of the other clients (`vscode-extension/src/words.ts`,
`neovim/lua/amanu/usage.lua`)."""

from amanu.cli.paper import Paper
from amanu_protocol.items import ContextUse, Usage

PARTS = {
    "system": "System prompt",
    "tools": "Tools",
    "memory": "Project memory",
    "conversation": "Conversation",
    "tool_output": "Tool output",
    "free": "Free",
    "reserved": "Kept for the reply",
}
"""In the order they are sent; together they are the window."""

TIERS: dict[str, tuple[str, str]] = {
    "warn": ("filling up", "The model is told to finish and to note down what matters."),
    "mask": ("nearly full", "Old tool output makes room; the model can read it again."),
    "compact": ("full", "At the next step a summary takes the place of what is old."),
}
"""How full it is, and what that means."""


def fullness(usage: Usage) -> str:
    """How full in a few words; "" when the window is not known."""
    if usage.context is None:
        return f"context {usage.context_tokens * 100 // usage.context_window} %" if usage.context_window else ""
    word, _ = TIERS.get(usage.context.tier, ("", ""))
    return f"context {_share(usage.context)} %" + (f", {word}" if word else "")


def show_context(usage: Usage | None, paper: Paper) -> None:
    """Print what fills the window, part by part."""
    if usage is None or usage.context is None:
        known = fullness(usage) if usage is not None else ""
        paper.line(("dim", known or "Nothing has been sent to a model yet."))
        return
    context = usage.context
    word, meaning = TIERS.get(context.tier, ("", ""))
    paper.line(("bold", f"Context {_share(context)} % full"), ("yellow", f", {word}" if word else ""))
    window = max(1, sum(getattr(context, part) for part in PARTS))
    for part, name in PARTS.items():
        count: int = getattr(context, part)
        if count or part == "free":
            style = "dim" if part in ("free", "reserved") else ""
            paper.line((style, f"  {name:<20}{count:>11,}{count * 100 / window:>6.0f} %"))
    paper.line(("dim", f"  {'Window':<20}{window:>11,}"))
    if meaning:
        paper.prose(("yellow", meaning))
    paper.line(("dim", "/compact [what must not be lost] makes room"))


def _share(context: ContextUse) -> int:
    """Percent of what there is room for: the window without what is kept for the reply."""
    used = context.system + context.tools + context.memory + context.conversation + context.tool_output
    return round(100 * used / max(1, used + context.free))
