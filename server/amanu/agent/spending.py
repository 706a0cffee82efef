"""Tokens and money of a session."""

from amanu.models.base import TokenUsage
from amanu_protocol.items import ModelInfo, Spent, Usage

NOTHING = Usage(
    input_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    thought_tokens=0,
    cost_usd=0.0,
    context_tokens=0,
    context_window=0,
)


NOTHING_SPENT = Spent(
    input_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    thought_tokens=0,
    tool_tokens=0,
    cost_usd=0.0,
)


def spent(info: ModelInfo, used: TokenUsage) -> Spent:
    """What one request took."""
    return Spent(
        input_tokens=used.input,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        output_tokens=used.output,
        thought_tokens=used.thoughts,
        tool_tokens=used.tools,
        cost_usd=price(info, used),
    )


def both(one: Spent, other: Spent) -> Spent:
    """The sum. Its cost is None when one of them is not known."""
    known = None if one.cost_usd is None or other.cost_usd is None else one.cost_usd + other.cost_usd
    return Spent(
        input_tokens=one.input_tokens + other.input_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        thought_tokens=one.thought_tokens + other.thought_tokens,
        tool_tokens=one.tool_tokens + other.tool_tokens,
        cost_usd=known,
    )


def add(usage: Usage, info: ModelInfo, used: TokenUsage) -> Usage:
    """`usage` after one more request. The cost becomes None, and stays so, once a price is unknown."""
    cost = price(info, used)
    return Usage(
        input_tokens=usage.input_tokens + used.input,
        cache_read_tokens=usage.cache_read_tokens + used.cache_read,
        cache_write_tokens=usage.cache_write_tokens + used.cache_write,
        output_tokens=usage.output_tokens + used.output,
        thought_tokens=usage.thought_tokens + used.thoughts,
        cost_usd=None if usage.cost_usd is None or cost is None else usage.cost_usd + cost,
        tool_tokens=usage.tool_tokens + used.tools,
        context_tokens=used.context,
        context_window=info.context_window,
        context=usage.context,
    )


def aside(usage: Usage, info: ModelInfo, used: TokenUsage) -> Usage:
    """`usage` after a question aside: it costs, but says nothing about the conversation's size."""
    return add(usage, info, used).model_copy(
        update={"context_tokens": usage.context_tokens, "context_window": usage.context_window}
    )


def price(info: ModelInfo, used: TokenUsage) -> float | None:
    """US dollars of one request, None if the model's prices are not known. Cached tokens cost what input costs
    where no price of their own is known, so that an estimate is never too low."""
    if info.input_price is None or info.output_price is None:
        return None
    read = info.input_price if info.cache_read_price is None else info.cache_read_price
    write = info.input_price if info.cache_write_price is None else info.cache_write_price
    millionths = (
        used.input * info.input_price
        + used.cache_read * read
        + used.cache_write * write
        + (used.output + used.thoughts) * info.output_price
    )
    return millionths / 1_000_000
