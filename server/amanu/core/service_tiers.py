"""The models that a vendor also serves faster at a higher price, or slower at a lower one, as data.

Amanu says `fast` and `flex`; each service has a field and a word of its own. A model that is not in the table has no
tier whose price is known, so that none is offered. Clouds and gateways that are not in it sell these by other fields,
deployments and headers.

Sources, November 2026: platform.claude.com, "Fast mode", and the field `speed` of Anthropic's SDK · openai.com,
"Fast mode for API Customers"; developers.openai.com, "Flex processing" ("Ultrafast", at six times the price, is
not offered) · ai.google.dev, "Flex inference", "Priority inference" · openrouter.ai, "Service Tiers" · factors, where a
vendor prints prices: LiteLLM's price list.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from amanu_protocol.items import ModelInfo, ServiceTier

_FASTER = "up to 2.5 times as fast"
_AHEAD = "ahead of other requests"


TIER_NAMES: Mapping[ServiceTier, str] = {"standard": "standard tier", "fast": "fast mode", "flex": "flex tier"}
"""The tiers' names for the user."""


@dataclass(frozen=True)
class TierOffer:
    """A tier other than the standard one, of one model."""

    field: Literal["speed", "service_tier", "serviceTier"]
    """The field at the top of a request."""
    word: str
    """The field's value."""
    price: float
    """The factor for all of the model's prices, those of caches too."""
    gain: str = ""
    """The end of the sentence "The model answers …"."""
    beta: str | None = None
    """The value of `anthropic-beta` without which the field is refused."""
    own_cache: bool = False
    """The tier does not read the caches of the others."""

    def body(self) -> Mapping[str, str]:
        """The fields of a request."""
        return {self.field: self.word}


_CLAUDE = TierOffer("speed", "fast", 2, _FASTER, own_cache=True)
_CLAUDE_PREVIEW = replace(_CLAUDE, beta="fast-mode-2026-02-01")
_GPT = TierOffer("service_tier", "priority", 2, _FASTER)
_GPT_FLEX = TierOffer("service_tier", "flex", 0.5)
_GEMINI = TierOffer("serviceTier", "priority", 1.8, _AHEAD)
_GEMINI_FLEX = TierOffer("serviceTier", "flex", 0.5)
_ROUTED_GEMINI = replace(_GEMINI, field="service_tier")


def _gpt(models: str) -> str:
    """The pattern for these models, with or without a date, at OpenAI itself and behind OpenRouter."""
    return rf"(openai:|openrouter:openai/)({models})(-\d{{4}}-\d\d-\d\d)?$"


TIERS: tuple[tuple[str, Mapping[ServiceTier, TierOffer]], ...] = (
    (r"(anthropic|vertex):claude-(opus-5-5|(fable|mythos)-5-2)(-\d{8}|@.+)?$", {"fast": _CLAUDE}),
    # A preview that an account must be admitted to. That of Opus 4.8 ended on 30 November 2026.
    (r"anthropic:claude-opus-5(-\d{8})?$", {"fast": _CLAUDE_PREVIEW}),
    (r"gemini:gemini-(2\.5|[34])", {"fast": _GEMINI, "flex": _GEMINI_FLEX}),
    (r"openrouter:google/gemini-(2\.5|[34])", {"fast": _ROUTED_GEMINI, "flex": _GPT_FLEX}),
    # gpt-6.2 is not here: no page says at what price.
    (_gpt(r"gpt-6-(astra|sol|luna)|gpt-6\.1-(sol|terra)"), {"fast": _GPT, "flex": _GPT_FLEX}),
    (_gpt(r"gpt-5(\.[124])?|gpt-5\.4-mini|gpt-5\.6-(sol|terra|luna)"), {"fast": _GPT, "flex": _GPT_FLEX}),
    (_gpt(r"gpt-5\.5"), {"fast": replace(_GPT, price=2.5), "flex": _GPT_FLEX}),
    (_gpt(r"gpt-5-mini"), {"fast": replace(_GPT, price=1.8), "flex": _GPT_FLEX}),
    (_gpt(r"gpt-5(\.4)?-nano|gpt-5\.[45]-pro"), {"flex": _GPT_FLEX}),
    (_gpt(r"gpt-5\.3-codex"), {"fast": _GPT}),
    (_gpt(r"gpt-4\.1(-mini)?"), {"fast": replace(_GPT, price=1.75)}),
)
"""Pattern for the beginning of a model's id → its tiers; the first match counts."""

_PATTERNS = tuple((re.compile(pattern), offers) for pattern, offers in TIERS)
_NONE: Mapping[ServiceTier, TierOffer] = MappingProxyType({})


def offers(model_id: str) -> Mapping[ServiceTier, TierOffer]:
    """The tiers of `vendor:model` besides the standard one, as far as they are known."""
    return next((found for pattern, found in _PATTERNS if pattern.match(model_id)), _NONE)


def at_tier(info: ModelInfo, tier: ServiceTier) -> ModelInfo:
    """The model at the prices of that tier; at its own where it has none."""
    factor = info.service_tiers.get(tier)
    if factor is None:
        return info
    prices = {name: getattr(info, name) for name in _PRICES}
    return info.model_copy(
        update={name: round(price * factor, 6) for name, price in prices.items() if price is not None}
    )


_PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")

_SERVED: Mapping[str, ServiceTier] = {"fast": "fast", "priority": "fast", "flex": "flex"}


def served_tier(said: object, asked: ServiceTier) -> ServiceTier:
    """The tier at which a request is charged: what the reply says, in any vendor's word, or else what was asked
    for. Services answer at the standard tier, and price, where there is no room in the other."""
    return _SERVED.get(said.lower(), "standard") if isinstance(said, str) and said else asked
