"""The line that names the model and its price."""

import pytest

from amanu.cli.header import describe
from amanu.core.model_families import model_info
from amanu_protocol.items import ServiceTier

OPUS = "Claude Opus 5.5 (anthropic:claude-opus-5-5)"
HAIKU = "Claude Haiku 5.5 (anthropic:claude-haiku-5-5)"
GPT = "GPT-6 Sol (openai:gpt-6-sol)"
USUAL = "$4 in / $20 out per million tokens"


@pytest.mark.parametrize(
    ("model_id", "tier", "told"),
    [
        ("anthropic:claude-opus-5-5", None, f"{OPUS} · {USUAL} · window 1M"),
        ("anthropic:claude-opus-5-5", "standard", f"{OPUS} · {USUAL} · window 1M"),
        (
            "anthropic:claude-opus-5-5",
            "fast",
            f"{OPUS} · fast mode: $8 in / $40 out per million tokens instead of $4 in / $20 out · window 1M",
        ),
        ("anthropic:claude-haiku-5-5", "fast", f"{HAIKU} · $0.1 in / $0.5 out per million tokens · window 1M"),
        (
            "openai:gpt-6-sol",
            "flex",
            f"{GPT} · flex tier: $1 in / $5 out per million tokens instead of $2 in / $10 out · window 336k",
        ),
        ("gemini:gemini-3.3-flash", "fast", "gemini-3.3-flash (gemini:gemini-3.3-flash) · price unknown · window 1M"),
    ],
)
def test_the_price_is_that_of_the_tier(model_id: str, tier: ServiceTier | None, told: str) -> None:
    assert describe(model_info(model_id), tier) == told
