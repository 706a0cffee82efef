"""Facts of models: which family an id belongs to, what is known of it."""

import pytest

from amanu.models.families import (
    CLAUDE_ADAPTIVE,
    CLAUDE_BOUND,
    CLAUDE_BUDGET,
    CLAUDE_PLAIN,
    GEMINI_2_5,
    GEMINI_3,
    GENERIC,
    GPT_PLAIN,
    GPT_REASONING,
    MODELS,
    SCRIPTED,
    Family,
    family,
    known,
)

FAMILIES = {
    "anthropic:claude-opus-5-5": CLAUDE_BOUND,
    "anthropic:claude-haiku-5-5": CLAUDE_BOUND,
    "anthropic:claude-fable-5-1": CLAUDE_BOUND,
    "anthropic:claude-mythos-5-2": CLAUDE_BOUND,
    "anthropic:claude-opus-7": CLAUDE_BOUND,
    "anthropic:claude-opus-5": CLAUDE_ADAPTIVE,
    "anthropic:claude-sonnet-5-20260601": CLAUDE_ADAPTIVE,
    "anthropic:claude-fable-5": CLAUDE_ADAPTIVE,
    "anthropic:claude-opus-4-8": CLAUDE_ADAPTIVE,
    "anthropic:claude-sonnet-4-6": CLAUDE_ADAPTIVE,
    "anthropic:claude-opus-4-5-20251101": CLAUDE_BUDGET,
    "anthropic:claude-haiku-4-5": CLAUDE_BUDGET,
    "anthropic:claude-sonnet-4-20250514": CLAUDE_BUDGET,
    "anthropic:claude-opus-4-1-20250805": CLAUDE_BUDGET,
    "anthropic:claude-3-7-sonnet-latest": CLAUDE_BUDGET,
    "anthropic:claude-3-5-haiku-latest": CLAUDE_PLAIN,
    "anthropic:claude-3-opus-20240229": CLAUDE_PLAIN,
    "gemini:gemini-2.5-pro": GEMINI_2_5,
    "gemini:gemini-2.5-flash-lite": GEMINI_2_5,
    "gemini:gemini-3.8-flash": GEMINI_3,
    "gemini:gemini-flash-latest": GEMINI_3,
    "google-openai:models/gemini-2.5-pro": GEMINI_2_5,
    "openai:gpt-4.1": GPT_PLAIN,
    "openai:gpt-5.2": GPT_REASONING,
    "openai:o4-mini": GPT_REASONING,
    "openrouter:openai/gpt-5.2": GPT_REASONING,
    "openrouter:openai/gpt-4o": GPT_PLAIN,
    "openrouter:meta-llama/llama-4": GENERIC,
    "ollama:qwen3:8b": GENERIC,
    "mine:whatever": GENERIC,
    "scripted:demo": SCRIPTED,
}


@pytest.mark.parametrize(("model_id", "expected"), FAMILIES.items())
def test_family(model_id: str, expected: Family) -> None:
    assert family(model_id) == expected


@pytest.mark.parametrize(
    ("model_id", "name", "window"),
    [
        ("anthropic:claude-opus-5-5", "Claude Opus 5.5", 1_000_000),
        ("anthropic:claude-opus-4-5-20251101", "Claude Opus 4.5", 200_000),
        ("anthropic:claude-next", "claude-next", 200_000),
        ("google-openai:models/gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576),
        ("google-openai:gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576),
        ("ollama:qwen3:8b", "qwen3:8b", 32_768),
    ],
)
def test_known(model_id: str, name: str, window: int) -> None:
    info = known(model_id)
    assert (info.model_id, info.name, info.context_window, info.available) == (model_id, name, window, False)


def test_a_model_nobody_knows_has_no_price() -> None:
    assert known("anthropic:claude-next").input_price is None


def test_the_list_is_sound() -> None:
    ids = [info.model_id for info in MODELS]
    assert len(ids) == len(set(ids))
    for info in MODELS:
        assert info.max_output <= info.context_window
        assert (info.input_price is None) == (info.output_price is None)
        facts = family(info.model_id)
        assert all(budget < min(info.max_output, facts.max_output) for budget in facts.budgets.values())


def test_only_gemini_may_stop_midway() -> None:
    assert {facts.name for facts in FAMILIES.values() if facts.may_stop_midway} == {"gemini-2.5", "gemini-3"}
