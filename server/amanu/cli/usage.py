"""What a session uses: tokens and money; how full the model's window is and what fills it."""

from amanu.cli.amounts import amount, money
from amanu.cli.paper import Paper
from amanu_protocol.items import ContextUse, Spent, Usage
from amanu_protocol.labels import CONTEXT_PARTS, CONTEXT_TIERS


def usage_line(usage: Usage) -> str:
    """Tokens, money and how full the window is, of the session so far."""
    return " · ".join(filter(None, [spent_line(usage), fullness(usage)]))


def spent_line(usage: Spent | Usage) -> str:
    """Tokens by kind and money."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    kinds = {"cached": usage.cache_read_tokens, "from tools": usage.tool_tokens}
    of_these = ", ".join(f"{amount(count)} {name}" for name, count in kinds.items() if count)
    thought = f" ({amount(usage.thought_tokens)} thought)" if usage.thought_tokens else ""
    cost = "cost not known" if usage.cost_usd is None else money(usage.cost_usd)
    out = amount(usage.output_tokens + usage.thought_tokens)
    return f"{amount(read)} in{f' ({of_these})' if of_these else ''} · {out} out{thought} · {cost}"


def rest_line(usage: Usage, turn: Spent | None) -> str:
    """What the session has cost, when that says more than its last turn, and how full the window is."""
    if turn is None:
        return usage_line(usage)
    more = usage.cost_usd is not None and turn.cost_usd is not None and usage.cost_usd > turn.cost_usd
    cost = f"session {money(usage.cost_usd)}" if more and usage.cost_usd is not None else ""
    return " · ".join(filter(None, [cost, fullness(usage)]))


def fullness(usage: Usage) -> str:
    """How full in a few words; "" when the window is not known."""
    if usage.context is None:
        return f"context {usage.context_tokens * 100 // usage.context_window} %" if usage.context_window else ""
    word = CONTEXT_TIERS[usage.context.tier].name
    return f"context {_share(usage.context)} %" + (f", {word}" if word else "")


def show_context(usage: Usage | None, paper: Paper) -> None:
    """Print what fills the window, part by part."""
    if usage is None or usage.context is None:
        known = fullness(usage) if usage is not None else ""
        paper.line(("dim", known or "Nothing has been sent to a model yet."))
        return
    context = usage.context
    word, meaning = CONTEXT_TIERS[context.tier]
    paper.line(("bold", f"Context {_share(context)} % full"), ("yellow", f", {word}" if word else ""))
    counts: dict[str, int] = context.model_dump(exclude={"tier"})
    window = max(1, sum(counts.values()))
    for part, name in CONTEXT_PARTS.items():
        count = counts[part]
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
