"""What a session uses: tokens and money; how full the model's window is and what fills it."""

from amanu.cli.console import Console
from amanu.text.amounts import money
from amanu.text.display import one_line
from amanu_protocol.items import Spend, Usage
from amanu_protocol.labels import CONTEXT_PARTS, CONTEXT_TIERS


def usage_line(usage: Usage) -> str:
    """Tokens, money and how full the window is, of the session so far."""
    return " · ".join(filter(None, [usage.summary, usage.fullness]))


def rest_line(usage: Usage, turn: Spend | None) -> str:
    """What the session has cost, when that says more than its last turn, and how full the window is."""
    if turn is None:
        return usage_line(usage)
    show_total = usage.cost_usd is not None and turn.cost_usd is not None and usage.cost_usd > turn.cost_usd
    cost = f"session {money(usage.cost_usd)}" if show_total and usage.cost_usd is not None else ""
    return " · ".join(filter(None, [cost, usage.fullness]))


def show_context(usage: Usage | None, console: Console) -> None:
    """Print what fills the window, part by part."""
    if usage is None or usage.context is None:
        fullness = "" if usage is None else usage.fullness
        console.line(("dim", fullness or "Nothing has been sent to a model yet."))
        return
    context = usage.context
    word, meaning = CONTEXT_TIERS[context.tier]
    console.line(("bold", f"Context {usage.percent}% full"), ("yellow", f", {word}" if word else ""))
    counts: dict[str, int] = context.model_dump(exclude={"tier", "servers"})
    window = max(1, sum(counts.values()))
    for part, name in CONTEXT_PARTS.items():
        count = counts[part]
        if count or part == "free":
            style = "dim" if part in ("free", "reserved") else ""
            console.line((style, f"  {name:<20}{count:>11,}{count * 100 / window:>6.0f}%"))
        for server in context.servers if part == "tools" else ():
            console.line(("dim", f"    {one_line(server.name):<18}{server.tokens:>11,}"))
    console.line(("dim", f"  {'Window':<20}{window:>11,}"))
    if meaning:
        console.line(("yellow", meaning))
    console.line(("dim", "/compact [what to preserve] frees space"))
