"""What makes models differ, as data. Code asks for a fact, never for a model's name.

`family(model_id)` says how to talk to a model; `known(model_id)` how big and how dear it is. Unknown models of
a known vendor get the facts of their nearest relative, or conservative ones.
Sources: the vendors' documentation and SDKs as of 2026-11.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from amanu_protocol.items import ModelInfo

Thinking = Literal[
    "adaptive",  # Anthropic: the model decides, effort steers
    "budget",  # a number of tokens
    "level",  # Gemini 3: a word
    "effort",  # OpenAI: `reasoning_effort`
    "none",  # no control, or no thinking; thoughts may still arrive
]


@dataclass(frozen=True)
class Family:
    """How to talk to a group of models."""

    name: str
    """Also the name of its additions to the system prompt: `agent/prompts/<name>.md`, if there is one."""
    thinking: Thinking
    budgets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Effort → tokens, for `thinking == "budget"`."""
    least_effort: Literal["minimal", "low"] = "minimal"
    """The least it can be told to think, where it can be told at all (`thinking`)."""
    may_stop_midway: bool = False
    """It says what it will do next and ends its reply there, now and then, instead of doing it."""
    signatures_required: bool = False
    """Gemini 3: the first call of each step must carry the signature it was issued with."""
    prefix_checked: bool = False
    """Anthropic 5.5: a thinking block is refused when anything before it changed."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """OpenAI-compatible only; reasoning models refuse `max_tokens`."""
    max_output: int = 32_000
    """The most output tokens to ask for, where window and prompt plus output are checked together."""
    pictures: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp"})
    """Media types it takes, if it sees at all (`ModelInfo.images`). Gemini takes no GIF, OpenAI none that moves."""


_BUDGETS = MappingProxyType({"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 24_576})

_WITH_GIF = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

CLAUDE_ADAPTIVE = Family("claude", "adaptive", least_effort="low", max_output=64_000, pictures=_WITH_GIF)
CLAUDE_BOUND = replace(CLAUDE_ADAPTIVE, prefix_checked=True)
CLAUDE_BUDGET = Family("claude", "budget", _BUDGETS, pictures=_WITH_GIF)
CLAUDE_PLAIN = Family("claude", "none", max_output=8_192, pictures=_WITH_GIF)
GEMINI_3 = Family("gemini-3", "level", may_stop_midway=True, signatures_required=True, max_output=65_536)
GEMINI_2_5 = Family("gemini-2.5", "budget", _BUDGETS, may_stop_midway=True, max_output=65_536)
GPT_REASONING = Family("gpt", "effort", max_tokens_field="max_completion_tokens", max_output=64_000)
GPT_PLAIN = Family("gpt", "none", max_output=16_384)
GENERIC = Family("generic", "none", max_output=8_192)
SCRIPTED = Family("scripted", "none", max_output=8_192)

_CLAUDE = r"(?:anthropic/)?claude-"
_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"scripted:", SCRIPTED),
        (r"anthropic:claude-(3-[05]|3-(opus|sonnet|haiku)|2)", CLAUDE_PLAIN),
        (r"anthropic:claude-(3-7|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)", CLAUDE_BUDGET),
        (r"anthropic:claude-(opus|sonnet|haiku)-4-[678]", CLAUDE_ADAPTIVE),
        (r"anthropic:claude-((opus|sonnet|haiku)-5|(fable|mythos)-(5|preview))(-\d{8})?$", CLAUDE_ADAPTIVE),
        (r"anthropic:", CLAUDE_BOUND),  # 5.5, Fable 5.1 and whatever is newer than this table
        (r"(gemini|google-openai):(models/)?gemini-(1|2)", GEMINI_2_5),
        (r"(gemini|google-openai):", GEMINI_3),
        (r"openai:(gpt-(3|4)|chatgpt)", GPT_PLAIN),
        (r"openai:", GPT_REASONING),
        (r"openrouter:openai/(gpt-[5-9]|o\d)", GPT_REASONING),
        (r"openrouter:openai/", GPT_PLAIN),
        (r"openrouter:" + _CLAUDE, replace(GENERIC, name="claude", max_output=32_000)),
        (r"openrouter:google/gemini-3", replace(GENERIC, name="gemini-3", may_stop_midway=True, max_output=32_000)),
    )
)


def family(model_id: str) -> Family:
    """The family of `vendor:model`; `GENERIC` for what nobody knows (local servers, custom endpoints)."""
    return next((facts for pattern, facts in _FAMILIES if pattern.match(model_id)), GENERIC)


# Models ------------------------------------------------------------------------------------------------


def _model(
    model_id: str,
    name: str,
    window: int,
    output: int,
    prices: tuple[float, float] | None = None,
    cache: tuple[float, float] | None = None,
    *,
    thinking: bool = True,
    images: bool = True,
) -> ModelInfo:
    """`prices`: input, output; `cache`: read, write; US dollars per million tokens."""
    return ModelInfo(
        model_id=model_id,
        name=name,
        context_window=window,
        max_output=output,
        input_price=prices[0] if prices else None,
        output_price=prices[1] if prices else None,
        cache_read_price=cache[0] if cache else None,
        cache_write_price=cache[1] if cache else None,
        thinking=thinking,
        images=images,
        available=False,
    )


def _claude(model: str, name: str, window: int, output: int, prices: tuple[float, float] | None) -> ModelInfo:
    """A cache read costs a tenth of the input price, a five-minute write five quarters."""
    cache = (round(prices[0] * 0.1, 4), round(prices[0] * 1.25, 4)) if prices else None
    return _model(f"anthropic:{model}", name, window, output, prices, cache)


MODELS: tuple[ModelInfo, ...] = (
    _claude("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, 128_000, (4, 20)),
    _claude("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000, 128_000, (2, 10)),
    _claude("claude-haiku-5-5", "Claude Haiku 5.5", 1_000_000, 128_000, None),  # price depends on the prompt
    _claude("claude-fable-5-2", "Claude Fable 5.2", 1_000_000, 128_000, None),
    _claude("claude-fable-5-1", "Claude Fable 5.1", 1_000_000, 128_000, (10, 50)),
    _claude("claude-opus-5", "Claude Opus 5", 1_000_000, 128_000, (5, 25)),
    _claude("claude-sonnet-5", "Claude Sonnet 5", 1_000_000, 128_000, (2, 10)),
    _claude("claude-opus-4-8", "Claude Opus 4.8", 1_000_000, 128_000, (5, 25)),
    _claude("claude-opus-4-7", "Claude Opus 4.7", 1_000_000, 128_000, (5, 25)),
    _claude("claude-opus-4-6", "Claude Opus 4.6", 1_000_000, 128_000, (5, 25)),
    _claude("claude-sonnet-4-6", "Claude Sonnet 4.6", 1_000_000, 64_000, (3, 15)),
    _claude("claude-opus-4-5", "Claude Opus 4.5", 200_000, 64_000, (5, 25)),
    _claude("claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 64_000, (1, 5)),
    _model("gemini:gemini-3.8-flash", "Gemini 3.8 Flash", 1_048_576, 65_536, (0.75, 3.75)),
    _model("gemini:gemini-3.5-flash", "Gemini 3.5 Flash", 1_048_576, 65_536, (1.5, 9), (0.15, 1.5)),
    _model("gemini:gemini-3.1-pro-preview", "Gemini 3.1 Pro", 1_048_576, 65_536, (2, 12), (0.2, 2)),
    _model("gemini:gemini-3.1-flash-lite", "Gemini 3.1 Flash-Lite", 1_048_576, 65_536),
    _model("gemini:gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576, 65_536, (1.25, 10)),
    _model("gemini:gemini-2.5-flash", "Gemini 2.5 Flash", 1_048_576, 65_536, (0.3, 2.5)),
    _model("openai:gpt-5.2", "GPT-5.2", 400_000, 128_000, (1.75, 14)),
    _model("openai:gpt-5.1", "GPT-5.1", 400_000, 128_000, (1.25, 10)),
    _model("openai:gpt-5-mini", "GPT-5 mini", 400_000, 128_000, (0.25, 2)),
    _model("openai:gpt-4.1", "GPT-4.1", 1_047_576, 32_768, (2, 8), thinking=False),
)

_KNOWN = {info.model_id: info for info in MODELS}

_UNKNOWN = {
    "anthropic": _model("", "", 200_000, 32_000),
    "gemini": _model("", "", 1_000_000, 65_536),
    "google-openai": _model("", "", 1_000_000, 65_536),
    "openai": _model("", "", 128_000, 16_384),
    "openrouter": _model("", "", 128_000, 16_384, images=False),
}
_LOCAL = _model("", "", 32_768, 8_192, thinking=False, images=False)


def known(model_id: str) -> ModelInfo:
    """Facts of `vendor:model`, dated ids included (`claude-opus-4-5-20251101`); conservative ones for an
    unknown model. `available` is False: whether it can be used is the registry's to say."""
    info = _KNOWN.get(model_id) or _KNOWN.get(re.sub(r"-\d{8}$", "", model_id))
    vendor, _, model = model_id.partition(":")
    if info is None and vendor == "google-openai":
        info = _KNOWN.get(f"gemini:{model.removeprefix('models/')}")
    if info is None:
        info = _UNKNOWN.get(vendor, _LOCAL)
    return info.model_copy(update={"model_id": model_id, "name": info.name or model})
