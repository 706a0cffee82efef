"""Counts the tokens and the money that requests take, for the turn and its session."""

from collections.abc import Callable
from dataclasses import dataclass

from amanu.agent.budget import CostLimits
from amanu.core.agent import NOTHING_SPENT
from amanu.core.model import TokenUsage
from amanu.core.service_tiers import at_tier
from amanu_protocol.items import ModelInfo, ModelPrices, Spend, Usage

NO_USAGE = Usage(
    input_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    output_tokens=0,
    thought_tokens=0,
    cost_usd=0.0,
    context_tokens=0,
    context_window=0,
)

HOUR_WRITE = 2
"""Of input's price: writing to a cache that lasts an hour. Only Anthropic has one (platform.claude.com, "Pricing")."""


@dataclass
class Ledger:
    """Keeps the counts of one turn and of its session."""

    usage: Usage
    """What the session has used."""
    cost_limits: CostLimits
    spent: Spend = NOTHING_SPENT
    """What the turn has used."""
    on_spend: Callable[[ModelInfo, TokenUsage], None] | None = None
    """Told of each request: what a sub-agent uses counts for the session it works for, too."""

    def count_request(self, info: ModelInfo, used: TokenUsage) -> Spend:
        """Count a request of the conversation. Returns what it cost."""
        self.usage = add_request(self.usage, info, used)
        return self._pay(info, used)

    def count_beside(self, info: ModelInfo, used: TokenUsage) -> Spend:
        """Count a request that left nothing in the conversation: a side query, or an attempt that came to nothing.
        Returns what it cost."""
        self.usage = add_beside(self.usage, info, used)
        return self._pay(info, used)

    def _pay(self, info: ModelInfo, used: TokenUsage) -> Spend:
        spend = spend_of(info, used)
        self.spent = add_spends(self.spent, spend)
        self.cost_limits.add(spend.cost_usd, most(info, used))
        if self.on_spend is not None:
            self.on_spend(info, used)
        return spend


_COUNTS = tuple(name for name in Spend.model_fields if name.endswith("_tokens"))


def spend_of(info: ModelInfo, used: TokenUsage) -> Spend:
    """What one request cost."""
    return Spend(
        input_tokens=used.input,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        output_tokens=used.output,
        thought_tokens=used.thoughts,
        tool_tokens=used.tools,
        cost_usd=price(info, used),
    )


def add_spends(first: Spend, second: Spend) -> Spend:
    """The sum; its cost is None when one of the two is unknown."""
    return first.model_copy(update=_sum(first, second))


def add_request(usage: Usage, info: ModelInfo, used: TokenUsage) -> Usage:
    """`usage` after one more request. The cost becomes None, and stays so, once a price is unknown."""
    size = {"context_tokens": used.context, "context_window": info.context_window}
    return usage.model_copy(update={**_sum(usage, spend_of(info, used)), **size})


def add_beside(usage: Usage, info: ModelInfo, used: TokenUsage) -> Usage:
    """`usage` after a request that costs but says nothing about the conversation's size."""
    return usage.model_copy(update=_sum(usage, spend_of(info, used)))


def _sum(first: Spend | Usage, second: Spend) -> dict[str, float | None]:
    """The sum of every count, and of the cost when both are known."""
    counts = {name: getattr(first, name) + getattr(second, name) for name in _COUNTS}
    cost = None if first.cost_usd is None or second.cost_usd is None else first.cost_usd + second.cost_usd
    return {**counts, "cost_usd": cost}


def price(info: ModelInfo, used: TokenUsage) -> float | None:
    """US dollars for one request: what the service says, or else an estimate; None when the model's prices are unknown.
    Cached tokens without a known price of their own cost as much as input, so that an estimate is never too low. A long
    prompt may raise every price but that of a search, as may the service tier."""
    if used.told_usd:
        return used.told_usd
    info = at_tier(info, used.service_tier)
    if info.input_price is None or info.output_price is None:
        return None
    read = info.input_price if info.cache_read_price is None else info.cache_read_price
    write = info.input_price if info.cache_write_price is None else info.cache_write_price
    hour = info.input_price * HOUR_WRITE
    prompt = used.input * info.input_price + used.cache_read * read
    prompt += (used.cache_write - used.cache_write_hour) * write + used.cache_write_hour * hour
    reply = (used.output + used.thoughts) * info.output_price
    long = info.long_prompt
    if long is not None and used.prompt > long.above:
        prompt, reply = prompt * long.input, reply * long.output
    return (prompt + reply) / 1_000_000 + used.searches * (info.search_price or 0)


def most(info: ModelInfo, used: TokenUsage) -> float | None:
    """US dollars for one request at the dearer of two prices, where a newer list and this release differ."""
    other = info.other_prices
    costs = [price(info, used)]
    if other is not None:
        prices = {f"{name}_price": getattr(other, name) for name in ModelPrices.model_fields}
        costs.append(price(info.model_copy(update=prices), used))
    return max((cost for cost in costs if cost is not None), default=None)
